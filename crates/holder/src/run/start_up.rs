//! From `exec` to `ready`: own session, own lock, own socket, and only then a word to whoever waits.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{getpid, set_child_subreaper, setsid, umask};

use super::clocks::Clocks;
use super::hint::Hint;
use super::holder::Holder;
use super::inputs::Inputs;
use super::log::Log;
use super::pump::Pump;
use super::reserve::Reserve;
use super::signals::Signals;
use super::stderr::StderrLog;
use crate::descriptors::{close_inherited, raise_limit};
use crate::dir::{EpochNote, FORMAT, HolderDir, Launch, LockNote};
use crate::file_ops::{if_exists, open_or_create};
use crate::identity::Identity;
use crate::journal::JournalWriter;

/// An inspection takes the lock for a moment; it is tried again for this long.
const LOCK_WITHIN: Duration = Duration::from_secs(1);

pub(super) fn start_up(path: PathBuf) -> io::Result<Holder> {
    close_inherited();
    // A supervisor that has hardly any descriptors left must not make us, or the agent, as poor.
    raise_limit();
    umask(rustix::fs::Mode::from_raw_mode(0o077));
    let path = path.canonicalize().map_err(|error| naming("cannot find", &path, error))?;
    let dir = HolderDir::new(path);
    let launch: Launch =
        HolderDir::read(&dir.launch()).map_err(|error| naming("cannot read", &dir.launch(), error))?;
    if launch.format != FORMAT {
        return Err(io::Error::other(format!(
            "{} has the unknown format {}",
            dir.launch().display(),
            launch.format
        )));
    }
    let secret = dir.read_secret().map_err(|error| naming("cannot read", &dir.secret(), error))?;
    // Alone from here on: no terminal, nobody's process group. It fails only for a leader of a group, which a
    // process that was just started is not.
    setsid()?;
    std::env::set_current_dir("/")?;
    let lock = take_lock(&dir, &launch.holder_id)?;
    let signals = Signals::register()?;
    set_child_subreaper(Some(getpid()))?;
    let journal = JournalWriter::create(&dir.journal(), &launch.holder_id, launch.limits.segment_bytes)
        .map_err(|error| naming("cannot begin the journal in", &dir.journal(), error))?;
    let listener = bind(&launch.socket)?;
    let mut holder = Holder {
        pump: Pump::new(launch.limits.line_bytes),
        stderr: StderrLog::new(dir.clone(), launch.limits.stderr_bytes),
        reserve: Reserve::new(dir.reserve()),
        log: Log::open(&dir.log()),
        status_file: Hint::create(&dir.status()),
        epoch_file: Hint::create(&dir.epoch()),
        detached_limit: Duration::from_millis(launch.limits.detached_ms),
        clocks: Clocks::new(Instant::now()),
        socket_inode: std::fs::metadata(&launch.socket)?.ino(),
        epoch: EpochNote { epoch: 0, instance: String::new() },
        own: Identity::of(getpid().as_raw_nonzero().get())?,
        dir,
        launch,
        secret,
        lock,
        signals,
        journal,
        listener: Some(listener),
        peers: Vec::new(),
        agent: None,
        inputs: Inputs::default(),
        acked: 0,
        trouble: None,
        bounded: false,
        owed: Vec::new(),
        stop: None,
        draining: None,
        activity: 0,
        idle_at: None,
        strikes: 0,
        room_looked_at: 0,
        epoch_owed: false,
        finished: false,
    };
    holder.write_status();
    holder.write_epoch();
    // Everything that can fail comes before the word: who is ready has no other way to say why it ended.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    println!("ready");
    io::stdout().flush()?;
    detach_stdio(&null)?;
    Ok(holder)
}

/// Binds the socket, whatever stood at its path: the lock is ours, so nobody alive owns it.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    if_exists(std::fs::remove_file(path)).map_err(|error| naming("cannot remove", path, error))?;
    let listener = UnixListener::bind(path).map_err(|error| naming("cannot listen on", path, error))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn take_lock(dir: &HolderDir, holder_id: &str) -> io::Result<File> {
    let path = dir.lock();
    // Rust's files are closed on exec: the agent does not inherit the lock, which would keep it after our death.
    let mut file = open_or_create(&path)?;
    let since = Instant::now();
    while let Err(error) = file.try_lock() {
        match error {
            TryLockError::WouldBlock if since.elapsed() < LOCK_WITHIN => std::thread::yield_now(),
            TryLockError::WouldBlock => return Err(io::Error::other("another holder has the lock")),
            TryLockError::Error(error) => return Err(naming("cannot lock", &path, error)),
        }
    }
    let metadata = file.metadata()?;
    let note = LockNote {
        holder_id: holder_id.into(),
        process: Identity::of(getpid().as_raw_nonzero().get())?,
        device: metadata.dev(),
        inode: metadata.ino(),
    };
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(&note).map_err(io::Error::other)?)?;
    file.sync_all()?;
    Ok(file)
}

fn detach_stdio(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    Ok(())
}

fn naming(what: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

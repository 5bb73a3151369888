//! Making a holder: first its directory, durable, then its process. A crash at any point leaves either no agent
//! or a directory that tells.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::executable::Executable;
use crate::descriptors::wait_readable;
use crate::dir::{FORMAT, HolderDir, Launch, Limits};
use crate::file_ops::{AtPath, PathError, sync_dir};
use crate::identity::{Identity, machine_boot};
use crate::journal::hex;
use crate::tree::await_end;

/// Longest path of a socket: with the byte behind it, what the smallest of our systems takes.
pub const MAX_SOCKET_PATH: usize = 103;

/// How long a holder may take until it is ready; it needs milliseconds.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Longest line that a holder says before it is ready.
const MOST_SAID: u64 = 4096;

/// How long a process that was killed may take to be gone before it is left to be collected with us.
const GONE_WITHIN: Duration = Duration::from_millis(500);

/// What a holder is to be for.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The session it works for.
    pub session_id: String,
    /// Which attempt of that session.
    pub attempt: u32,
    /// Which agent, by its name in the table of known ones.
    pub agent: Option<String>,
    /// How its lines are to be read.
    pub profile: String,
    /// The agent's command.
    pub argv: Vec<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// Names of the agent's environment variables; the values come with the start.
    pub env_names: Vec<String>,
    /// The agent's umask; without one it has the holder's own, which lets nobody else read what it makes.
    pub umask: Option<u32>,
    /// Bounds.
    pub limits: Limits,
}

/// A holder's directory, complete and on disk, without a process yet.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The directory.
    pub dir: HolderDir,
    /// What it says.
    pub launch: Launch,
    /// What will be run.
    pub executable: PathBuf,
    /// The only variable the holder gets: its `PATH`. The agent gets its own with the start.
    pub path: OsString,
    /// How long to wait until it is ready.
    pub ready_within: Duration,
}

/// Why a directory could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The socket's path would be too long.
    #[error("the socket {0} would be too long: use a shorter runtime directory")]
    SocketTooLong(PathBuf),
    /// The command is empty.
    #[error("the agent's command is empty")]
    NoCommand,
    /// Something could not be written.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Returns what must be the same for an adoption to be right, as a hash: nothing that may change.
pub fn fingerprint(session_id: &str, agent: Option<&str>, cwd: &Path) -> String {
    let mut hash = Sha256::new();
    for word in [session_id.as_bytes(), agent.unwrap_or_default().as_bytes(), cwd.as_os_str().as_bytes()] {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    }
    hex(&hash.finalize())
}

/// Makes a holder's directory. `launch.json` comes last: a directory without it was never used.
pub fn prepare(
    holders: &Path,
    runtime: &Path,
    executable: &Executable,
    spec: Spec,
) -> Result<Prepared, PrepareError> {
    if spec.argv.is_empty() {
        return Err(PrepareError::NoCommand);
    }
    let holders = std::path::absolute(holders).at_path("make", holders)?;
    let random = || -> io::Result<[u8; 32]> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(bytes)
    };
    let holder_id = format!("h_{}", hex(&random().at_path("make", &holders)?[..16]));
    let dir = HolderDir::new(holders.join(&holder_id));
    // A short name that is the same for the same holder and no other, in whichever home.
    let socket = runtime.join(socket_name(dir.path(), &holder_id));
    if socket.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(PrepareError::SocketTooLong(socket));
    }
    let launch = Launch {
        format: FORMAT,
        fingerprint: fingerprint(&spec.session_id, spec.agent.as_deref(), &spec.cwd),
        holder_id,
        session_id: spec.session_id,
        attempt: spec.attempt,
        agent: spec.agent,
        profile: spec.profile,
        argv: spec.argv,
        cwd: spec.cwd,
        env_names: spec.env_names,
        umask: spec.umask,
        socket,
        machine_boot: machine_boot().at_path("make", dir.path())?,
        executable: executable.sha256.clone(),
        limits: spec.limits,
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&holders).at_path("make", &holders)?;
    if let Err(error) = fill(&holders, &dir, &launch, &random) {
        // Half of one is of no use to anybody; on a full disk it would keep the room it took.
        let _ = std::fs::remove_dir_all(dir.path());
        return Err(error);
    }
    Ok(Prepared {
        dir,
        launch,
        executable: executable.path.clone(),
        path: "/usr/local/bin:/usr/bin:/bin".into(),
        ready_within: READY_WITHIN,
    })
}

/// Makes everything in a holder's directory.
fn fill(
    holders: &Path,
    dir: &HolderDir,
    launch: &Launch,
    random: &dyn Fn() -> io::Result<[u8; 32]>,
) -> Result<(), PrepareError> {
    for path in [dir.path(), &dir.journal()] {
        DirBuilder::new().mode(0o700).create(path).at_path("make", path)?;
    }
    let write_secret = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.secret())?;
        file.write_all(&random()?)?;
        file.sync_all()
    };
    write_secret().at_path("make", &dir.secret())?;
    let bytes = serde_json::to_vec_pretty(launch).map_err(io::Error::other).at_path("make", &dir.launch())?;
    dir.replace(&dir.launch(), &bytes, true).at_path("make", &dir.launch())?;
    Ok(sync_dir(holders).at_path("make", holders)?)
}

fn socket_name(dir: &Path, holder_id: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(dir.as_os_str().as_bytes());
    hash.update(holder_id);
    format!("{}.sock", hex(&hash.finalize()[..8]))
}

/// Tells whether a launch was made for this very directory: the socket bears its name. One that was copied or moved along
/// with its home tells of processes that are not this home's.
pub fn is_made_for(dir: &HolderDir, launch: &Launch) -> bool {
    let name = launch.socket.file_name();
    let is = |path: &Path| name.is_some_and(|name| *name == *socket_name(path, &launch.holder_id));
    // The same home may be named in several ways.
    is(dir.path()) || std::fs::canonicalize(dir.path()).is_ok_and(|path| is(&path))
}

/// A holder that is ready to be spoken to.
#[derive(Debug)]
pub struct Spawned {
    /// Its process, to be collected by whoever started it. It outlives us.
    pub child: Child,
    /// Its directory.
    pub dir: HolderDir,
}

/// Why there is no holder. In every case there is no agent, and the directory may be removed.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// It could not be run.
    #[error("cannot run {path}: check that its file system allows programs, and the limits on processes")]
    Run {
        /// The executable.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It said why it could not begin.
    #[error("the holder could not start: {message}")]
    Refused {
        /// Its words.
        message: String,
    },
    /// It ended without a word.
    #[error("the holder ended before it was ready ({}): its directory has a log", exit_text(.status))]
    Died {
        /// How, if that is known.
        status: Option<ExitStatus>,
    },
    /// It took too long, and was ended.
    #[error("the holder was not ready within {} ms; the machine may be overloaded, try again", .0.as_millis())]
    Late(Duration),
}

fn exit_text(status: &Option<ExitStatus>) -> String {
    status.map_or_else(|| "nobody knows how".into(), |status| status.to_string())
}

/// Starts a holder and waits until it is ready.
pub fn start(prepared: &Prepared) -> Result<Spawned, SpawnError> {
    let mut command = Command::new(&prepared.executable);
    command.arg(prepared.dir.path()).env_clear().env("PATH", &prepared.path);
    start_by(command, prepared, prepared.ready_within)
}

/// Runs a command that is the holder, or becomes it, and waits until it is ready. Nothing runs between fork and exec, so
/// the standard library need not copy us to start it, however large we are.
pub(super) fn start_by(
    mut command: Command,
    prepared: &Prepared,
    within: Duration,
) -> Result<Spawned, SpawnError> {
    let deadline = Instant::now() + within;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = loop {
        match command.spawn() {
            Ok(child) => break child,
            // A child that another thread is just starting still has the file open that we wrote.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < deadline => {
                std::thread::yield_now();
            }
            Err(source) => return Err(SpawnError::Run { path: command.get_program().into(), source }),
        }
    };
    let said = child.stdout.take().map_or(Ok(None), |stdout| read_line(stdout, deadline));
    let message = match said {
        Ok(Some(line)) if line == "ready" => return Ok(Spawned { child, dir: prepared.dir.clone() }),
        Ok(Some(line)) => line.strip_prefix("error: ").map(str::to_owned).or(Some(line)),
        Ok(None) => None,
        Err(_) => {
            kill_and_reap(&mut child, Duration::ZERO);
            return Err(SpawnError::Late(within));
        }
    };
    // One that has said its last word ends by itself, and then how it did can be told.
    let status = kill_and_reap(&mut child, GONE_WITHIN);
    Err(match message.filter(|message| !message.is_empty()) {
        Some(message) => SpawnError::Refused { message },
        None => SpawnError::Died { status },
    })
}

/// Reads one line; none if there is an end but no line.
fn read_line(mut pipe: ChildStdout, deadline: Instant) -> io::Result<Option<String>> {
    let mut said = Vec::new();
    loop {
        if !wait_readable(&pipe, deadline)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut bytes = [0; 512];
        let count = pipe.read(&mut bytes)?;
        said.extend_from_slice(&bytes[..count]);
        let line = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if count == 0 || line.len() < said.len() || said.len() as u64 >= MOST_SAID {
            let line = String::from_utf8_lossy(line).into_owned();
            return Ok((count > 0 || !line.is_empty()).then_some(line));
        }
    }
}

/// Ends and collects a holder that has no agent. It is our child and not collected, so its pid is its own.
fn kill_and_reap(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let identity = Identity::of(child.id() as i32).ok()?;
    if !await_end(&identity, patience).unwrap_or(false) {
        child.kill().ok()?;
        await_end(&identity, GONE_WITHIN).ok()?;
    }
    child.try_wait().ok()?
}

#[cfg(test)]
mod tests;

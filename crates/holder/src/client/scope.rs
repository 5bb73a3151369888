//! A scope of its own for a holder, from the user's service manager: whoever ends the daemon's service, or the login it
//! was started from, does not end the holder with it. Where that comes to nothing the holder is started beside us.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::lock::DirLock;
use super::spawn::{Prepared, SpawnError, Spawned, start, start_by};
use crate::dir::HolderDir;

/// What asks the manager, and then becomes the holder: its process and its pipes stay the same.
const PROGRAM: &str = "systemd-run";

/// What finds the manager; the holder does not get them.
const VARIABLES: [&str; 2] = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// How long a holder may take until it is ready, the manager's part included: that one takes some tens of milliseconds.
const WITHIN: Duration = Duration::from_secs(2);

/// How long a manager that failed is left alone: so that it delays one launch, and not each of them.
const REST: Duration = Duration::from_secs(600);

/// A manager that can be asked for scopes. Clones share what is known of it.
#[derive(Debug, Clone)]
pub struct Scopes {
    program: PathBuf,
    env: Vec<(&'static str, OsString)>,
    within: Duration,
    rests_until: Arc<Mutex<Option<Instant>>>,
}

impl Scopes {
    /// Finds the manager by the variables that name it; none if it does not listen, or cannot be asked.
    pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Option<Scopes> {
        let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from)?;
        let path = variable("PATH")?;
        let absolute = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
        let program = absolute.map(|dir| dir.join(PROGRAM)).find(|program| program.is_file())?;
        manager_listens(&runtime).then(|| Scopes {
            program,
            env: VARIABLES.iter().filter_map(|name| Some((*name, variable(name)?))).collect(),
            within: WITHIN,
            rests_until: Arc::default(),
        })
    }

    /// The scope is delegated: its holder may make a group for its agent, and an agent that takes all memory is ended alone.
    fn command(&self, prepared: &Prepared) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes"])
            .arg(format!("--unit={}", scope_name(&prepared.launch.holder_id)))
            .arg(format!("--description=Rekindle: the agent of session {}", prepared.launch.session_id))
            .args(["--", "/usr/bin/env", "-i"]);
        let mut path = OsString::from("PATH=");
        path.push(&prepared.path);
        command.arg(path).arg(&prepared.executable).arg(prepared.dir.path());
        command
            .env_clear()
            .env("PATH", &prepared.path)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn is_paused(&self) -> bool {
        let until = self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn pause(&self) {
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
    }
}

/// Returns the name of a holder's scope.
pub fn scope_name(holder_id: &str) -> String {
    format!("rekindle-{holder_id}.scope")
}

/// Tells whether our own service manager listens in a runtime directory: another user's, which root could ask too, has
/// nothing to do with our processes.
pub fn manager_listens(runtime: &Path) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    let ours = std::fs::metadata(runtime).is_ok_and(|there| there.is_dir() && there.uid() == uid);
    let try_connect = || -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let ours = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match connect(&ours, &SocketAddrUnix::new(runtime.join("systemd/private"))?) {
            // It has more callers than it takes: it is there.
            Err(Errno::AGAIN) => Ok(()),
            outcome => Ok(outcome?),
        }
    };
    runtime.is_absolute() && ours && try_connect().is_ok()
}

/// Starts a holder in a scope of its own if there is a manager, else beside us; also tells why it is beside us although
/// there is one. Trying twice is safe: nobody speaks to a holder that is not ready, so none of them has an agent.
pub fn start_apart(
    prepared: &Prepared,
    scopes: Option<&Scopes>,
) -> Result<(Spawned, Option<SpawnError>), SpawnError> {
    // Some versions of the program read a dollar as the beginning of a variable.
    let plain = |path: &Path| !path.as_os_str().as_encoded_bytes().contains(&b'$');
    let usable =
        |scopes: &&Scopes| !scopes.is_paused() && plain(prepared.dir.path()) && plain(&prepared.executable);
    let Some(scopes) = scopes.filter(usable) else { return Ok((start(prepared)?, None)) };
    let why = match start_by(scopes.command(prepared), prepared, scopes.within) {
        Ok(spawned) => return Ok((spawned, None)),
        Err(why) => why,
    };
    // Whoever still has the directory is not waited for, and not doubled.
    if clear_journal(&prepared.dir).is_err() {
        return Err(why);
    }
    let spawned = start(prepared)?;
    scopes.pause();
    Ok((spawned, Some(why)))
}

/// Takes away what a holder made that died before it was ready: a journal without a word in it. Its lock is the proof
/// that it is dead.
fn clear_journal(dir: &HolderDir) -> io::Result<()> {
    let _lock = DirLock::take(dir).map_err(io::Error::other)?;
    for entry in std::fs::read_dir(dir.journal())? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The daemon as a service of the user's own: its unit file, and starting it through the user's service manager. What the
//! file says is in `text`, who is asked in `manager`, what is the case in `survey`.

mod manager;
mod survey;
mod text;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

pub use manager::{Manager, RELOADED, SOON, UnitStatus};
pub use survey::{FileState, Survey};
pub use text::is_ours;

use crate::daemon_file::{self, DaemonFile, DaemonState};
use crate::default_home::{config_home, default_home};
use crate::failure::Failure;
use crate::logout::facts_of;

/// How long a service may take to start or to be replaced: its daemon completes the write-ahead log before it is ready.
const READY: Duration = Duration::from_secs(60);

/// A service that was just ending is started again after this.
const SETTLES: Duration = Duration::from_millis(300);

/// How often it is looked whether the daemon listens.
const LOOK: Duration = Duration::from_millis(20);

/// A home's unit.
#[derive(Debug)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    home: PathBuf,
}

impl Unit {
    /// Returns the unit of a home. The usual home has the usual name; another has one of its own, so that two do not fight.
    pub fn of(home: &Path) -> Result<Unit, Failure> {
        let config = config_home().ok_or_else(|| {
            let message = "cannot tell where unit files are: $HOME is not set".into();
            Failure::usage("config_unknown", message).hint("set $HOME or $XDG_CONFIG_HOME")
        })?;
        let whole = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let home = whole(home);
        let usual = default_home().is_some_and(|usual| whole(&usual) == home);
        let name =
            if usual { "rekindle.service".into() } else { format!("rekindle-{}.service", short(&home)) };
        let path = config.join("systemd/user").join(&name);
        Ok(Unit { name, path, home })
    }

    /// Returns the unit that is in charge of a home, with the manager to be asked: it is installed, and can be started.
    pub fn in_charge(home: &Path) -> Option<(Unit, Manager)> {
        let unit = Unit::of(home).ok()?;
        let text = std::fs::read_to_string(&unit.path).ok()?;
        if !text::is_for(&text, unit.home.to_str()?) {
            return None;
        }
        Some((unit, Manager::find(&facts_of(None)).ok()?))
    }

    /// Returns what its file is to say; agents are found by this `PATH`.
    pub fn text(&self, path: &str) -> Result<String, Failure> {
        self.text_with(&text::path_line(path))
    }

    fn text_with(&self, path_line: &str) -> Result<String, Failure> {
        let own = std::env::current_exe().map_err(|error| Failure::failed("executable", error))?;
        if !own.is_file() {
            let error = anyhow::anyhow!("{} is gone: it was replaced while this command ran", own.display());
            return Err(Failure::failed("executable", error).hint("run the command again"));
        }
        let [own, home] = [plain(&own)?, plain(&self.home)?];
        Ok(text::unit_text(&self.name, own, home, path_line))
    }

    /// Looks at the file: is it what we would write? The `PATH` in it is someone's choice, and no reason to write it anew.
    pub fn file_state(&self) -> Result<FileState, Failure> {
        let there = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileState::Missing),
            Err(error) => return Err(self.io("cannot read", error)),
        };
        let path_line = text::path_line_of(&there).map(str::to_owned).unwrap_or_default();
        let wanted = self.text_with(&path_line)?;
        Ok(if there == wanted { FileState::Current } else { FileState::Outdated })
    }

    /// Writes the file, whole or not at all; what was there before is kept beside it.
    pub fn write(&self, text: &str, before: Option<&str>) -> Result<Option<PathBuf>, Failure> {
        let backup = before.map(|before| (PathBuf::from(format!("{}.bak", self.path.display())), before));
        let put = || -> io::Result<()> {
            let dir = self.path.parent().unwrap_or(Path::new("/"));
            std::fs::create_dir_all(dir)?;
            if let Some((path, before)) = &backup {
                replace(path, before)?;
            }
            replace(&self.path, text)?;
            File::open(dir)?.sync_all()
        };
        put().map_err(|error| self.io("cannot write", error))?;
        Ok(backup.map(|(path, _)| path))
    }

    /// Removes the file, and the link that starts it with a login; tells whether there was anything.
    pub fn remove(&self) -> Result<bool, Failure> {
        let wants = self.path.with_file_name("default.target.wants").join(&self.name);
        let mut any = false;
        for path in [&wants, &self.path] {
            match std::fs::remove_file(path) {
                Ok(()) => any = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(self.io("cannot remove", error)),
            }
        }
        Ok(any)
    }

    /// Starts the service, `start` or `restart`, and waits until its daemon listens.
    pub fn bring_up(&self, manager: &Manager, verb: &str) -> Result<DaemonFile, Failure> {
        // One that failed too often would not be started; of one that did not there is nothing to forget.
        let _ = manager.ask(&["reset-failed", &self.name], SOON);
        let deadline = Instant::now() + READY;
        let mut verb = verb;
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(SOON);
            manager.ask(&[verb, &self.name], left).map_err(|failure| failure.hint(self.journal_hint()))?;
            // It is ready now, unless what the manager took for running was just leaving.
            let settled = Instant::now() + SETTLES;
            while Instant::now() < settled {
                if let DaemonState::Lives(place) = daemon_file::find_daemon(&self.home) {
                    return Ok(place);
                }
                std::thread::sleep(LOOK);
            }
            if Instant::now() >= deadline {
                let message = format!("{} was started, but its daemon does not listen", self.name);
                return Err(Failure::no_daemon(message).hint(self.journal_hint()));
            }
            verb = "start";
        }
    }

    /// Says where the service's words are.
    pub fn journal_hint(&self) -> String {
        format!("journalctl --user -u {} -n 20 shows what it said", self.name)
    }

    fn io(&self, doing: &str, error: io::Error) -> Failure {
        Failure::failed(
            "unit_file",
            anyhow::Error::new(error).context(format!("{doing} {}", self.path.display())),
        )
    }
}

/// Puts a file in the place of another.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = PathBuf::from(format!("{}.tmp", path.display()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    // Whatever the umask: there is nothing secret in it, and others look for what runs here.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(new, path)
}

/// Returns a short name for a home: the same in every process and version.
fn short(home: &Path) -> String {
    let hash = Sha256::digest(home.as_os_str().as_encoded_bytes());
    hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a path as text, which is all that a unit file can hold.
fn plain(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let error =
            anyhow::anyhow!("{} is not valid UTF-8 and cannot be written into a unit file", path.display());
        Failure::failed("unit_file", error).hint("use a path that is valid UTF-8")
    })
}

//! A temporary directory with a home in it, a directory to work in, and one for sockets. When it goes away every process
//! that was started there is ended, and nothing is left of it unless it is to be kept.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processes::{end_all, living};

/// Above this a directory is too deep for the sockets below it, whose paths have about a hundred bytes.
const DEEPEST: usize = 48;

/// A temporary directory with a home.
pub struct TempHome {
    path: PathBuf,
    /// For sockets: below the other, or elsewhere if that is too deep.
    runtime: PathBuf,
    keep: bool,
}

impl TempHome {
    /// Makes one below the system's directory for what is temporary.
    pub fn new(prefix: &str) -> io::Result<TempHome> {
        let temporary = std::env::temp_dir();
        let base = if temporary.is_absolute() { temporary } else { PathBuf::from("/tmp") };
        TempHome::below(&base, prefix)
    }

    /// Makes one below a directory, with whatever is needed but the home, which makes itself.
    pub fn below(base: &Path, prefix: &str) -> io::Result<TempHome> {
        let make = |path: &Path| {
            DirBuilder::new().mode(0o700).create(path).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display()))
            })
        };
        let name = prefix.to_owned() + &short(getrandom::u32().map_err(io::Error::other)?);
        let path = base.join(&name);
        make(&path)?;
        let fits = base.as_os_str().len() <= DEEPEST;
        let runtime = if fits { path.join("run") } else { Path::new("/tmp").join(name) };
        let home = TempHome { path, runtime, keep: false };
        make(&home.runtime)?;
        make(&home.at("work"))?;
        Ok(home)
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path below it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the home.
    pub fn home(&self) -> PathBuf {
        self.at("home")
    }

    /// Returns where sockets are.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// Returns a command of ours that means this home, and finds nothing of the user's.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg("--home").arg(self.home()).current_dir(self.at("work"));
        command.env("XDG_RUNTIME_DIR", &self.runtime).env("HOME", &self.path).env_remove("REKINDLE_HOME");
        command
    }

    /// Leaves the files where they are when everything is over.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Tells whether the files stay.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    /// Returns how many processes still live here: a daemon, holders, agents.
    pub fn living(&self) -> usize {
        living(&self.home())
    }
}

/// Writes a number in six letters and digits: what is shown of a home must not become long by where it is.
fn short(number: u32) -> String {
    let digit = |place: u32| char::from_digit(number / 36_u32.pow(place) % 36, 36);
    (0..6).filter_map(digit).collect()
}

impl Drop for TempHome {
    fn drop(&mut self) {
        end_all(&self.home());
        // Nobody is left to be told.
        let _ = std::fs::remove_dir_all(&self.runtime);
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

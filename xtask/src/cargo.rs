//! One call of cargo: its arguments, its environment, and how a person would type it.
//! Output streams through; what a failure means is left to the caller.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::{Context, Result, ensure};

/// A cargo command to be run at the root of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    root: PathBuf,
    env: Vec<(&'static str, &'static str)>,
    args: Vec<OsString>,
}

impl Invocation {
    /// Makes a command from words that are separated by spaces.
    pub(crate) fn new(root: &Path, words: &str) -> Self {
        let args = words.split_whitespace().map(OsString::from).collect();
        Self { root: root.to_path_buf(), env: Vec::new(), args }
    }

    /// Adds arguments as they are.
    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment for this command.
    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Runs the command to its end with our own input and output.
    pub(crate) fn status(&self) -> Result<ExitStatus> {
        self.command().status().context(|| format!("cannot run `{self}`"))
    }

    /// Runs the command to its end; anything but success is an error that names the exit status.
    pub(crate) fn succeed(&self) -> Result<()> {
        let status = self.status()?;
        ensure(status.success(), || status.to_string())?;
        Ok(())
    }

    /// Tells whether the command can be run and succeeds; shows nothing of its output.
    pub(crate) fn is_available(&self) -> bool {
        let quiet = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        // Cargo names itself in CARGO when it runs us: the same toolchain for every step.
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(&self.args).envs(self.env.iter().copied()).current_dir(&self.root);
        command
    }
}

/// Shows the command as a person would type it in a shell.
impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value.as_ref()))?;
        }
        write!(f, "cargo")?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

/// Puts a word in single quotes if a shell would read it as anything but one plain word.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        let doc = Invocation::new(Path::new("."), "doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");

        let test = Invocation::new(Path::new("."), "test --").args(["it's", "", "a::b"]);
        assert_eq!(test.to_string(), r"cargo test -- 'it'\''s' '' a::b");
    }

    #[test]
    fn only_a_command_that_succeeds_is_available() {
        let unknown = Invocation::new(Path::new("."), "--no-such-flag-of-cargo");
        assert!(!unknown.is_available());
        assert!(Invocation::new(Path::new("."), "--version").is_available());
    }
}

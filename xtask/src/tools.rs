//! Programs of the machine that tests use beside Rust's own. One that is missing is installed where the machine is ours
//! to change, or is named with the command that installs it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::failure::{Context, Failure, Result, ensure};

/// A program.
pub(crate) struct Tool {
    /// What it is for.
    purpose: &'static str,
    /// What shows that it is there.
    probe: &'static [&'static str],
    /// The package that brings it, where there is `apt-get`.
    package: &'static str,
}

/// Runs the examples of the documentation.
const CURL: Tool =
    Tool { purpose: "runs the examples of docs/http-api.md", probe: &["curl", "--version"], package: "curl" };

/// Runs the fuzzer.
pub(crate) const PYTHON: Tool = Tool {
    purpose: "runs the fuzzer of the HTTP interface",
    probe: &["python3", "-c", "import ensurepip, venv"],
    package: "python3-venv",
};

/// Is a database of tasks, each test's own.
const POSTGRES: Tool = Tool {
    purpose: "is the database that tasks are written to in tests",
    probe: &["sh", "-c", "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb"],
    package: "postgresql",
};

/// All of them.
pub(crate) const ALL: [Tool; 3] = [CURL, PYTHON, POSTGRES];

/// How a person gets them all.
pub(crate) const INSTALL: &str = "apt-get install curl python3-venv postgresql";

impl Tool {
    fn is_there(&self) -> bool {
        succeeds(self.probe)
    }

    /// Makes sure that it is there.
    pub(crate) fn ensure(&self) -> Result<()> {
        if self.is_there() {
            return Ok(());
        }
        let Tool { purpose, package, .. } = self;
        let missing = format!(
            "{package}, which {purpose}, is missing; on Debian and Ubuntu: apt-get install {package}"
        );
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !is_root || !succeeds(&["apt-get", "--version"]) {
            return Err(Failure::new(missing));
        }
        println!("installing {package}, which {purpose}");
        // The list of packages may be older than the packages, or not there at all.
        if install(package).is_err() {
            apt(&["update"]).and_then(|()| install(package)).context(|| missing.clone())?;
        }
        ensure(self.is_there(), || missing)?;
        Ok(())
    }
}

fn install(package: &str) -> Result<()> {
    apt(&["install", "--yes", "--no-install-recommends", package])
}

fn apt(words: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    quiet(&mut command)
}

fn succeeds(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a command; what it says is shown only if it fails.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().context(|| format!("cannot run {name}"))?;
    ensure(output.status.success(), || format!("{name}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_named_in_how_to_get_them() {
        for tool in &ALL {
            assert!(INSTALL.split(' ').any(|word| word == tool.package), "{}", tool.package);
        }
        assert!(succeeds(&["true"]) && !succeeds(&["false"]) && !succeeds(&["no-such-program-here"]));
    }
}

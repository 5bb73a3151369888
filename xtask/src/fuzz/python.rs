//! The fuzzer's own Python environment, below the target directory. Made once; made again when what it needs has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Context, Result};
use crate::tools::{self, quiet};

/// A Python environment.
pub(super) struct Python {
    bin: PathBuf,
}

impl Python {
    /// Makes sure that there is one with what `requirements.txt` of a directory names.
    pub(super) fn prepare(sources: &Path, target: &Path) -> Result<Python> {
        let wanted = fs::read(sources.join("requirements.txt")).context(|| "cannot read requirements.txt")?;
        let home = target.join("fuzz-python");
        let (bin, stamp) = (home.join("bin"), home.join("installed.txt"));
        if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(Python { bin });
        }
        tools::PYTHON.ensure()?;
        println!("installing the fuzzer into {}", home.display());
        quiet(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(bin.join("python3"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        quiet(pip.arg(sources.join("requirements.txt")))
            .context(|| "the fuzzer cannot be installed from PyPI")?;
        fs::write(&stamp, wanted).context(|| "cannot note what is installed")?;
        Ok(Python { bin })
    }

    /// Returns one of its programs.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

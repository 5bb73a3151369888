//! A trial of packages as somebody who installs them has it: unpacked where nothing else is, with an empty home, the demonstration is run.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;

use crate::Result;

/// Tries an archive.
pub(crate) fn archive(path: &Path, below: &str) -> Result<()> {
    tried(path, |dir| {
        tar::Archive::new(GzDecoder::new(File::open(path)?)).unpack(dir)?;
        Ok(dir.join(below))
    })
}

/// Tries a Debian package; nothing of it goes into the system.
pub(crate) fn package(path: &Path) -> Result<()> {
    tried(path, |dir| {
        let mut members = ar::Archive::new(File::open(path)?);
        while let Some(member) = members.next_entry() {
            let member = member?;
            if member.header().identifier() == b"data.tar.gz" {
                tar::Archive::new(GzDecoder::new(member)).unpack(dir)?;
            }
        }
        Ok(dir.join("usr/bin"))
    })
}

/// Unpacks a package and runs what is in it.
fn tried(path: &Path, unpack: impl Fn(&Path) -> io::Result<std::path::PathBuf>) -> Result<()> {
    let told = |error: io::Error| format!("{} could not be tried: {error}", path.display());
    let dir = tempfile::tempdir().map_err(told)?;
    let binaries = unpack(dir.path()).map_err(told)?;
    let home = dir.path().join("home");
    fs::create_dir(&home).map_err(told)?;
    eprintln!("trying {}", path.display());
    for words in ["--version", "demo"] {
        let mut command = Command::new(binaries.join("rekindle"));
        // Nobody's settings but those of the empty home.
        command.arg(words).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin").current_dir(&home);
        let output = command.stdin(Stdio::null()).output().map_err(told)?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            return Err(format!("{}: `rekindle {words}`: {}\n{said}", path.display(), output.status));
        }
    }
    Ok(())
}

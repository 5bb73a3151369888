//! What packages have in them: the binaries, and what they say of themselves (man pages, completions).

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Result, elf};

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Where it goes, below the directory that is packed.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) executable: bool,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> File {
        File { path: path.into(), bytes: bytes.into(), executable: false }
    }
}

/// Everything that packages have in them, each kind by itself: archives and Debian put them into different places.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The binaries, by name.
    pub(crate) binaries: Vec<File>,
    /// Man pages, by name.
    pub(crate) manuals: Vec<File>,
    /// Completions: shell, text.
    pub(crate) completions: Vec<(&'static str, Vec<u8>)>,
    /// README and licenses, by name.
    pub(crate) texts: Vec<File>,
    /// The user unit.
    pub(crate) unit: Vec<u8>,
}

const BINARIES: [&str; 2] = ["rekindle", "rekindle-holder"];
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
const TEXTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Where the user unit is in the workspace.
const UNIT: &str = "ops/systemd/rekindle.service";

impl Contents {
    /// Gathers everything: binaries must be linked statically, unless any linking will do.
    pub(crate) fn gather(root: &Path, binaries: &Path, any_linking: bool) -> Result<Contents> {
        let mut contents = Contents { unit: read(&root.join(UNIT))?, ..Contents::default() };
        for name in BINARIES {
            let path = binaries.join(name);
            let bytes = read(&path)?;
            match elf::interpreter(&bytes) {
                Err(what) => return Err(format!("{}: {what}", path.display())),
                Ok(Some(linker)) if !any_linking => {
                    return Err(format!("{} needs {linker}: it is not linked statically", path.display()));
                }
                Ok(_) => contents.binaries.push(File { executable: true, ..File::new(name, bytes) }),
            }
        }
        for name in TEXTS {
            contents.texts.push(File::new(name, read(&root.join(name))?));
        }
        let program = binaries.join(BINARIES[0]);
        for shell in SHELLS {
            contents.completions.push((shell, said_by(&program, &["completions", shell])?));
        }
        contents.manuals = manuals(&program)?;
        Ok(contents)
    }

    /// Returns the files as an archive has them: all below one directory.
    pub(crate) fn for_archive(&self, below: &str) -> Vec<File> {
        let mut files = [&self.binaries[..], &self.texts].concat();
        files.push(File::new("rekindle.service", self.unit.clone()));
        for (shell, text) in &self.completions {
            files.push(File::new(format!("completions/rekindle.{shell}"), text.clone()));
        }
        files.extend(
            self.manuals.iter().map(|page| File { path: format!("man/{}", page.path), ..page.clone() }),
        );
        for file in &mut files {
            file.path.insert_str(0, &format!("{below}/"));
        }
        files
    }
}

/// Has the program write its man pages.
fn manuals(program: &Path) -> Result<Vec<File>> {
    let told = |error: std::io::Error| format!("man pages: {error}");
    let dir = tempfile::tempdir().map_err(told)?;
    let out = dir.path().to_str().ok_or("the temporary directory is no text")?;
    said_by(program, &["man", "--out", out])?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(dir.path()).map_err(told)? {
        let entry = entry.map_err(told)?;
        pages.push(File::new(entry.file_name().to_string_lossy(), read(&entry.path())?));
    }
    if pages.is_empty() {
        return Err(format!("{} wrote no man pages", program.display()));
    }
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(pages)
}

/// Runs the program; returns what it says.
fn said_by(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let called = format!("{} {}", program.display(), words.join(" "));
    let output = Command::new(program).args(words).output().map_err(|error| format!("{called}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{called}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

//! `rekindle-dist`: makes what others install from binaries that are built already: an archive and a Debian package, tried in an empty
//! directory, with their checksums. `cargo xtask dist` builds the binaries and calls it.

mod archive;
mod arguments;
mod contents;
mod debian;
mod elf;
mod target;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sha2::{Digest as _, Sha256};

use crate::arguments::Arguments;
use crate::contents::Contents;

/// What went wrong, in words.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args_os().skip(1)).and_then(|arguments| make(&arguments)) {
        Ok(files) => {
            for file in files {
                println!("{}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes both packages and tries them; returns the files that were made.
fn make(arguments: &Arguments) -> Result<Vec<PathBuf>> {
    let Arguments { binaries, root, target, out, .. } = arguments;
    let contents = Contents::gather(root, binaries, arguments.any_linking)?;
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let version = env!("CARGO_PKG_VERSION");
    let archive = target.archive_name(version);
    let package = target.package_name(version);
    let made = [
        (format!("{archive}.tar.gz"), archive::make(&contents.for_archive(&archive), arguments.epoch)?),
        (package, debian::make(&contents, target, version, arguments.epoch)?),
    ];
    let mut files = Vec::new();
    let mut sums = String::new();
    for (name, bytes) in made {
        sums.push_str(&format!("{}  {name}\n", hex(&Sha256::digest(&bytes))));
        let path = out.join(name);
        write(&path, &bytes)?;
        eprintln!("{}: {:.1} MiB", path.display(), bytes.len() as f64 / f64::from(1 << 20));
        files.push(path);
    }
    trial::archive(&files[0], &archive)?;
    trial::package(&files[1])?;
    let path = out.join("SHA256SUMS");
    write(&path, sums.as_bytes())?;
    files.push(path);
    Ok(files)
}

/// Writes a file as a whole: under its name is never half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let told = |error| format!("{}: {error}", path.display());
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    fs::write(&name, bytes).map_err(told)?;
    fs::rename(&name, path).map_err(told)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

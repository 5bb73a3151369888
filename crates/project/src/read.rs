//! Reading the file: one that is not there, too large or no text is told before anybody looks for what it says.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::ProjectConfig;

use crate::check::{Located, check};

/// What the file is called.
pub const FILE: &str = "rekindle.toml";

/// The most bytes of a file that anybody would write.
const MOST_BYTES: u64 = 1 << 20;

/// The error of a file that cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("{} cannot be read", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is there.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It has more bytes than anybody would write.
    #[error("{} is larger than {MOST_BYTES} bytes", path.display())]
    TooLarge {
        /// Where it is.
        path: PathBuf,
    },
}

impl ReadError {
    fn of(path: &Path, source: io::Error) -> ReadError {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::NotFound => ReadError::Missing { path, source },
            _ => ReadError::Unreadable { path, source },
        }
    }
}

/// A file that is right.
#[derive(Debug)]
pub struct ReadFile {
    /// What is written there.
    pub text: String,
    /// What that says.
    pub config: ProjectConfig,
    /// BLAKE3 of its bytes, by which it is trusted.
    pub hash: BlobId,
}

/// Reads a file and checks it; returns what it says, or everything that is wrong with it.
pub fn read(path: &Path) -> Result<Result<ReadFile, Vec<Located>>, ReadError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| ReadError::of(path, error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => {
            let hash = BlobId::of(text.as_bytes());
            check(&text).map(|config| ReadFile { text, config, hash })
        }
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let what = "this is not valid UTF-8; save the file as UTF-8".to_owned();
            Err(vec![Located::new(&String::from_utf8_lossy(error.as_bytes()), good, None, what)])
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::starting_file::{Roles, text};

    #[test]
    fn what_is_no_file_too_large_or_no_text_is_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        assert!(matches!(read(&path), Err(ReadError::Missing { .. })));
        assert!(matches!(read(dir.path()), Err(ReadError::Unreadable { .. })));
        fs::write(&path, " ".repeat(MOST_BYTES as usize + 1)).expect("written");
        assert!(matches!(read(&path), Err(ReadError::TooLarge { .. })));
        fs::write(&path, b"version = 1\n# \xff").expect("written");
        let problems = read(&path).expect("read").expect_err("no text");
        let told: Vec<String> = problems.iter().map(|problem| problem.text(Path::new(FILE))).collect();
        assert_eq!(told, ["rekindle.toml:2:3: this is not valid UTF-8; save the file as UTF-8"]);
        fs::write(&path, text(Roles::Demo, None)).expect("written");
        assert!(read(&path).expect("read").is_ok());
    }
}

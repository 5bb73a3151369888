//! Artifacts looked at: the hash of a file beneath a directory, reached without following a link.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rekindle_domain::pipeline::artifact::ArtifactError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// How a directory on the way is opened; it need not be readable.
const ON_THE_WAY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// How a file is opened: one that is a pipe by now is not waited for.
const TO_READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Returns the SHA-256 of a file, as hex digits. The path is one beneath the root, without dots.
pub(super) fn sha256_of(root: &Path, path: &str) -> Result<String, ArtifactError> {
    let unreadable =
        |error: io::Error| ArtifactError::Unreadable { path: path.to_owned(), why: error.to_string() };
    // Links above the root and the root itself are the caller's business.
    let opened = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let mut place = opened.map_err(|errno| unreadable(errno.into()))?;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        // What it is when it is opened decides; this says only what to tell.
        match statat(&place, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| FileType::from_raw_mode(stat.st_mode))
        {
            Ok(FileType::Symlink) => return Err(ArtifactError::Symlink(path.to_owned())),
            Ok(FileType::RegularFile) if is_last => {}
            Ok(FileType::Directory) if !is_last => {}
            Ok(_) if is_last => return Err(ArtifactError::NoFile(path.to_owned())),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => return Err(ArtifactError::Missing(path.to_owned())),
            Err(errno) => return Err(unreadable(errno.into())),
        }
        let flags = if is_last { TO_READ } else { ON_THE_WAY };
        place = match openat(&place, name, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::LOOP) => return Err(ArtifactError::Symlink(path.to_owned())),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(ArtifactError::Missing(path.to_owned())),
            Err(errno) => return Err(unreadable(errno.into())),
        };
    }
    let stat = fstat(&place).map_err(|errno| unreadable(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ArtifactError::NoFile(path.to_owned()));
    }
    hash(File::from(place)).map_err(unreadable)
}

fn hash(mut file: File) -> io::Result<String> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; BUFFER_BYTES]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rekindle_domain::token::sha256_hex;

    use super::*;

    #[test]
    fn a_file_is_hashed_and_nothing_is_reached_through_a_link() {
        let dir = tempfile::tempdir().expect("a directory");
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(root.join("out/deep")).expect("made");
        fs::create_dir_all(&outside).expect("made");
        let long = vec![b'x'; BUFFER_BYTES + 7];
        fs::write(root.join("out/deep/a"), &long).expect("written");
        fs::write(outside.join("secret"), "secret").expect("written");
        symlink(&outside, root.join("away")).expect("linked");
        symlink(root.join("out/deep/a"), root.join("alias")).expect("linked");
        symlink("nowhere", root.join("dangling")).expect("linked");
        rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
        assert_eq!(sha256_of(&root, "out/deep/a").expect("there"), sha256_hex(&long));
        for (path, name) in [
            ("away/secret", "artifact_symlink"),
            ("alias", "artifact_symlink"),
            ("dangling", "artifact_symlink"),
            ("none", "artifact_missing"),
            ("none/a", "artifact_missing"),
            ("out/deep/a/b", "artifact_missing"),
            ("out/deep", "artifact_no_file"),
            ("pipe", "artifact_no_file"),
        ] {
            let error = sha256_of(&root, path).expect_err(path).to_string();
            assert!(error.starts_with(name), "{path}: {error}");
        }
        // Links above the root are followed: which directory it is, is not the agent's choice.
        symlink(&root, dir.path().join("link")).expect("linked");
        assert!(sha256_of(&dir.path().join("link"), "out/deep/a").is_ok());
    }
}

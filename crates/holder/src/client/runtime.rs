//! Where sockets live: the user's runtime directory, or one of our own that nobody else can have made.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::spawn::MAX_SOCKET_PATH;

/// `/`, sixteen digits, `.sock`.
const SOCKET_NAME: usize = 22;

/// Why there is no place for sockets.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// It is not ours alone.
    #[error(
        "{path} is not a directory of ours alone ({why}): remove it, or set XDG_RUNTIME_DIR to a directory of your own"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// It is too deep: the kernel takes only short paths of sockets.
    #[error("{path} is too long for sockets: set XDG_RUNTIME_DIR or TMPDIR to a shorter path")]
    TooLong {
        /// The directory.
        path: PathBuf,
    },
    /// It could not be made.
    #[error("cannot make {path}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Finds or makes the directory for sockets: `rekindle` in the user's runtime directory where there is a usable
/// one, else one with the user's number in the temporary directory, which others can write to as well.
pub fn runtime_dir(
    user_runtime: Option<&Path>,
    temporary: &Path,
    uid: u32,
) -> Result<PathBuf, RuntimeDirError> {
    let usable = |base: &&Path| {
        base.is_absolute()
            && base.as_os_str().len() + "/rekindle".len() + SOCKET_NAME <= MAX_SOCKET_PATH
            && std::fs::metadata(base).is_ok_and(|there| there.is_dir() && there.uid() == uid)
    };
    let path = match user_runtime.filter(usable) {
        Some(base) => base.join("rekindle"),
        None => temporary.join(format!("rekindle-{uid}")),
    };
    if path.as_os_str().len() + SOCKET_NAME > MAX_SOCKET_PATH {
        return Err(RuntimeDirError::TooLong { path });
    }
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(RuntimeDirError::Io { path, source: error });
        }
        _ => {}
    }
    let there = match std::fs::symlink_metadata(&path) {
        Ok(there) => there,
        Err(source) => return Err(RuntimeDirError::Io { path, source }),
    };
    let why = if !there.is_dir() {
        "it is something else"
    } else if there.uid() != uid {
        "it belongs to another user"
    } else if there.mode() & 0o077 != 0 {
        "others have access"
    } else {
        return Ok(path);
    };
    Err(RuntimeDirError::NotOurs { path, why })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn the_users_directory_comes_first_and_our_own_otherwise() {
        let (user, temporary) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("one"));
        let own = temporary.path().join(format!("rekindle-{}", uid()));
        for (given, expected) in [
            (Some(user.path()), &user.path().join("rekindle")),
            (None, &own),
            (Some(Path::new("relative")), &own),
            (Some(Path::new("/nowhere/at/all")), &own),
        ] {
            // Twice: the second time it is there already.
            for _ in 0..2 {
                assert_eq!(&runtime_dir(given, temporary.path(), uid()).expect("a directory"), expected);
            }
            let mode = std::fs::metadata(expected).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn what_others_can_reach_or_made_is_not_used() {
        let temporary = tempfile::tempdir().expect("one");
        let path = temporary.path().join(format!("rekindle-{}", uid()));
        let refused = || match runtime_dir(None, temporary.path(), uid()) {
            Err(RuntimeDirError::NotOurs { why, .. }) => why,
            other => panic!("refused, not {other:?}"),
        };
        std::fs::create_dir(&path).expect("made");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o770)).expect("set");
        assert_eq!(refused(), "others have access");
        std::fs::remove_dir(&path).expect("removed");
        symlink("/", &path).expect("linked");
        assert_eq!(refused(), "it is something else");
        let other = temporary.path().join(format!("rekindle-{}", uid() + 1));
        std::fs::create_dir(other).expect("made");
        let foreign = runtime_dir(None, temporary.path(), uid() + 1);
        assert!(matches!(foreign, Err(RuntimeDirError::NotOurs { why: "it belongs to another user", .. })));
    }

    #[test]
    fn a_path_that_no_socket_fits_under_is_told() {
        let temporary = tempfile::tempdir().expect("one");
        let deep = temporary.path().join("d".repeat(MAX_SOCKET_PATH));
        assert!(matches!(runtime_dir(None, &deep, uid()), Err(RuntimeDirError::TooLong { .. })));
        assert!(!deep.exists());
    }
}

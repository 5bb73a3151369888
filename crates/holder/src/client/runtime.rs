//! Where sockets live: the user's runtime directory, or one of our own that nobody else can have made.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::spawn::MAX_SOCKET_PATH;
use crate::file_ops::{AtPath, PathError};

/// `/`, sixteen digits, `.sock`.
const SOCKET_NAME: usize = 22;

/// Why there is no place for sockets.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    /// It is not ours alone.
    #[error(
        "{path} is not a private directory of this user ({why}): remove it, or set XDG_RUNTIME_DIR to a directory of your own"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// It is too deep: the kernel takes only short paths of sockets.
    #[error("{0} is too long for a socket: set XDG_RUNTIME_DIR or TMPDIR to a shorter path")]
    TooLong(PathBuf),
    /// It could not be made.
    #[error(transparent)]
    Io(#[from] PathError),
}

/// Finds or makes the directory for sockets as [`runtime_dir`] does. In the temporary directory anyone may have taken the name
/// before us: then it is another one, that nobody can foresee, and what is wrong with the first is told.
pub fn runtime_dir_or_another(
    user_runtime: Option<&Path>,
    temporary: &Path,
    uid: u32,
) -> Result<(PathBuf, Option<RuntimeDirError>), RuntimeDirError> {
    let taken = match runtime_dir(user_runtime, temporary, uid) {
        Ok(path) => return Ok((path, None)),
        Err(error @ RuntimeDirError::NotOurs { .. }) => error,
        Err(error) => return Err(error),
    };
    // What is in a directory of the user's own is the user's to put right.
    if matches!(&taken, RuntimeDirError::NotOurs { path, .. } if path.parent() != Some(temporary)) {
        return Err(taken);
    }
    let prefix = format!("rekindle-{uid}-");
    // One that we made before is as good.
    let before = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    let mut before: Vec<PathBuf> = before
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .filter(|path| is_ours_alone(path, uid).is_ok_and(|why| why.is_none()))
        .collect();
    before.sort();
    let path = match before.into_iter().next() {
        Some(path) => path,
        None => {
            let mut word = [0; 8];
            let random = getrandom::fill(&mut word).map_err(io::Error::other);
            let path = temporary.join(format!("{prefix}{:016x}", u64::from_le_bytes(word)));
            random.and_then(|()| DirBuilder::new().mode(0o700).create(&path)).at_path("make", &path)?;
            path
        }
    };
    if path.as_os_str().len() + SOCKET_NAME > MAX_SOCKET_PATH {
        return Err(RuntimeDirError::TooLong(path));
    }
    Ok((path, Some(taken)))
}

/// Tells what keeps a directory from being ours alone, if anything does.
fn is_ours_alone(path: &Path, uid: u32) -> io::Result<Option<&'static str>> {
    let there = std::fs::symlink_metadata(path)?;
    Ok(if !there.is_dir() {
        Some("it is something else")
    } else if there.uid() != uid {
        Some("it belongs to another user")
    } else if there.mode() & 0o077 != 0 {
        Some("other users have access")
    } else {
        None
    })
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
        return Err(RuntimeDirError::TooLong(path));
    }
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.at_path("make", &path)?,
    }
    match is_ours_alone(&path, uid).at_path("make", &path)? {
        None => Ok(path),
        Some(why) => Err(RuntimeDirError::NotOurs { path, why }),
    }
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
        assert_eq!(refused(), "other users have access");
        std::fs::remove_dir(&path).expect("removed");
        symlink("/", &path).expect("linked");
        assert_eq!(refused(), "it is something else");
        let other = temporary.path().join(format!("rekindle-{}", uid() + 1));
        std::fs::create_dir(other).expect("made");
        let foreign = runtime_dir(None, temporary.path(), uid() + 1);
        assert!(matches!(foreign, Err(RuntimeDirError::NotOurs { why: "it belongs to another user", .. })));
    }

    #[test]
    fn a_name_that_someone_else_took_keeps_nobody_from_starting() {
        let temporary = tempfile::tempdir().expect("one");
        let squatted = temporary.path().join(format!("rekindle-{}", uid()));
        std::fs::write(&squatted, "").expect("taken");
        // Nor do those who took others.
        std::fs::write(temporary.path().join(format!("rekindle-{}-0", uid())), "").expect("taken");
        let (path, why) = runtime_dir_or_another(None, temporary.path(), uid()).expect("another");
        assert!(matches!(why, Some(RuntimeDirError::NotOurs { path, .. }) if path == squatted));
        assert_eq!(is_ours_alone(&path, uid()).expect("there"), None);
        let (again, _) = runtime_dir_or_another(None, temporary.path(), uid()).expect("another");
        assert_eq!(again, path, "it is found again");
        std::fs::remove_file(&squatted).expect("removed");
        let (path, why) = runtime_dir_or_another(None, temporary.path(), uid()).expect("the first");
        assert_eq!((path, why.is_none()), (squatted, true));
        // In the user's own directory it is the user who has to put it right.
        let own = tempfile::tempdir().expect("one");
        std::fs::write(own.path().join("rekindle"), "").expect("written");
        let refused = runtime_dir_or_another(Some(own.path()), temporary.path(), uid());
        assert!(matches!(refused, Err(RuntimeDirError::NotOurs { .. })));
    }

    #[test]
    fn a_path_that_no_socket_fits_under_is_told() {
        let temporary = tempfile::tempdir().expect("one");
        let deep = temporary.path().join("d".repeat(MAX_SOCKET_PATH));
        assert!(matches!(runtime_dir(None, &deep, uid()), Err(RuntimeDirError::TooLong { .. })));
        assert!(!deep.exists());
    }
}

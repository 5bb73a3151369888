//! The directory that a fork's files are restored in: a new one, an empty one, or one that somebody insists on.

use std::fs::File;
use std::io;
use std::path::Path;

use rekindle_domain::session::SessionState;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::NewFork;

use crate::commands::open_runs::refuse_open_runs;
use crate::commands::working_directory::{check_directory, unusable};
use crate::error::{Result, ServiceError};
use crate::show::Views;

/// Makes the directory of a fork with files ready for them, unless something speaks against it. That of its parent is as it is, and
/// what is lost there is kept like everywhere.
pub(super) fn make_ready(views: &Views, parent: &SessionState, new: &NewFork) -> Result<()> {
    let own = new.working_dir.as_ref().filter(|directory| **directory != parent.working_dir);
    if !new.force {
        refuse_open_runs(views, Path::new(own.unwrap_or(&parent.working_dir)))?;
    }
    let user_home = views.workers.agents.environment.own_variable("HOME");
    match own {
        Some(directory) => prepare(directory, new.force, user_home),
        None => check_directory(&parent.working_dir),
    }
}

/// Makes a directory if it is not there, durably, and refuses one that has something in it, which the restore would replace; the root
/// and a home directory whoever insists.
fn prepare(directory: &str, force: bool, user_home: Option<&str>) -> Result<()> {
    let place = Path::new(directory);
    let invalid = |why: String| unusable(directory, &why);
    if !place.is_absolute() {
        return Err(invalid("its path is not absolute".to_owned()));
    }
    let whole =
        make(place).and_then(|()| place.canonicalize()).map_err(|error| invalid(error.to_string()))?;
    let user_home = user_home.and_then(|home| Path::new(home).canonicalize().ok());
    if whole.parent().is_none() || user_home.is_some_and(|home| home == whole) {
        return Err(invalid("files can be restored only below it".to_owned()));
    }
    let mut entries = place.read_dir().map_err(|error| invalid(error.to_string()))?;
    if force || entries.next().is_none() {
        return Ok(());
    }
    let message = format!("{directory} is not empty: its files would be replaced");
    Err(ServiceError::new(Code::DirectoryNotEmpty, message).hint(Hint::NameEmptyDirectory))
}

/// Makes a directory and those above it that are missing; each is on disk before it is relied on.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(above) = directory.parent() else { return Err(error) };
            make(above)?;
            std::fs::create_dir(directory)?;
        }
        made => made?,
    }
    directory.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_new_or_empty_or_insisted_on() {
        let place = tempfile::tempdir().expect("a directory");
        let name = |path: &str| place.path().join(path).display().to_string();
        let home = name("home");
        let prepare = |path: &str, force| prepare(path, force, Some(&home));
        let refused = |path: &str, force| prepare(path, force).expect_err("refused").code;
        for _ in 0..2 {
            prepare(&name("a/b/c"), false).expect("made, or empty");
        }
        std::fs::create_dir(&home).expect("made");
        std::fs::write(name("a/file"), "").expect("written");
        assert_eq!(refused(&name("a"), false), Code::DirectoryNotEmpty);
        prepare(&name("a"), true).expect("insisted on");
        for path in
            ["/", "/..", "relative", "", &home, &name("a/../home"), &name("a/file"), &name("a/file/below")]
        {
            assert_eq!(refused(path, true), Code::InvalidWorkingDir, "{path}");
        }
    }
}

//! Values that nobody is shown: addresses of webhooks, keys of signatures, headers. They are read when they are used, so that one that is
//! changed counts from the next delivery on and none is kept in memory for longer.

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::machine::Machine;

/// Most bytes of a file with a secret.
const MAX_FILE: u64 = 4 << 10;

/// Where a secret value is: in the configuration itself, in a variable (`env:NAME`), or in a file (`file:PATH`).
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum SecretSource {
    /// In the configuration.
    Text(String),
    /// In a variable of the environment.
    Variable(String),
    /// In a file that nobody else may read.
    File(PathBuf),
}

impl From<String> for SecretSource {
    fn from(written: String) -> SecretSource {
        if let Some(name) = written.strip_prefix("env:") {
            SecretSource::Variable(name.to_owned())
        } else if let Some(path) = written.strip_prefix("file:") {
            SecretSource::File(path.into())
        } else {
            SecretSource::Text(written)
        }
    }
}

/// Where it is, not what it is.
impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Text(_) => f.write_str("…"),
            SecretSource::Variable(name) => write!(f, "env:{name}"),
            SecretSource::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl SecretSource {
    /// Reads the value, or says why there is none.
    pub(crate) fn read(&self, machine: &dyn Machine) -> Result<String, String> {
        match self {
            SecretSource::Text(text) => Ok(text.clone()),
            SecretSource::Variable(name) => match machine.variable(name) {
                Some(value) if !value.trim().is_empty() => Ok(value.trim().to_owned()),
                _ => Err(format!(
                    "the variable {name} is not set in this environment: set it where the daemon is started"
                )),
            },
            SecretSource::File(path) => read_file(path),
        }
    }
}

/// Reads a file that nobody else could have written or read.
fn read_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| format!("{shown} cannot be read: {error}");
    // Not even a pipe without a writer may keep us.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut file =
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("{shown} is not a regular file"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{shown} belongs to another user"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(format!("other users can read or write {shown}: chmod 600 it"));
    }
    let mut text = String::new();
    (&mut file).take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.trim() {
        "" => Err(format!("{shown} is empty")),
        _ if text.len() as u64 > MAX_FILE => Err(format!("{shown} is larger than {MAX_FILE} bytes")),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::fake_machine::FakeMachine;

    #[test]
    fn a_secret_is_read_from_where_it_is_and_never_shown() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("key");
        std::fs::write(&file, "hunter2\n").expect("written");
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("mode");
        let machine = FakeMachine::with_variable("KEY", " hunter2 ");
        let named = format!("file:{}", file.display());
        for written in ["hunter2", "env:KEY", &named] {
            let source = SecretSource::from(written.to_owned());
            assert_eq!(source.read(&machine).as_deref(), Ok("hunter2"));
            assert!(!format!("{source:?}").contains("hunter2"));
        }
        let missing = SecretSource::from("env:NONE".to_owned()).read(&machine).expect_err("none");
        assert!(missing.contains("NONE"), "{missing}");

        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("mode");
        let source = SecretSource::from(named);
        assert!(source.read(&machine).expect_err("too open").contains("chmod 600"));
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("mode");
        for (contents, words) in [(String::new(), "empty"), ("x".repeat(5000), "larger")] {
            std::fs::write(&file, contents).expect("written");
            assert!(source.read(&machine).expect_err(words).contains(words));
        }
        std::fs::remove_file(&file).expect("removed");
        assert!(source.read(&machine).expect_err("gone").contains("cannot be read"));
        let directory = SecretSource::File(directory.path().to_owned());
        assert!(directory.read(&machine).is_err());
    }
}

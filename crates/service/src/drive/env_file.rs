//! The file of an agent's variables: what a daemon gives an agent beyond its own environment, so that after a restart nobody has to bring
//! it again. It is read at each launch, and only if nobody else could have written or read it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Values of variables, by name.
type Variables = BTreeMap<String, String>;

/// Most bytes of such a file.
const MOST: u64 = 64 << 10;

/// Reads the variables of a file, or says why it is not used. Values are told to nobody.
pub(super) fn read(path: &Path) -> Result<Variables, String> {
    let shown = path.display();
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let about = file.metadata().map_err(|error| format!("{shown} cannot be read: {error}"))?;
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
    let read = (&mut file).take(MOST + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if text.len() as u64 > MOST {
        return Err(format!("{shown} is larger than {MOST} bytes"));
    }
    parse(&text).map_err(|line| format!("line {line} of {shown} is not NAME=VALUE"))
}

/// Reads lines of `NAME=VALUE`, or returns the number of the first that is none.
fn parse(text: &str) -> Result<Variables, usize> {
    let mut env = Variables::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(number)?;
        let name = name.trim();
        let is_name = |name: &str| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if name.is_empty() || !is_name(name) || value.contains('\0') {
            return Err(number);
        }
        env.insert(name.to_owned(), unquoted(value.trim()).to_owned());
    }
    Ok(env)
}

/// Takes away quotes around a value.
fn unquoted(value: &str) -> &str {
    let quotes = ['"', '\''].into_iter();
    let mut inner = quotes.filter_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inner.next().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn lines_are_variables_and_nothing_else() {
        let text = "# for the agent\n\nKEY=a=b\nexport  OTHER = 'x y' \nEMPTY=\nQUOTED=\"z\"\n";
        let env = parse(text).expect("variables");
        let found: Vec<(&str, &str)> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("EMPTY", ""), ("KEY", "a=b"), ("OTHER", "x y"), ("QUOTED", "z")]);
        for (bad, line) in [("KEY", 1), ("A=1\n=2", 2), ("A B=1", 1), ("A=1\nB=\0", 2)] {
            assert_eq!(parse(bad), Err(line), "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_none_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("env");
        assert!(read(&path).is_err_and(|why| why.contains("cannot be read")));
        std::fs::write(&path, "KEY=secret\n").expect("written");
        for (mode, is_used) in [(0o600, true), (0o400, true), (0o640, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("changed");
            let found = read(&path);
            assert_eq!(found.is_ok(), is_used, "{mode:o}");
            assert!(found.err().is_none_or(|why| why.contains("chmod 600") && !why.contains("secret")));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("changed");
        std::fs::write(&path, "KEY secret\n").expect("written");
        assert!(read(&path).is_err_and(|why| why.contains("line 1") && !why.contains("secret")));
        assert!(read(directory.path()).is_err_and(|why| why.contains("not a regular file")));
    }
}

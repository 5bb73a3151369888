//! Paths of a workspace as bytes: names from the root with `/` between them; the root itself is the empty path.
//! Also the names of temporaries, which no capture ever walks.

use std::fmt;

use rekindle_domain::blob_id::BlobId;

/// What the name of a temporary begins with.
const TEMPORARY_PREFIX: &[u8] = b".rekindle-";

/// What the name of a temporary ends with.
const TEMPORARY_SUFFIX: &[u8] = b".tmp";

/// Digits in the name of a temporary: enough that two paths of one directory never meet.
const TEMPORARY_DIGITS: usize = 16;

/// Returns the directory that a path is in, and its name there.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Returns the path of a name in a directory.
pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// Returns what follows a directory in a path that lies below it, slash included.
pub(super) fn below<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(directory).filter(|rest| rest.first() == Some(&b'/'))
}

/// Returns the path itself and every directory above it but the root, innermost first.
pub(super) fn with_ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| Some(split(path).0)).take_while(|path| !path.is_empty())
}

/// Returns where something is made before it gets its place: beside that, under a name that only restores use.
///
/// The name follows from the tree and the path, so that a rerun meets what it left and needs no number of its own.
pub(super) fn temporary(wanted: &BlobId, path: &[u8]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(wanted.as_bytes()).update(path);
    let digits = hasher.finalize().to_hex();
    let name = [TEMPORARY_PREFIX, &digits.as_bytes()[..TEMPORARY_DIGITS], TEMPORARY_SUFFIX].concat();
    join(split(path).0, &name)
}

/// A path as people read it: control characters are escaped, and bytes that are not UTF-8.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the root");
        }
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character.is_control() {
                    true => write!(f, "{}", character.escape_default())?,
                    false => write!(f, "{character}")?,
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::is_temporary;

    #[test]
    fn temporaries_are_beside_their_place_and_known_by_name() {
        let wanted = BlobId::of(b"tree");
        for path in [b"a".as_slice(), b"a/b/c", b"a/\xff"] {
            let temporary = temporary(&wanted, path);
            let (directory, name) = split(&temporary);
            assert_eq!(directory, split(path).0);
            assert!(is_temporary(name), "{}", Shown(name));
        }
        assert_ne!(temporary(&wanted, b"a"), temporary(&wanted, b"b"));
    }

    #[test]
    fn paths_are_taken_apart_at_slashes() {
        assert_eq!(split(b"a/b/c"), (b"a/b".as_slice(), b"c".as_slice()));
        assert_eq!(split(b"a"), (b"".as_slice(), b"a".as_slice()));
        assert_eq!(below(b"a/b", b"a"), Some(b"/b".as_slice()));
        assert_eq!((below(b"ab", b"a"), below(b"a", b"a")), (None, None));
        assert_eq!(with_ancestors(b"a/b/c").collect::<Vec<_>>(), [b"a/b/c".as_slice(), b"a/b", b"a"]);
        assert_eq!(Shown(b"a\n\xffb").to_string(), "a\\n\\xffb");
    }
}

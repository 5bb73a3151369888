//! Names that a file system may take for the same one although their bytes differ. Whether it does is found out only where it
//! would matter; trees with such names are rare.

use std::collections::HashMap;

/// Two paths of a wanted tree that a file system without case takes for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The directory of the workspace that tells whether its file system has case: theirs, or one above it.
    pub directory: Vec<u8>,
    /// One path.
    pub first: Vec<u8>,
    /// The other.
    pub second: Vec<u8>,
}

/// Returns the first two names (or paths) that differ in case alone.
pub(super) fn find<'a>(names: impl Iterator<Item = &'a [u8]>) -> Option<(&'a [u8], &'a [u8])> {
    let mut seen = HashMap::new();
    for name in names {
        if let Some(earlier) = seen.insert(fold(name), name) {
            return Some((earlier, name));
        }
    }
    None
}

/// Returns what names that differ in case alone have in common.
///
/// Upper case first: some letters (`ß`, `ſ`) meet others only there. Folding too much refuses too much, and only on file
/// systems that fold.
fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    match std::str::from_utf8(name) {
        Ok(text) => text.to_uppercase().to_lowercase().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_alone_collide() {
        let pairs = [("README", "readme"), ("Grün", "GRÜN"), ("straße", "STRASSE"), ("a/B", "A/b")];
        for (first, second) in pairs {
            let names = ["x", first, "y", second];
            let found = find(names.iter().map(|name| name.as_bytes()));
            assert_eq!(found, Some((first.as_bytes(), second.as_bytes())));
        }
        assert_eq!(find([b"a".as_slice(), b"b", b"\xff", b"\xfe", b"a "].into_iter()), None);
    }
}

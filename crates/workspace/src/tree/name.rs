//! Names that a tree may have, and those that would do harm where it is restored.
//! The rules for `.git` are git's own: a name that some file system takes for `.git` is refused on every one.

/// Why a name cannot be in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has no bytes.
    #[error("the name is empty")]
    Empty,
    /// It is `.` or `..`.
    #[error("the name is `.` or `..`")]
    Dots,
    /// It has a `/`.
    #[error("the name contains a slash")]
    Slash,
    /// It has a NUL.
    #[error("the name contains a NUL byte")]
    Nul,
    /// It is `.git`, or some file system takes it for that.
    #[error("the name is `.git`, or a file system would take it for that")]
    DotGit,
    /// It is longer than [`MAX_NAME_BYTES`](super::MAX_NAME_BYTES).
    #[error("the name is too long")]
    TooLong,
}

/// Checks that a tree may have an entry of this name.
pub fn check_name(name: &[u8]) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > super::MAX_NAME_BYTES {
        return Err(NameError::TooLong);
    }
    if name == b"." || name == b".." {
        return Err(NameError::Dots);
    }
    for byte in name {
        match byte {
            b'/' => return Err(NameError::Slash),
            0 => return Err(NameError::Nul),
            _ => {}
        }
    }
    if is_dot_git(name) { Err(NameError::DotGit) } else { Ok(()) }
}

/// Returns true if some file system takes the name for `.git`.
///
/// HFS+ ignores case and some invisible code points. NTFS ignores case, trailing dots and spaces, has `git~1` as the short
/// form, and takes what follows a `:` for the name of a stream (`.git::$INDEX_ALLOCATION` is the directory itself); `\`
/// separates paths there. Both sets of rules are applied at once, which refuses a little more than either.
fn is_dot_git(name: &[u8]) -> bool {
    // Most names end here: all disguises begin with a dot, a `g` or an invisible code point.
    if !matches!(name.first(), Some(b'.' | b'g' | b'G' | 0xe2 | 0xef)) {
        return false;
    }
    let mut seen = Visible(name);
    let rest = match seen.next() {
        Some(b'.') => b"git".as_slice(),
        Some(b'g' | b'G') => b"it~1".as_slice(),
        _ => return false,
    };
    for expected in rest {
        if seen.next().is_none_or(|byte| byte.to_ascii_lowercase() != *expected) {
            return false;
        }
    }
    loop {
        match seen.next() {
            None | Some(b':' | b'\\') => return true,
            Some(b'.' | b' ') => {}
            Some(_) => return false,
        }
    }
}

/// The bytes of a name without the code points that HFS+ ignores.
struct Visible<'a>(&'a [u8]);

impl Iterator for Visible<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while let Some(rest) = self.0.get(3..) {
            if !is_ignorable(&self.0[..3]) {
                break;
            }
            self.0 = rest;
        }
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

/// Returns true for a code point that HFS+ ignores, in UTF-8: U+200C–200F, U+202A–202E, U+206A–206F, U+FEFF.
fn is_ignorable(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xe2, 0x80, 0x8c..=0x8f]
            | [0xe2, 0x80, 0xaa..=0xae]
            | [0xe2, 0x81, 0xaa..=0xaf]
            | [0xef, 0xbb, 0xbf]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_file_systems_take_for_dot_git_are_refused() {
        let refused: &[&[u8]] = &[
            b".git",
            b".GIT",
            b".gIt",
            b"git~1",
            b"GIT~1",
            b".git.",
            b".git ",
            b".git . .",
            b"git~1.",
            b".git:",
            b"git~1:x",
            b".git::$INDEX_ALLOCATION",
            b".git ::$INDEX_ALLOCATION",
            b".git\\config",
            ".g\u{200c}it".as_bytes(),
            "\u{feff}.git".as_bytes(),
            ".git\u{206f}".as_bytes(),
            "\u{200e}.\u{202a}G\u{206a}i\u{200d}T\u{202e}".as_bytes(),
            ".g\u{200c}it . :x".as_bytes(),
        ];
        for name in refused {
            assert_eq!(check_name(name), Err(NameError::DotGit), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn names_that_only_look_like_it_are_kept() {
        let kept: &[&[u8]] = &[
            b".gitignore",
            b".gitmodules",
            b"git",
            b".gi",
            b".",
            b"git~2",
            b"git~10",
            b".git-",
            b"a.git",
            b".g it",
            b"...",
            b"\xff\xfe",
            b".git\xff",
            ".g\u{00ef}t".as_bytes(),
            "\u{200b}.git".as_bytes(),
            b"\xe2\x80",
            b" .git",
            b"a\\b",
        ];
        for name in kept.iter().filter(|name| **name != b".") {
            assert_eq!(check_name(name), Ok(()), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn names_that_are_no_names_are_refused() {
        assert_eq!(check_name(b""), Err(NameError::Empty));
        assert_eq!(check_name(b"."), Err(NameError::Dots));
        assert_eq!(check_name(b".."), Err(NameError::Dots));
        assert_eq!(check_name(b"a/b"), Err(NameError::Slash));
        assert_eq!(check_name(b"/"), Err(NameError::Slash));
        assert_eq!(check_name(b"a\0"), Err(NameError::Nul));
        assert_eq!(check_name(&[b'a'; super::super::MAX_NAME_BYTES]), Ok(()));
        assert_eq!(check_name(&[b'a'; super::super::MAX_NAME_BYTES + 1]), Err(NameError::TooLong));
    }
}

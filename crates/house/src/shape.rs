//! Rules on the shape of a Rust file: it starts by saying what it is for, and it is not too long.

use crate::{SourceFile, Violation};

/// Files are comfortable at 100 to 250 lines and want a seam at 500; this leaves room to find it.
const MAX_LINES: usize = 600;

/// Checks head and length of every Rust file.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(|file| [check_head(file), check_length(file)]).flatten().collect()
}

fn check_head(file: &SourceFile) -> Option<Violation> {
    let message = "the file does not start with `//!`; say in two or three lines what it is for";
    (needs_head(&file.path) && !file.text.starts_with("//!")).then(|| Violation::new(&file.path, 1, message))
}

/// Tells whether a file is a source of a crate: `crates/*/src/**` or `xtask/src/**`.
fn needs_head(path: &str) -> bool {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    }
}

fn check_length(file: &SourceFile) -> Option<Violation> {
    let lines = file.text.lines().count();
    let message = || format!("the file has {lines} lines, more than {MAX_LINES}; find a seam and split it");
    (lines > MAX_LINES).then(|| Violation::new(&file.path, MAX_LINES + 1, message()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    #[test]
    fn sources_start_with_what_they_are_for() {
        let files = [
            file("crates/store/src/wal.rs", "//! The write-ahead log.\n"),
            file("crates/store/src/disk/mod.rs", "\n//! Too late.\n"),
            file("xtask/src/main.rs", "// Not a doc comment.\n"),
            file("crates/store/tests/crash.rs", "use std::fs;\n"),
            file("crates/store/Cargo.toml", "[package]\n"),
        ];
        assert_eq!(places(&check(&files)), ["crates/store/src/disk/mod.rs:1", "xtask/src/main.rs:1"]);
    }

    #[test]
    fn long_files_are_found_wherever_they_are() {
        let at_limit = "//!\n".repeat(MAX_LINES);
        let above = "//!\n".repeat(MAX_LINES + 1);
        assert_eq!(check(&[file("crates/store/src/wal.rs", &at_limit)]), []);
        let found = check(&[file("crates/store/tests/crash.rs", &above)]);
        assert_eq!(places(&found), ["crates/store/tests/crash.rs:601"]);
        assert!(found[0].message.contains("601 lines"));
    }
}

//! Rule: below the command line nobody names its commands. What to do next is data there ([`Hint`], the code of a finding), and
//! whoever shows it words it for those who read it.
//!
//! [`Hint`]: ../../../crates/wire/src/hint.rs

use super::code::strings_only;
use super::words::is_test;
use crate::{SourceFile, Violation};

/// Where no command is named.
const SILENT: &[&str] = &["domain", "store", "holder", "agent", "wire", "service"];

/// Checks the strings of every file of these crates.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    files.iter().filter(|file| is_silent(&file.path)).flat_map(check_file).collect()
}

fn is_silent(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    inside.is_some_and(|(krate, _)| SILENT.contains(&krate)) && path.ends_with(".rs") && !is_test(path)
}

fn check_file(file: &SourceFile) -> Vec<Violation> {
    let strings = strings_only(&file.text);
    let named =
        strings.match_indices("rekindle").filter(|(at, name)| is_command(&strings[at + name.len()..]));
    named
        .map(|(at, _)| {
            let line = strings[..at].matches('\n').count() + 1;
            let message = "a string names a command of `rekindle`; say it as data (rekindle_wire::hint) or in words \
                           that hold without the command line";
            Violation::new(&file.path, line, message)
        })
        .collect()
}

/// Tells whether what stands behind our name makes a command of it: a word or an option, maybe on the next line.
fn is_command(behind: &str) -> bool {
    let rest = behind.trim_start_matches([' ', '\\', '\n']);
    rest.len() < behind.len() && rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '-' || c == '{')
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&[file(path, text)]).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn commands_in_strings_of_the_lower_crates_are_found_however_they_are_written() {
        let bad = "//! Says.\nf(\"see rekindle doctor\");\ng(r#\"rekindle --help\"#);\nformat!(\"rekindle {verb}\");\n\
                   h(\"rekindle \\\n   ps\");\n";
        for krate in SILENT {
            assert_eq!(lines(&format!("crates/{krate}/src/a/b.rs"), bad), [2, 3, 4, 5], "{krate}");
        }
        for free in
            ["crates/cli/src/main.rs", "crates/server/src/hint_text.rs", "crates/store/tests/faults.rs"]
        {
            assert_eq!(lines(free, bad), [], "{free}");
        }
    }

    #[test]
    fn our_name_alone_comments_and_tests_are_free() {
        let clean = "//! Behind `rekindle doctor`.\nf(\"rekindle\"); // rekindle ps\ng(\"a version of Rekindle that\");\n\
                     use rekindle_store::x;\nh(\"rekindle-holder a\");\n#[cfg(test)]\nmod tests { const A: &str = \"rekindle ps\"; }\n";
        assert_eq!(lines("crates/service/src/error.rs", clean), []);
        assert_eq!(lines("crates/service/src/drive/tests.rs", "f(\"rekindle ps\");"), []);
        let files = [file("crates/service/src/x.rs", "//! X.\nf(\"rekindle ps\");\n")];
        assert_eq!(places(&check(&files)), ["crates/service/src/x.rs:2"]);
    }
}

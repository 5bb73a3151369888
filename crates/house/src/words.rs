//! Rules on what code may say where: no `unsafe`, no I/O and no clock in the domain, one way to the disk in the store.
//! Comments and literals may say anything.

use super::code::{code_only, is_word, without_tests};
use crate::{SourceFile, Violation};

/// Words that code below some directory does not use.
struct Ban {
    /// Where the ban holds: the start of a path.
    below: &'static str,
    /// Files that are free of it, each for a reason.
    except: &'static [&'static str],
    tests: Tests,
    words: &'static [&'static str],
    /// What to do instead.
    remedy: &'static str,
}

/// Whether a ban is also about the tests beside the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    Checked,
    Free,
}

/// Files that may contain `unsafe`; an entry comes with its reason in a comment.
const UNSAFE_ALLOWED: &[&str] = &[
    // A hook between fork and exec, so that the agent dies with its holder.
    "crates/holder/src/run/agent.rs",
    // Descriptors that were inherited by number are closed by number.
    "crates/holder/src/descriptors.rs",
];

const BANS: &[Ban] = &[
    Ban {
        below: "",
        except: UNSAFE_ALLOWED,
        tests: Tests::Checked,
        words: &["unsafe"],
        remedy: "find a safe way, or argue for an entry in UNSAFE_ALLOWED in crates/house/src/words.rs",
    },
    Ban {
        below: "crates/domain/src/",
        except: &[],
        tests: Tests::Checked,
        words: &["std::fs", "std::net", "std::thread", "SystemTime::now", "Instant::now", "async fn"],
        remedy: "the domain only decides: let the caller do it and hand the result in",
    },
    Ban {
        below: "crates/store/src/",
        except: &["crates/store/src/disk/real.rs", "crates/store/src/disk/reserved_descriptors.rs"],
        tests: Tests::Free,
        words: &["std::fs"],
        remedy: "go through the `Disk` seam, so that the simulated disk sees it",
    },
    Ban {
        below: "crates/service/src/drive/",
        except: &[],
        tests: Tests::Free,
        words: &["SystemTime::now"],
        remedy: "take the time from the clock that was handed in",
    },
];

/// Checks the code of every Rust file against the bans.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Violation> {
    let code = code_only(&file.text);
    let mut violations = Vec::new();
    for ban in BANS.iter().filter(|ban| holds_for(ban, &file.path)) {
        let without;
        let code = match ban.tests {
            Tests::Checked => &code,
            Tests::Free => {
                without = without_tests(&code);
                &without
            }
        };
        for word in ban.words {
            for at in uses(code, word) {
                let line = code[..at].matches('\n').count() + 1;
                violations.push(Violation::new(
                    &file.path,
                    line,
                    format!("`{word}` in code; {}", ban.remedy),
                ));
            }
        }
    }
    violations
}

fn holds_for(ban: &Ban, path: &str) -> bool {
    let free = ban.tests == Tests::Free && is_test(path);
    path.starts_with(ban.below) && !ban.except.contains(&path) && !free
}

/// Tells whether a file is for tests alone: `#[cfg(test)] mod tests;` puts them in files of that name.
pub(super) fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Returns where code uses `word`, be it spelled out or, for `std::…`, in a braced import.
fn uses(code: &str, word: &str) -> Vec<usize> {
    let mut found: Vec<usize> = code.match_indices(word).map(|(at, _)| at).collect();
    found.retain(|at| !code[..*at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word));
    if let Some(module) = word.strip_prefix("std::") {
        for (at, head) in code.match_indices("std::{") {
            let group = at + head.len();
            found.extend(group_items(&code[group..]).filter_map(|(offset, item)| {
                let tail = item.strip_prefix(module)?;
                (!tail.starts_with(is_word)).then_some(group + offset)
            }));
        }
    }
    found
}

/// Returns offset and text of each item of an import group, nested groups being part of their item.
fn group_items(group: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut depth = 0_i32;
    let mut bounds = vec![0];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                bounds.push(at + 1);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => bounds.push(at + 1),
            _ => {}
        }
    }
    let spans: Vec<(usize, usize)> =
        bounds.iter().copied().zip(bounds.iter().skip(1).map(|end| end - 1)).collect();
    spans.into_iter().map(|(start, end)| {
        let item = &group[start..end];
        (start + item.len() - item.trim_start().len(), item.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&[file(path, text)]).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn unsafe_is_a_word_of_code_only() {
        let clean = "//! No unsafe here.\n#![deny(unsafe_code)]\nconst TEXT: &str = \"unsafe\";\n";
        assert_eq!(lines("crates/cli/src/main.rs", clean), []);
        assert_eq!(lines("crates/cli/tests/crash.rs", "fn f() {\n    unsafe { g() }\n}\n"), [2]);
    }

    #[test]
    fn the_domain_has_no_disk_network_thread_clock_or_async() {
        let bad = "use std::fs::File;\nuse std::net;\nfn f() { std::thread::yield_now(); }\nSystemTime::now();\n\
                   let t = std::time::Instant::now();\nasync fn g() {}\nuse std::{\n    fmt,\n    fs::{self, File},\n};\n";
        let mut found = lines("crates/domain/src/projector.rs", bad);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 9]);

        let clean =
            "//! Never calls SystemTime::now.\nuse std::{fmt, io};\nuse std::fsx;\nfn f(now: Instant) {}\n";
        assert_eq!(lines("crates/domain/src/projector.rs", clean), []);
        assert_eq!(lines("crates/bench/src/main.rs", bad), []);
    }

    #[test]
    fn the_store_reaches_files_through_its_seam() {
        let text = "use std::fs;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let files = [
            file("crates/store/src/disk/real.rs", text),
            file("crates/store/src/wal/tests.rs", text),
            file("crates/store/src/wal/mod.rs", text),
            file("crates/store/tests/crash.rs", text),
        ];
        assert_eq!(places(&check(&files)), ["crates/store/src/wal/mod.rs:1"]);
    }
}

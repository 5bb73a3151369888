//! Rule: every promise in the list is kept by a test that cites it, or is said to be not built yet.
//! A test cites a promise by its number in a comment right above it.

use std::collections::BTreeSet;

use super::code::{code_only, is_word};
use crate::{SourceFile, Violation};

const MAP: &str = "docs/promises.md";

/// The promises the design begins with; the map may add more, and may not drop one silently.
const PROMISES: u32 = 14;

/// In a promise's row these words say that nothing keeps it so far.
const NOT_BUILT: &str = "not built yet";

/// How far above its `fn` a test may cite a promise.
const REACH: usize = 6;

/// Checks the rows of the map against the citations in tests.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let Some(map) = files.iter().find(|file| file.path == MAP) else {
        let message =
            format!("the file is missing; write the list with a row for each promise I1 to I{PROMISES}");
        return vec![Violation::new(MAP, 1, message)];
    };
    let cited = cited_by_tests(files);
    let rows = rows(&map.text);
    let known = rows.iter().map(|row| row.promise);
    let all: BTreeSet<u32> = (1..=PROMISES).chain(known).collect();
    all.into_iter().filter_map(|promise| check_promise(promise, &rows, &cited)).collect()
}

fn check_promise(promise: u32, rows: &[Row], cited: &BTreeSet<u32>) -> Option<Violation> {
    let mut own = rows.iter().filter(|row| row.promise == promise);
    let Some(first) = own.next() else {
        let message = format!("promise I{promise} has no row; add it to the table of promises");
        return Some(Violation::new(MAP, 1, message));
    };
    let excused = first.not_built || own.any(|row| row.not_built);
    (!excused && !cited.contains(&promise)).then(|| {
        let message = format!(
            "no test cites promise I{promise}; name it in a comment above the test that keeps it, or say `{NOT_BUILT}` in its row"
        );
        Violation::new(MAP, first.line, message)
    })
}

/// A row of a table whose first cell is the number of a promise.
struct Row {
    promise: u32,
    line: usize,
    not_built: bool,
}

fn rows(map: &str) -> Vec<Row> {
    let row = |(index, line): (usize, &str)| {
        let first_cell = line.trim().strip_prefix('|')?.split('|').next()?;
        let promise = first_cell.trim().trim_matches(['*', '`']).strip_prefix('I')?.parse().ok()?;
        Some(Row { promise, line: index + 1, not_built: line.to_lowercase().contains(NOT_BUILT) })
    };
    map.lines().enumerate().filter_map(row).collect()
}

fn cited_by_tests(files: &[SourceFile]) -> BTreeSet<u32> {
    let sources = files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"));
    sources.flat_map(|file| citations(&file.text)).collect()
}

/// Returns the promises named in the comments right above the tests of a file.
fn citations(text: &str) -> BTreeSet<u32> {
    let code = code_only(text);
    let code: Vec<&str> = code.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    let mut cited = BTreeSet::new();
    for at in (0..code.len()).filter(|at| declares_function(code[*at])) {
        let nearest = (at.saturating_sub(REACH)..at).rev();
        // What lies above a statement or another item's end belongs to that one.
        let own = nearest.take_while(|above| !code[*above].trim_end().ends_with([';', '}', '{']));
        let own: Vec<usize> = own.collect();
        if own.iter().any(|above| is_test_attribute(code[*above])) {
            let comments = own.iter().map(|above| text[*above].trim()).filter(|line| line.starts_with("//"));
            cited.extend(comments.flat_map(promises_named));
        }
    }
    cited
}

fn declares_function(code: &str) -> bool {
    let code = code.trim_start();
    code.starts_with("fn ") || code.starts_with("async fn ") || code.starts_with("pub fn ")
}

/// Recognises `#[test]` and attributes of that name from elsewhere, such as `#[some_runtime::test]`.
fn is_test_attribute(code: &str) -> bool {
    let inner = code.trim().strip_prefix("#[").and_then(|code| code.strip_suffix(']'));
    inner.is_some_and(|inner| inner == "test" || inner.ends_with("::test"))
}

fn promises_named(comment: &str) -> impl Iterator<Item = u32> {
    comment.split(|c| !is_word(c)).filter_map(|word| word.strip_prefix('I')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    fn map(rows: &str) -> SourceFile {
        let rest: String = (4..=PROMISES).map(|n| format!("| I{n} | … | not built yet |\n")).collect();
        file(MAP, &format!("# Map\n\n{rows}{rest}"))
    }

    #[test]
    fn a_promise_is_cited_excused_or_reported() {
        let rows =
            "| I1 | **Acknowledged is durable.** |\n| **I2** | The append. |\n| I3 | Not built yet |\n";
        let test = file(
            "crates/store/tests/crash.rs",
            "/// I1: what was acknowledged is there.\n#[test]\nfn a() {}\n",
        );
        let found = check(&[map(rows), test]);
        assert_eq!(places(&found), ["docs/promises.md:4"]);
        assert!(found[0].message.starts_with("no test cites promise I2;"));
    }

    #[test]
    fn a_missing_map_and_a_missing_row_are_reported() {
        assert_eq!(places(&check(&[])), ["docs/promises.md:1"]);
        let found = check(&[map("| I1 | not built yet |\n| I2 | not built yet |\n")]);
        assert_eq!(found, [Violation::new(MAP, 1, "promise I3 has no row; add it to the table of promises")]);
    }

    #[test]
    fn a_promise_beyond_the_first_fourteen_needs_a_test_too() {
        let rows = "| I1 | not built yet |\n| I2 | not built yet |\n| I3 | not built yet |\n| I15 | New. |\n";
        assert_eq!(places(&check(&[map(rows)])), ["docs/promises.md:6"]);
    }

    #[test]
    fn only_a_comment_right_above_a_test_is_a_citation() {
        let cases: [(&str, &[u32]); 8] = [
            ("// I3 and (I12)\n#[test]\nfn a() {}", &[3, 12]),
            ("#[test]\n// I3\nfn a() {}", &[3]),
            ("proptest! {\n    /// I3/I1.\n    #[test]\n    fn a(x in 0..3) {}\n}", &[1, 3]),
            ("/// I3\nfn helper() {}", &[]),
            ("/// I3\n#[test]\nfn a() {}\n#[test]\nfn b() {}", &[3]),
            ("// I3\nlet x = 1;\n#[test]\nfn a() {}", &[]),
            ("// I3\n\n\n\n\n\n\n#[test]\nfn a() {}", &[]),
            ("/// II3, I3x and \"I\"\n#[test]\nfn a() { let s = \"I4\"; }", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(citations(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
    }
}

//! The slowest tests of a run, read from the report that `cargo nextest` leaves behind: whoever adds a slow test sees it
//! here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// How many are shown.
const SHOWN: usize = 10;

/// A test that ran, and how long it took.
#[derive(Debug, Clone, PartialEq)]
struct Timed {
    name: String,
    seconds: f64,
}

/// Where `cargo nextest` puts its report.
pub(crate) fn report_path(root: &Path, profile: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root.join(target).join("nextest").join(profile).join("junit.xml")
}

/// Returns the lines that name the slowest tests; none if there is no report.
pub(crate) fn lines(report: &Path) -> Vec<String> {
    fs::read_to_string(report).map_or_else(|_| Vec::new(), |text| slowest(tests(&text)))
}

fn slowest(mut tests: Vec<Timed>) -> Vec<String> {
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    if tests.len() < SHOWN {
        return Vec::new();
    }
    tests.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let share = |seconds: f64| 100.0 * seconds / total.max(f64::MIN_POSITIVE);
    let first: f64 = tests[..SHOWN].iter().map(|test| test.seconds).sum();
    let head = format!(
        "the {SHOWN} slowest of {} tests: {first:.1} s of {total:.1} s ({:.0} %)",
        tests.len(),
        share(first)
    );
    let line =
        |test: &Timed| format!("  {:>6.1} s {:>3.0} %  {}", test.seconds, share(test.seconds), test.name);
    std::iter::once(head).chain(tests[..SHOWN].iter().map(line)).collect()
}

/// Returns the tests of a report.
fn tests(report: &str) -> Vec<Timed> {
    report
        .split("<testcase ")
        .skip(1)
        .filter_map(|case| {
            let tag = case.split('>').next()?;
            let seconds = attribute(tag, "time")?.parse().ok()?;
            let name = format!("{} {}", attribute(tag, "classname")?, attribute(tag, "name")?);
            Some(Timed { name, seconds })
        })
        .collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let opening = format!("{name}=\"");
    let begins = tag.match_indices(&opening).find(|(at, _)| *at == 0 || tag[..*at].ends_with(' '))?.0;
    tag[begins + opening.len()..].split('"').next()
}

#[cfg(test)]
mod tests_of_reports {
    use super::*;

    fn report(count: usize) -> String {
        let case = |n: usize| {
            format!(
                "<testcase name=\"mod::t{n}\" classname=\"krate::bin\" timestamp=\"x\" time=\"{n}.500\">\n</testcase>"
            )
        };
        format!("<testsuites time=\"9.0\">{}</testsuites>", (0..count).map(case).collect::<String>())
    }

    #[test]
    fn the_slowest_come_first_with_their_share() {
        let lines = slowest(tests(&report(20)));
        assert_eq!(lines.len(), 1 + SHOWN);
        assert_eq!(lines[0], "the 10 slowest of 20 tests: 150.0 s of 200.0 s (75 %)");
        assert_eq!(lines[1], "    19.5 s  10 %  krate::bin mod::t19");
    }

    #[test]
    fn a_few_tests_or_no_report_show_nothing() {
        assert!(slowest(tests(&report(3))).is_empty());
        assert!(slowest(tests("<testcase name=\"x")).is_empty());
        assert!(lines(Path::new("/nonexistent/junit.xml")).is_empty());
    }
}

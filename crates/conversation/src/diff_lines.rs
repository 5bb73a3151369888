//! What a run did to files, in lines and colours. Pure.

use rekindle_display::live::diff::Styled;
use rekindle_terminal::output::{BAD, BOLD, COURSE, DIM, GOOD, PLAIN, plural};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{FileDiff, RunDiff};

/// Lines that are shown: more is read elsewhere.
const MAX_LINES: usize = 2000;

/// Files that are listed.
const MAX_FILES: usize = 20;

/// Returns the differences.
pub(crate) fn diff_lines(diff: &RunDiff) -> Vec<Styled> {
    if diff.total == 0 {
        return vec![(DIM, "the latest turn has changed no file".into())];
    }
    let mut lines: Vec<Styled> = Vec::new();
    for file in &diff.files {
        match &file.diff {
            Some(text) => {
                lines.extend(sanitise::block(text).lines().map(|line| (style(line), line.to_owned())))
            }
            None => lines.push(stat_line(file)),
        }
    }
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push((DIM, format!("… {} more; rekindle diff shows them", plural(more as u64, "line"))));
    }
    lines
}

/// Returns which files there are, and how many lines.
pub(crate) fn stat_lines(diff: &RunDiff) -> Vec<Styled> {
    let mut lines: Vec<Styled> = diff.files.iter().take(MAX_FILES).map(stat_line).collect();
    let more = diff.total.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push((DIM, format!("  … {} more", plural(more, "file"))));
    }
    lines
}

fn style(line: &str) -> anstyle::Style {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => BOLD,
        [b'+', ..] => GOOD,
        [b'-', ..] => BAD,
        [b'@', ..] => COURSE,
        [b'd', b'i', b'f', b'f', b' ', ..] => BOLD,
        _ => PLAIN,
    }
}

fn stat_line(file: &FileDiff) -> Styled {
    let path = sanitise::line(file.file.path.path.as_deref().unwrap_or("(a name that is not valid UTF-8)"));
    let lines = file.file.lines_added.zip(file.file.lines_removed);
    let lines = lines.map(|(added, removed)| format!("  +{added} −{removed}")).unwrap_or_default();
    (PLAIN, format!("  {:>8}  {path}{lines}", file.file.change.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diff(files: serde_json::Value, total: u64) -> RunDiff {
        let id = "0".repeat(64);
        serde_json::from_value(json!({"run_id": "run_1", "from": id, "to": id, "how": "live",
            "rules_differ": false, "total": total, "lines_added": 1, "lines_removed": 0, "files": files}))
        .expect("a diff")
    }

    #[test]
    fn lines_have_the_colours_that_people_know() {
        let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+b\n c\n";
        let files = json!([{"path": "x", "change": "modified", "lines_added": 1, "lines_removed": 1, "diff": text},
            {"path": "y\u{1b}[2J", "change": "added"}]);
        let lines = diff_lines(&diff(files.clone(), 2));
        let styles: Vec<_> = lines.iter().map(|(style, _)| *style).collect();
        assert_eq!(styles, [BOLD, BOLD, BOLD, COURSE, BAD, GOOD, PLAIN, PLAIN]);
        assert_eq!((lines[4].1.as_str(), lines[7].1.as_str()), ("-a", "     added  y"));
        let stat = stat_lines(&diff(files, 5));
        assert_eq!(stat[0].1, "  modified  x  +1 −1");
        assert_eq!(stat[2].1, "  … 3 files more");
        assert_eq!(diff_lines(&diff(json!([]), 0)).len(), 1);
    }
}

//! What an agent changes in a file, as people read it: a unified difference, a style to each line.

use anstyle::Style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use rekindle_terminal::output::{BAD, BOLD, COURSE, DIM, GOOD, PLAIN};
use rekindle_terminal::sanitise;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Larger texts are not compared: it takes longer than anyone waits, and nobody reads it here.
const MAX_COMPARED: usize = 4 << 20;

/// A line and how it looks.
pub type Styled = (Style, String);

/// Returns the differences in a tool call's content, whole.
pub(crate) fn diffs(content: &Value) -> Vec<Styled> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(|block| block["type"] == "diff").flat_map(diff).collect()
}

fn diff(block: &Value) -> Vec<Styled> {
    let text = |name: &str| sanitise::block(block[name].as_str().unwrap_or_default());
    let (old, new) = (text("oldText"), text("newText"));
    let path = sanitise::line(block["path"].as_str().unwrap_or("a file"));
    let what = if block["oldText"].as_str().is_none() { "new " } else { "" };
    let mut lines = vec![(BOLD, format!("{what}{path}"))];
    if old.len() + new.len() > MAX_COMPARED {
        lines.push((DIM, format!("too large to be compared: {} bytes become {}", old.len(), new.len())));
        return lines;
    }
    lines.extend(compared(&old, &new));
    lines
}

/// Returns what changes from one text to another.
pub fn compared(old: &str, new: &str) -> Vec<Styled> {
    let mut lines = Vec::new();
    let diff = TextDiff::from_lines(old, new);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        lines.push((COURSE, hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let (style, sign) = match change.tag() {
                ChangeTag::Delete => (BAD, '-'),
                ChangeTag::Insert => (GOOD, '+'),
                ChangeTag::Equal => (PLAIN, ' '),
            };
            lines.push((style, format!("{sign}{}", change.value().trim_end_matches('\n'))));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings_and_without_escapes() {
        let old = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        let content = json!([
            {"type": "content", "content": {"type": "text", "text": "x"}},
            {"type": "diff", "path": "/r/a\u{1b}[2J.txt", "oldText": old, "newText": old.replace("four", "4\x1b[31m")},
        ]);
        let lines: Vec<String> = diffs(&content).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "/r/a.txt",
                "@@ -1,7 +1,7 @@",
                " one",
                " two",
                " three",
                "-four",
                "+4",
                " five",
                " six",
                " seven"
            ]
        );
    }

    #[test]
    fn a_new_file_is_called_new_and_rubbish_is_nothing() {
        let content = json!([{"type": "diff", "path": "b", "newText": "x\n"}]);
        let lines: Vec<String> = diffs(&content).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["new b", "@@ -0,0 +1 @@", "+x"]);
        assert!(diffs(&json!({"type": "diff"})).is_empty() && diffs(&Value::Null).is_empty());
    }
}

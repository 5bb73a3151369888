//! What a tool call is about, read from what the agent says of it: the command or path that the tool is given, and the files
//! that it changes. For people who have to decide whether to do it again, and for the agent that continues.

use crate::json::{Object, cut, text};
use crate::said::ToolSummary;

/// Longest input that is kept beside the whole: a person reads one line.
const MAX_INPUT: usize = 1 << 10;
/// Files of one call that are kept.
const MAX_FILES: usize = 32;

/// Names under which agents hand a command to their tools.
const COMMANDS: &[&str] = &["command", "cmd", "commands", "script", "code"];
/// Names under which agents hand a place to their tools.
const PLACES: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "abs_path",
    "target_file",
    "filename",
    "file",
    "url",
    "query",
    "pattern",
];

/// Reads a tool call: of an update, or of a request for permission.
pub(super) fn summarize(call: &Object<'_>) -> ToolSummary {
    ToolSummary { input: input(call), files: files(call) }
}

fn input(call: &Object<'_>) -> Option<String> {
    let raw = call.raw("rawInput")?;
    let given = Object::parse(raw.get()).unwrap_or_default();
    let named = COMMANDS.iter().chain(PLACES).find_map(|name| text_or_list(&given, name));
    let input = named.or_else(|| text(raw).map(Into::into))?;
    let line = input.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut(&line, MAX_INPUT).into_owned())
}

/// Returns a member in words: a text, or a list of texts.
fn text_or_list(given: &Object<'_>, name: &str) -> Option<String> {
    if let Some(text) = given.text(name) {
        return Some(text.into_owned()).filter(|text| !text.trim().is_empty());
    }
    let list: Vec<String> =
        given.list(name).into_iter().filter_map(|word| text(word).map(Into::into)).collect();
    (!list.is_empty()).then(|| list.join(" "))
}

fn files(call: &Object<'_>) -> Vec<String> {
    let changes = matches!(call.text("kind").as_deref(), Some("edit" | "delete" | "move"));
    let content = call.list("content").into_iter().filter_map(|block| Object::parse(block.get()));
    let diffs = content.filter(|block| block.text("type").as_deref() == Some("diff"));
    let mut files: Vec<String> = diffs.filter_map(|diff| diff.text("path").map(Into::into)).collect();
    if changes {
        let places = call.list("locations").into_iter().filter_map(|place| Object::parse(place.get()));
        files.extend(places.filter_map(|place| place.text("path").map(String::from)));
    }
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| file.len() <= MAX_INPUT && seen.insert(file.clone()));
    files.truncate(MAX_FILES);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> ToolSummary {
        summarize(&Object::parse(json).expect("an object"))
    }

    #[test]
    fn a_call_is_told_by_its_command_or_its_place() {
        let input = |raw: &str| read(&format!(r#"{{"rawInput":{raw}}}"#)).input;
        assert_eq!(
            input(r#"{"command":"sleep 6;\n echo ran","timeout":5}"#).as_deref(),
            Some("sleep 6; echo ran")
        );
        assert_eq!(input(r#"{"command":["bash","-lc","make"]}"#).as_deref(), Some("bash -lc make"));
        assert_eq!(input(r#"{"content":"x","file_path":"/a/b.txt"}"#).as_deref(), Some("/a/b.txt"));
        assert_eq!(input(r#"{"n":1}"#), None, "nothing that a person would know it by");
        assert_eq!(input(r#""plain words""#).as_deref(), Some("plain words"));
        assert_eq!((input("{}"), input(r#"{"command":" "}"#)), (None, None));
        assert_eq!(read("{}"), ToolSummary::default());
        assert!(
            input(&format!(r#"{{"command":"{}"}}"#, "x".repeat(5000))).is_some_and(|text| text.len() < 1100)
        );
    }

    #[test]
    fn files_are_those_that_are_changed() {
        let edit = r#"{"kind":"edit","locations":[{"path":"/a"},{"path":"/b"}],
            "content":[{"type":"diff","path":"/a","newText":""},{"type":"content"}]}"#;
        assert_eq!(read(edit).files, ["/a", "/b"]);
        assert_eq!(read(r#"{"kind":"read","locations":[{"path":"/a"}]}"#).files, [""; 0]);
    }
}

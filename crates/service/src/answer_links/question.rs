//! What is asked, in words that a person can decide by: the question, and the whole of what it is about. Pure.

use rekindle_wire::view::{AskedView, WaitKind};
use serde_json::Value;

/// Longest question that is shown, in bytes.
const MAX_QUESTION: usize = 2 << 10;

/// Longest detail that is shown, in bytes: nobody decides by more of it on a phone.
const MAX_DETAIL: usize = 32 << 10;

/// Names under which agents hand a command to their tools: it comes first, because it is what is decided.
const COMMANDS: [&str; 2] = ["command", "cmd"];

/// Reads what a request asks: of an agent, or of a program that opened a wait.
pub(super) fn asked(kind: WaitKind, request: &Value) -> AskedView {
    let (question, lines) = question_and_detail(request);
    let (question, question_cut) = cut(question, MAX_QUESTION);
    let (detail, detail_cut) = cut(&lines.join("\n"), MAX_DETAIL);
    let detail = Some(detail).filter(|detail| !detail.trim().is_empty());
    AskedView { kind, question, detail, cut: question_cut || detail_cut }
}

/// Says in one line what a request asks: the question, and what it is about first of all, as the command that is to be run. Titles of
/// tools alone say nothing.
pub(crate) fn question_line(request: &Value) -> Option<String> {
    let (question, lines) = question_and_detail(request);
    let first = lines.first().map(|first| first.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_news = |first: &String| !first.is_empty() && !question.contains(first.trim_start_matches("$ "));
    match (question.trim(), first.filter(is_news)) {
        ("", first) => first,
        (question, Some(first)) => Some(format!("{question}: {first}")),
        (question, None) => Some(question.to_owned()),
    }
}

/// Finds the question of a request, and the lines that say what it is about.
fn question_and_detail(request: &Value) -> (&str, Vec<String>) {
    let params = request.get("params").unwrap_or(request);
    let places = ["/toolCall/title", "/title", "/question", "/message", "/text"];
    let question = places.iter().find_map(|place| params.pointer(place)?.as_str()).unwrap_or_default();
    let call = &params["toolCall"];
    let mut lines = Vec::new();
    tool_input(&call["rawInput"], &mut lines);
    for block in call["content"].as_array().into_iter().flatten() {
        content(block, &mut lines);
    }
    // Whatever a program asks, whoever is to answer sees it.
    if question.is_empty() && lines.is_empty() && !params.is_null() {
        lines.push(serde_json::to_string_pretty(params).unwrap_or_default());
    }
    (question, lines)
}

/// Adds what a tool is given: the command, then everything else by its name.
fn tool_input(input: &Value, lines: &mut Vec<String>) {
    let Value::Object(fields) = input else {
        if !input.is_null() {
            lines.push(text(input));
        }
        return;
    };
    let is_command = |name: &str| COMMANDS.contains(&name);
    let commands = fields.iter().filter(|(name, _)| is_command(name));
    lines.extend(commands.map(|(_, command)| format!("$ {}", text(command))));
    let others = fields.iter().filter(|(name, _)| !is_command(name));
    lines.extend(others.map(|(name, value)| format!("{name}: {}", text(value))));
}

/// Adds a block of a tool call: a change of a file, or what else the agent says of it.
fn content(block: &Value, lines: &mut Vec<String>) {
    if block["type"] != "diff" {
        lines.extend(block["content"]["text"].as_str().map(Into::into));
        return;
    }
    lines.push(block["path"].as_str().unwrap_or_default().to_owned());
    for (sign, side) in [("-", "oldText"), ("+", "newText")] {
        let text = block[side].as_str().unwrap_or_default();
        lines.extend(text.lines().map(|line| format!("{sign} {line}")));
    }
}

/// Returns a value as it is read: words as they are, a list of words as a command line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(words) if words.iter().all(Value::is_string) => {
            words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// Returns the beginning of a text, and whether there is more of it.
fn cut(text: &str, most: usize) -> (String, bool) {
    (text[..text.floor_char_boundary(most)].to_owned(), text.len() > most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(request: &Value, question: &str, detail: Option<&str>) {
        let found = asked(WaitKind::Permission, request);
        assert_eq!((found.question.as_str(), found.detail.as_deref()), (question, detail), "{request}");
        assert!(!found.cut);
    }

    #[test]
    fn a_permission_shows_all_that_it_is_for() {
        let call =
            |call: &Value| json!({"method": "session/request_permission", "params": {"toolCall": call}});
        let command = json!({"title": "Clean up", "rawInput": {"cwd": "/r", "command": "rm -rf\n  build"}});
        check(&call(&command), "Clean up", Some("$ rm -rf\n  build\ncwd: /r"));
        let list =
            json!({"title": "Run", "rawInput": {"cmd": ["make", "all"], "timeout": 5, "env": {"A": "1"}}});
        check(&call(&list), "Run", Some("$ make all\nenv: {\"A\":\"1\"}\ntimeout: 5"));
        let change = json!({"title": "Edit", "content": [
            {"type": "diff", "path": "/r/a", "oldText": "one\ntwo", "newText": "three"},
            {"type": "content", "content": {"type": "text", "text": "because"}}]});
        check(&call(&change), "Edit", Some("/r/a\n- one\n- two\n+ three\nbecause"));
        check(&call(&json!({"title": "Look"})), "Look", None);
    }

    #[test]
    fn one_line_says_what_would_be_done() {
        let call = |call: Value| question_line(&json!({"params": {"toolCall": call}}));
        for (asked, line) in [
            (
                json!({"title": "Shell", "rawInput": {"cwd": "/r", "command": "\n rm -rf\n build"}}),
                Some("Shell: $ rm -rf build"),
            ),
            (
                json!({"title": "Shell", "rawInput": {"command": "rm -rf build"}}),
                Some("Shell: $ rm -rf build"),
            ),
            (json!({"title": "Run `make`", "rawInput": {"command": "make"}}), Some("Run `make`")),
            (json!({"title": "Edit", "content": [{"type": "diff", "path": "/r/a"}]}), Some("Edit: /r/a")),
            (json!({"rawInput": {"cmd": ["make"]}}), Some("$ make")),
            (json!({"title": "Look"}), Some("Look")),
        ] {
            assert_eq!(call(asked.clone()).as_deref(), line, "{asked}");
        }
        assert_eq!(question_line(&Value::Null), None);
    }

    #[test]
    fn questions_of_agents_and_programs_are_found_or_shown_whole() {
        check(&json!({"method": "elicitation/create", "params": {"message": "Which?"}}), "Which?", None);
        check(&json!({"title": "Deploy?"}), "Deploy?", None);
        check(&json!({"build": 7}), "", Some("{\n  \"build\": 7\n}"));
        check(&Value::Null, "", None);
    }

    #[test]
    fn what_is_too_long_says_so_and_is_cut_between_letters() {
        let long =
            json!({"message": "ä".repeat(MAX_QUESTION), "toolCall": {"rawInput": "ä".repeat(MAX_DETAIL)}});
        let found = asked(WaitKind::Question, &long);
        assert!(found.cut && found.question.len() <= MAX_QUESTION);
        assert_eq!(found.detail.map(|detail| detail.len()), Some(MAX_DETAIL));
    }
}

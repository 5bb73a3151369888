//! What an agent asks, and the answers it takes: its own options, numbered. Pure.

use anstyle::Style;
use rekindle_client::content_text::{asked, value_text};
use rekindle_terminal::output::{BOLD, DIM, PLAIN};
use rekindle_terminal::sanitise;
use rekindle_wire::request::NewAnswer;
use serde_json::Value;

use super::diff::{Styled, diffs};

/// A wait as it is put to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The wait.
    pub wait_id: String,
    /// What may be chosen; with none, words are wanted.
    pub choices: Vec<Choice>,
    /// What it asks, line by line, whole.
    pub lines: Vec<Styled>,
    /// How many of them, at the end, say what it would change in files.
    changed: usize,
}

/// One of the agent's own options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The agent's name for it.
    pub(crate) id: String,
    /// What a person reads.
    pub(crate) name: String,
    /// `allow_once` and so on, if the agent says so.
    pub(crate) kind: String,
}

impl Ask {
    /// Reads a request as it is kept.
    pub fn read(wait_id: &str, kind: &str, request: &Value) -> Ask {
        let params = request.get("params").unwrap_or(request);
        let mut lines = Vec::new();
        let title = sanitise::line(&asked(request));
        let outside = matches!(kind, "external" | "tool_result");
        let verb = match kind {
            "permission" => "The agent asks for permission",
            "tool_result" => "A program waits for a result",
            "external" => "A program asks",
            _ => "The agent asks",
        };
        let call = &params["toolCall"];
        let changes = diffs(&call["content"]);
        let input = call.get("rawInput").filter(|input| !input.is_null());
        // A command that stands below, whole, is not told twice.
        let is_command = input.and_then(command_of).is_some_and(|command| is_same(&title, &command));
        let head = match (title.as_str(), is_command) {
            ("", _) => format!("{verb}."),
            (_, true) => format!("{verb}:"),
            (title, false) => format!("{verb}: {title}"),
        };
        lines.push((BOLD, head));
        if let Some(input) = input {
            lines.extend(whole_input(input, !changes.is_empty()));
        }
        if changes.is_empty() {
            let blocks = call["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            for block in blocks.iter().filter(|block| block["type"] == "content") {
                let text = sanitise::block(&value_text(&block["content"]));
                lines.extend(text.lines().map(|line| (PLAIN, format!("  {line}"))));
            }
        }
        if outside && title.is_empty() {
            // Whatever it is, whoever is to answer sees it.
            let text = serde_json::to_string_pretty(request).unwrap_or_default();
            lines.extend(sanitise::block(&text).lines().map(|line| (PLAIN, format!("  {line}"))));
        }
        let changed = changes.len();
        lines.extend(changes.into_iter().map(|(style, line)| (style, format!("  {line}"))));
        Ask { wait_id: wait_id.to_owned(), choices: choices(params), lines, changed }
    }

    /// Leaves out what it would change, if that stands right above.
    pub(super) fn leave_out(&mut self, above: &[Styled]) {
        let at = self.lines.len() - self.changed;
        if self.changed > 0 && above.ends_with(&self.lines[at..]) {
            self.lines.truncate(at);
            self.lines.push((DIM, "  the change is shown above".into()));
            self.changed = 0;
        }
    }

    /// Returns what it asks in one line.
    pub fn gist(&self) -> String {
        let mut lines = self.lines.iter().map(|(_, line)| line.as_str());
        let first = lines.next().unwrap_or_default();
        match lines.next().filter(|_| first.ends_with(':')) {
            Some(command) => format!("{first} {}", command.trim_start()),
            None => first.to_owned(),
        }
    }

    /// Returns the numbered options as lines.
    pub fn options(&self) -> Vec<Styled> {
        let line = |(index, choice): (usize, &Choice)| {
            // Of an answer for this once that is all there is to know.
            let kind = match choice.kind.as_str() {
                "allow_once" | "reject_once" | "" => String::new(),
                "allow_always" | "reject_always" => "  (from now on)".to_owned(),
                other => format!("  ({})", sanitise::line(other)),
            };
            (BOLD, format!("  {}  {}{kind}", index + 1, sanitise::line(&choice.name)))
        };
        self.choices.iter().enumerate().map(line).collect()
    }

    /// Returns the answer that a key stands for.
    pub fn by_key(&self, key: char) -> Option<NewAnswer> {
        let kind = match key {
            'y' => "allow_once",
            'n' => "reject_once",
            digit => {
                let index = usize::try_from(digit.to_digit(10)?).ok()?.checked_sub(1)?;
                return self.choices.get(index).map(|choice| NewAnswer::option_id(&choice.id));
            }
        };
        let choice = self.choices.iter().find(|choice| choice.kind == kind)?;
        Some(NewAnswer::option_id(&choice.id))
    }
}

/// Returns the command that a tool is given, if it is given one.
fn command_of(input: &Value) -> Option<String> {
    ["command", "cmd"].iter().find_map(|name| match &input[*name] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            Some(words.iter().map(|word| word.as_str().unwrap_or_default()).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    })
}

/// Tells whether a title is a command and no more, as it may stand in Markdown.
fn is_same(title: &str, command: &str) -> bool {
    let title = title.trim().trim_matches('`').trim();
    title == sanitise::line(command).trim()
}

/// Shows what a tool is given: the command itself where there is one. Texts of a change that is shown as one are
/// left out, and nothing else is.
fn whole_input(input: &Value, has_changes: bool) -> Vec<Styled> {
    let command = command_of(input);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
    let block = |style: Style, prefix: &str, text: &str| -> Vec<Styled> {
        sanitise::block(text).lines().map(|line| (style, format!("  {prefix}{line}"))).collect()
    };
    let mut lines = command.as_ref().map(|command| block(BOLD, "$ ", command)).unwrap_or_default();
    // What else it is given is told too: a directory, a time limit, a description.
    let Value::Object(fields) = input else {
        lines.extend(block(DIM, "", &text(input)));
        return lines;
    };
    for (name, value) in fields {
        let shown = command.is_some() && matches!(name.as_str(), "command" | "cmd");
        let change = has_changes && matches!(name.as_str(), "old_string" | "new_string" | "content");
        if !shown && !change {
            lines.extend(block(DIM, "", &format!("{name}: {}", text(value))));
        }
    }
    lines
}

/// Returns the options of a permission, or the choices of a question's only field.
fn choices(params: &Value) -> Vec<Choice> {
    if let Some(options) = params["options"].as_array() {
        let named = options.iter().filter_map(|one| choice(&one["optionId"], &one["name"], &one["kind"]));
        return named.collect();
    }
    let Some(fields) = params["requestedSchema"]["properties"].as_object() else { return Vec::new() };
    let Some(field) = fields.values().next().filter(|_| fields.len() == 1) else { return Vec::new() };
    let list = |name: &str| field[name].as_array().into_iter().flatten();
    let plain = list("enum").filter_map(|word| choice(word, word, &Value::Null));
    plain.chain(list("oneOf").filter_map(|one| choice(&one["const"], &one["title"], &Value::Null))).collect()
}

/// Returns one that can be chosen: that has an id.
fn choice(id: &Value, name: &Value, kind: &Value) -> Option<Choice> {
    let id = id.as_str()?.to_owned();
    let name = name.as_str().map_or_else(|| id.clone(), Into::into);
    Some(Choice { id, name, kind: kind.as_str().unwrap_or_default().to_owned() })
}

/// Finds the answer that a word on the command line means: a number, an option's id, kind or name.
pub fn pick(choices: &[Choice], word: &str) -> Option<NewAnswer> {
    let kind = match word {
        "yes" | "y" | "allow" => "allow_once",
        "no" | "n" | "deny" | "reject" => "reject_once",
        other => other,
    };
    let number = word.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let found = (choices.iter().find(|choice| choice.id == word))
        .or(number)
        .or_else(|| choices.iter().find(|choice| choice.kind == kind))
        .or_else(|| choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(word)));
    match found {
        Some(choice) => Some(NewAnswer::option_id(&choice.id)),
        // A question without options may still be accepted or declined.
        None if choices.is_empty() => Some(NewAnswer::option(kind)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn permission() -> Value {
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/request_permission", "params": {
        "toolCall": {"title": "rm\u{1b}[2J -rf", "rawInput": {"command": "rm -rf\n  build", "cwd": "/r"}},
        "options": [
            {"optionId": "a1", "name": "Yes", "kind": "allow_once"},
            {"optionId": "2", "name": "Always", "kind": "allow_always"},
            {"optionId": "r", "name": "No", "kind": "reject_once"},
        ]}})
    }

    #[test]
    fn a_permission_shows_the_whole_command_and_the_agents_options() {
        let ask = Ask::read("wait_1", "permission", &permission());
        let lines: Vec<&str> = ask.lines.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(
            lines,
            ["The agent asks for permission: rm -rf", "  $ rm -rf", "  $   build", "  cwd: /r"]
        );
        let options: Vec<String> = ask.options().into_iter().map(|(_, line)| line).collect();
        assert_eq!(options, ["  1  Yes", "  2  Always  (from now on)", "  3  No"]);
        assert_eq!(ask.by_key('3'), Some(NewAnswer::option_id("r")));
        assert_eq!(ask.by_key('y'), Some(NewAnswer::option_id("a1")));
        assert_eq!((ask.by_key('4'), ask.by_key('0'), ask.by_key('x')), (None, None, None));
    }

    #[test]
    fn a_command_that_is_the_title_too_is_told_once() {
        let ask = |title: &str| {
            let call = json!({"title": title, "rawInput": {"command": "cargo  test -q ", "cwd": "/r"}});
            let ask = Ask::read("wait_1", "permission", &json!({"params": {"toolCall": call}}));
            (ask.lines.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>().join("|"), ask.gist())
        };
        let below = "  $ cargo  test -q |  cwd: /r";
        let verb = "The agent asks for permission:";
        for title in ["cargo  test -q", "`cargo  test -q`", " ` cargo  test -q ` "] {
            assert_eq!(ask(title), (format!("{verb}|{below}"), format!("{verb} $ cargo  test -q ")));
        }
        let other = format!("{verb} cargo test");
        assert_eq!(ask("cargo test"), (format!("{other}|{below}"), other));
    }

    #[test]
    fn a_word_is_an_id_a_number_a_kind_or_a_name() {
        let choices = Ask::read("wait_1", "permission", &permission()).choices;
        for (word, id) in [
            // An agent that calls its options by numbers is taken by its word.
            ("2", "2"),
            ("1", "a1"),
            ("allow_always", "2"),
            ("no", "r"),
            ("always", "2"),
        ] {
            assert_eq!(pick(&choices, word), Some(NewAnswer::option_id(id)), "{word}");
        }
        assert_eq!(pick(&choices, "maybe"), None);
        assert_eq!(pick(&[], "decline"), Some(NewAnswer::option("decline")));
    }

    #[test]
    fn a_question_offers_what_its_form_offers() {
        let request = json!({"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema":
            {"properties": {"db": {"oneOf": [{"const": "pg", "title": "Postgres"}, {"const": "lite"}]}}}}});
        let ask = Ask::read("wait_2", "question", &request);
        assert_eq!(ask.lines[0].1, "The agent asks: Which?");
        assert_eq!(pick(&ask.choices, "postgres"), Some(NewAnswer::option_id("pg")));
    }
}

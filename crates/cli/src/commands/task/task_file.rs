//! Files with tasks: JSON lines, or Markdown with a list of things to do.

use std::io::Read;
use std::path::Path;

use rekindle_client::Failure;
use rekindle_wire::request::{Content, NewTask};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::markdown::unchecked_items;

/// Largest file: what one request may bring.
const MAX_FILE: u64 = 60 << 20;

/// An item of a file.
#[derive(Debug)]
pub(super) enum Item {
    /// A JSON object, its line, and what it asks, as it is written.
    Json(usize, Map<String, Value>, Content),
    /// What to ask.
    Prompt(String),
}

impl Item {
    /// Returns the task that it is: what it does not say is as usual.
    pub(super) fn task(&self, usual: &impl Fn(&str) -> NewTask) -> Result<NewTask, Failure> {
        match self {
            Item::Prompt(prompt) => Ok(usual(prompt)),
            Item::Json(line, fields, prompt) => {
                let bad = |error: serde_json::Error| bad_line(*line, &error);
                let mut whole = serde_json::to_value(usual("")).map_err(bad)?;
                if let Some(whole) = whole.as_object_mut() {
                    whole.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
                // Read from its text: what is passed on as it is cannot be read from anything else.
                let task: NewTask = serde_json::from_str(&whole.to_string()).map_err(bad)?;
                Ok(NewTask { prompt: prompt.clone(), ..task })
            }
        }
    }
}

/// Reads the items of a file.
pub(super) fn read(file: &Path) -> Result<Vec<Item>, Failure> {
    let name = if file == Path::new("-") { "stdin".into() } else { file.display().to_string() };
    let unreadable =
        |why: String| Failure::usage("tasks_unreadable", format!("tasks cannot be read from {name}: {why}"));
    let mut text = String::new();
    let opened: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(file).map_err(|error| unreadable(error.to_string()))?),
    };
    let length = opened.take(MAX_FILE + 1).read_to_string(&mut text);
    let length = length.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => unreadable("it is not valid UTF-8".into()),
        _ => unreadable(error.to_string()),
    })?;
    if length as u64 > MAX_FILE {
        return Err(unreadable(format!("it has more than {} MiB", MAX_FILE >> 20)));
    }
    let items = items(&text)?;
    if items.is_empty() {
        return Err(unreadable("there is no task in it".into())
            .hint("write one JSON object per line, or Markdown with `- [ ]` before each task"));
    }
    Ok(items)
}

/// Takes a text apart: JSON lines if its first line with anything on it begins an object, else Markdown.
fn items(text: &str) -> Result<Vec<Item>, Failure> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !first.trim_start().starts_with('{') {
        return Ok(unchecked_items(text).into_iter().map(Item::Prompt).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            #[derive(Deserialize)]
            struct Asks {
                prompt: Content,
            }
            let bad = |error: serde_json::Error| bad_line(index + 1, &error);
            let fields: Map<String, Value> = serde_json::from_str(line).map_err(bad)?;
            let Asks { prompt } = serde_json::from_str(line).map_err(bad)?;
            Ok(Item::Json(index + 1, fields, prompt))
        })
        .collect()
}

fn bad_line(line: usize, error: &serde_json::Error) -> Failure {
    Failure::usage("bad_task", format!("line {line} is not a task: {error}"))
}

#[cfg(test)]
mod tests {
    use rekindle_wire::request::AgentChoice;

    use super::*;

    fn usual(prompt: &str) -> NewTask {
        let agent = AgentChoice::Known("claude".into());
        NewTask { priority: 7, ..NewTask::new("/repo".into(), agent, Content::text(prompt)) }
    }

    #[test]
    fn a_json_line_says_what_is_not_usual() {
        let text = "\n{\"prompt\":\"a \\\"b\\\"\",\"ref\":\"one\"}\n\n{\"prompt\":[{\"type\":\"text\",\"text\":\"x\"}],\"priority\":-3,\"after\":[\"one\"]}\n";
        let items = items(text).expect("items");
        let tasks: Vec<NewTask> = items.iter().map(|item| item.task(&usual).expect("a task")).collect();
        assert_eq!(tasks[0].prompt.0.get(), r#""a \"b\"""#);
        assert_eq!((tasks[0].priority, tasks[0].reference.as_deref()), (7, Some("one")));
        assert_eq!((tasks[1].priority, tasks[1].after.len(), &*tasks[1].working_dir), (-3, 1, "/repo"));
        assert_eq!(tasks[1].prompt.0.get(), r#"[{"type":"text","text":"x"}]"#);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line) in [
            ("{\"prompt\":\"a\"}\nno", "line 2"),
            ("{\"priority\":1}", "line 1"),
            ("\n{\"prompt\":\"a\",\"color\":1}", "line 2"),
        ] {
            let told = items(text)
                .and_then(|items| items.iter().map(|item| item.task(&usual)).collect::<Result<Vec<_>, _>>());
            let failure = told.err().unwrap_or_else(|| panic!("{text}"));
            assert!(failure.message().contains(line), "{}", failure.message());
        }
    }

    #[test]
    fn markdown_has_a_task_in_each_open_item() {
        let items = items("# To do\n- [ ] one\n- [x] done\n* [ ] two\n").expect("items");
        let tasks: Vec<NewTask> = items.iter().map(|item| item.task(&usual).expect("a task")).collect();
        let prompts: Vec<&str> = tasks.iter().map(|task| task.prompt.0.get()).collect();
        assert_eq!(prompts, [r#""one""#, r#""two""#]);
    }
}

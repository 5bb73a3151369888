//! The examples of `docs/http-api.md`, as a reader would run them: every command, in order, against a real daemon.

use std::path::Path;
use std::process::{Command, Output};

use rekindle_testkit::documents::{Example, Page};
use serde_json::Value;

use crate::lab::{Lab, PATIENCE, REKINDLE};

const DOCUMENT: &str = include_str!("../../../../docs/http-api.md");

/// Stands for anything.
const ANY: &str = "…";

/// What the reader has by now: shell lines that were run before, and names for ids.
struct Reader<'a> {
    lab: &'a Lab,
    before: String,
    names: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    fn run(&self, command: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{}{command}", self.before)).current_dir(self.lab.path("work"));
        shell.env("REKINDLE_HOME", self.lab.home()).env("HOME", self.lab.path(""));
        shell.envs(self.names.iter().map(|(name, value)| (*name, value)));
        shell.output().expect("a shell")
    }

    /// Runs a command until what comes back is what is shown; one that changes something is run once.
    fn follow(&mut self, example: &Example) {
        let command = &example.command;
        if !command.starts_with("curl ") {
            let output = self.run(command);
            assert!(output.status.success(), "{command}: {output:?}");
            self.before.push_str(&format!("{command}\n"));
            return;
        }
        let only_looks = !command.contains(" -d ") && !command.contains(" -X ");
        let begin = std::time::Instant::now();
        loop {
            let output = self.run(command);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match compare(&example.shown, &text) {
                Ok(answer) => return self.remember(&answer),
                Err(wrong) if !only_looks || begin.elapsed() > PATIENCE => {
                    let words = String::from_utf8_lossy(&output.stderr);
                    panic!("$ {command}\n{text}{words}\nis not what docs/http-api.md shows: {wrong}");
                }
                // It waits for something to happen.
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
            }
        }
    }

    fn remember(&mut self, answer: &Value) {
        for (name, pointer) in [("SESSION", "/id"), ("WAIT", "/waits/0/wait_id")] {
            if let Some(id) = answer.pointer(pointer).and_then(Value::as_str) {
                self.names.push((name, id.to_owned()));
            }
        }
    }
}

/// Compares what is shown with what came back, and returns the answer if it is JSON.
fn compare(shown: &[String], text: &str) -> Result<Value, String> {
    let (status, shown) = shown.split_last().ok_or("nothing is shown")?;
    let (body, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    if last != status {
        return Err(format!("the status is {last}, not {status}"));
    }
    if shown.iter().all(|line| line.starts_with("event: ")) {
        let mut events = body.lines().filter(|line| line.starts_with("event: "));
        let missing = shown.iter().find(|line| !events.any(|event| event == *line));
        return missing.map_or(Ok(Value::Null), |line| Err(format!("there is no {line}, or too early")));
    }
    let expected: Value = serde_json::from_str(&shown.join("\n")).map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    same("", &expected, &answer)?;
    Ok(answer)
}

fn same(place: &str, expected: &Value, answer: &Value) -> Result<(), String> {
    match (expected, answer) {
        (Value::String(any), _) if any == ANY => Ok(()),
        (Value::String(text), Value::String(said)) => {
            let fits = text.split_once(ANY).map_or(text == said, |(start, _)| said.starts_with(start));
            if fits { Ok(()) } else { Err(format!("{place} is {said:?}, not {text:?}")) }
        }
        (Value::Object(expected), Value::Object(answer)) => {
            for (name, value) in expected.iter().filter(|(name, _)| *name != ANY) {
                let said = answer.get(name).ok_or_else(|| format!("{place}/{name} is not there"))?;
                same(&format!("{place}/{name}"), value, said)?;
            }
            let more =
                answer.keys().find(|name| !expected.contains_key(*name) && !expected.contains_key(ANY));
            more.map_or(Ok(()), |name| Err(format!("{place}/{name} is not shown")))
        }
        // Where one is shown all are like it; where several are shown, as many are there.
        (Value::Array(expected), Value::Array(answer)) => match &expected[..] {
            [] if !answer.is_empty() => Err(format!("{place} is not empty")),
            [_, ..] if answer.is_empty() => Err(format!("{place} is empty")),
            [one] => answer.iter().try_for_each(|said| same(place, one, said)),
            several if several.len() != answer.len() => Err(format!("{place} has {}", answer.len())),
            several => several.iter().zip(answer).try_for_each(|(one, said)| same(place, one, said)),
        },
        _ if expected == answer => Ok(()),
        _ => Err(format!("{place} is {answer}, not {expected}")),
    }
}

#[test]
fn every_example_of_the_interface_does_what_it_shows() {
    let curl = Command::new("curl").arg("--version").output();
    assert!(
        curl.is_ok_and(|curl| curl.status.success()),
        "curl is missing; on Debian and Ubuntu: apt-get install curl"
    );
    let page = Page::parse(DOCUMENT);
    let examples: Vec<&Example> = page.examples().collect();
    assert!(examples.len() >= 30, "only {} examples were found", examples.len());
    let mut lab = Lab::without_daemon();
    // As if it were installed.
    let beside = Path::new(REKINDLE).parent().expect("a directory").display().to_string();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    lab.start_with(&[], &[("PATH", &path)]);
    let mut reader = Reader { lab: &lab, before: String::new(), names: Vec::new() };
    examples.into_iter().for_each(|example| reader.follow(example));
    lab.died();
}

#[test]
fn every_path_of_the_interface_has_an_example_or_a_row() {
    let lab = Lab::new();
    let document = lab.get("/api/openapi.json");
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            let row = format!("| `{} {path}` |", method.to_uppercase());
            assert!(DOCUMENT.contains(&row), "docs/http-api.md has no row {row}");
        }
    }
}

#[test]
fn what_is_shown_is_compared_by_shape() {
    let check = |shown: &str, text: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        compare(&shown, text).map(drop)
    };
    assert_eq!(
        check("{\"a\":\"…\",\"b\":[{\"c\":null}]}\n200", "{\"b\":[{\"c\":null}],\"a\":7}\n200\n"),
        Ok(())
    );
    assert_eq!(check("{\"a\":1,\"…\":\"…\"}\n200", "{\"a\":1,\"b\":2}\n200\n"), Ok(()));
    assert_eq!(check("204", "\n204\n"), Ok(()));
    assert_eq!(check("event: a\nevent: c\n200", "event: a\n\nevent: b\n\nevent: c\n\n200\n"), Ok(()));
    for (shown, text) in [
        ("{}\n200", "{}\n201\n"),
        ("{}\n200", "{\"a\":1}\n200\n"),
        ("{\"a\":1}\n200", "{}\n200\n"),
        ("{\"a\":\"x…\"}\n200", "{\"a\":\"y\"}\n200\n"),
        ("{\"a\":null}\n200", "{\"a\":1}\n200\n"),
        ("{\"a\":[1]}\n200", "{\"a\":[]}\n200\n"),
        ("event: c\nevent: a\n200", "event: a\n\nevent: c\n\n200\n"),
    ] {
        assert!(check(shown, text).is_err(), "{shown} is not {text}");
    }
}

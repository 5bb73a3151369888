//! The guide's page on pipelines is held to what the file may say: its example is in order, and its table has every key.

use std::collections::BTreeSet;

use rekindle_domain::event::{
    AgentConfig, InputValue, OnCut, PipelineConfig, ProjectConfig, StageConfig, TaskConfig, UnknownKeys,
};
use serde_json::Value;

use crate::check::check;

const PAGE: &str = include_str!("../../../docs/guide/pipelines.md");

/// Returns a file that says everything that one may say. A field that is new is missing here until the page has it.
fn everything() -> ProjectConfig {
    let unknown = UnknownKeys::new;
    let agent = AgentConfig {
        agent: Some(String::new()),
        command: Some(Vec::new()),
        profile: Some(String::new()),
        model: Some(String::new()),
        env: vec![String::new()],
        heartbeat_s: Some(1),
        unknown: unknown(),
    };
    let task = TaskConfig {
        id: String::new(),
        goal: String::new(),
        inputs: [("a".to_owned(), InputValue::Text(String::new()))].into(),
        unknown: unknown(),
    };
    let stage = StageConfig {
        name: String::new(),
        agent: Some(String::new()),
        prompt: Some(String::new()),
        check: Some(Vec::new()),
        writes: false,
        outcomes: [(String::new(), String::new())].into(),
        on_fail: Some(String::new()),
        cache: true,
        deadline_s: Some(1),
        stalled_after_s: Some(1),
        unknown: unknown(),
    };
    let pipeline = PipelineConfig {
        max_rounds: Some(1),
        on_cut: Some(OnCut::Ask),
        stages: vec![stage],
        unknown: unknown(),
    };
    ProjectConfig {
        version: Some(1),
        agents: [("a".to_owned(), agent)].into(),
        tasks: vec![task],
        pipelines: [("a".to_owned(), pipeline)].into(),
        unknown: unknown(),
    }
}

fn keys(section: &str, value: &Value) -> BTreeSet<(String, String)> {
    let keys = value.as_object().expect("an object").keys();
    keys.map(|key| (section.to_owned(), key.clone())).collect()
}

#[test]
fn the_page_has_every_key_and_no_other() {
    let written = serde_json::to_value(everything()).expect("it is JSON");
    let mut expected = keys("", &written);
    // They are the sections below.
    expected.retain(|(_, key)| key == "version");
    expected.extend(keys("[agents.NAME]", &written["agents"]["a"]));
    expected.extend(keys("[[tasks]]", &written["tasks"][0]));
    expected.extend(keys("[pipelines.NAME]", &written["pipelines"]["a"]));
    expected.extend(keys("[[pipelines.NAME.stages]]", &written["pipelines"]["a"]["stages"][0]));

    let (_, table) = PAGE.split_once("\n### Every key\n").expect("a table of keys");
    let rows =
        table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut section = String::new();
    let mut documented = BTreeSet::new();
    for row in rows {
        let first = row.split('|').nth(1).unwrap_or_default().trim();
        let names = first.split('`').skip(1).step_by(2).map(str::to_owned);
        if first.starts_with("**") {
            section = names.collect();
        } else {
            documented.extend(names.map(|name| (section.clone(), name)));
        }
    }
    assert_eq!(documented, expected);
}

#[test]
fn the_example_of_the_page_is_in_order() {
    let (_, example) = PAGE.split_once("```toml\nversion = 1\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let problems = check(&format!("version = 1\n{example}")).err();
    assert_eq!(problems, None);
}

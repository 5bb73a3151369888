//! What is wrong with configurations, and where.

use super::*;
use crate::pipeline::tests::script::CONFIG;

fn found(json: &str) -> Vec<Problem> {
    let config: ProjectConfig = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    problems(&config, |name| ["claude", "codex"].contains(&name))
}

/// One problem, at this place, in these words.
fn check(json: &str, place: &str, words: &str) {
    let found = found(json);
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let [problem] = found.as_slice() else { panic!("{json}: {shown:#?}") };
    assert!(problem.place.to_string() == place && problem.what.contains(words), "{json}: {shown:#?}");
}

/// A configuration with these stages, and agents for them.
fn with_stages(stages: &str) -> String {
    format!(
        r#"{{"version":1,"agents":{{"a":{{"agent":"claude"}},"e":{{"command":["x"],"profile":"exec"}},"n":{{"command":["x"],"profile":"ndjson"}}}},
            "tasks":[{{"id":"T-1","goal":"g","inputs":{{"spec":"x"}}}}],"pipelines":{{"default":{{"stages":[{stages}]}}}}}}"#
    )
}

fn with_task(task: &str) -> String {
    format!(
        r#"{{"version":1,"agents":{{"builder":{{"agent":"claude"}},"reviewer":{{"agent":"codex"}}}},"tasks":[{task}]}}"#
    )
}

fn with_agent(agent: &str) -> String {
    format!(
        r#"{{"version":1,"agents":{{"builder":{{"agent":"claude"}},"reviewer":{{"agent":"codex"}},"x":{agent}}}}}"#
    )
}

#[test]
fn what_is_right_has_no_problem() {
    for json in [
        CONFIG.to_owned(),
        with_task(r#"{"id":"T-1","goal":"g","inputs":{"a":"x","b":-7,"c":0.5,"d":{"file":"docs/a.md"}}}"#),
        with_agent(r#"{"command":["my-agent","-v"],"profile":"acp","model":"m","env":["KEY"]}"#),
        with_stages(
            r#"{"name":"s","agent":"a","prompt":"{{task.goal}} {{inputs.spec}} {{s.findings}} {{round}}"}"#,
        ),
        with_stages(
            r#"{"name":"review","agent":"a"},{"name":"v","check":["true"],"on_fail":"review","writes":false}"#,
        ),
        with_stages(
            r#"{"name":"s","agent":"n","outcomes":{"ok":"next","bad":"fail","again":"s"},"cache":true,"deadline_s":5,"stalled_after_s":60}"#,
        ),
        with_agent(r#"{"command":["my-agent"],"profile":"ndjson","heartbeat_s":5}"#),
        with_task(r#"{"id":"T-1","goal":"g","inputs":{"goal":"x","prompt":"y"}}"#),
        with_stages(r#"{"name":"s","agent":"e","prompt":"x","on_fail":"fail"}"#),
    ] {
        assert_eq!(found(&json), [], "{json}");
    }
}

#[test]
fn a_file_and_its_agents_are_checked() {
    let agents = r#""agents":{"builder":{"agent":"claude"},"reviewer":{"agent":"codex"}}"#;
    check(&format!("{{{agents}}}"), "version", "write version = 1");
    check(&format!(r#"{{"version":2,{agents}}}"#), "version", "version 2 is not known here");
    check(&format!(r#"{{"version":1,{agents},"colour":"red"}}"#), "colour", "there is no such key");
    check(r#"{"version":1,"agents":{"reviewer":{"agent":"codex"}}}"#, "agents.builder", "it is missing");
    for (agent, place, words) in [
        (r#"{"agent":"claude","command":["x"]}"#, "agents.x", "both agent and command"),
        ("{}", "agents.x", "neither agent nor command"),
        (r#"{"agent":"cloud"}"#, "agents.x.agent", "no known agent \"cloud\""),
        (r#"{"agent":"claude","profile":"acp"}"#, "agents.x.profile", "leave it out"),
        (r#"{"command":["x"]}"#, "agents.x.profile", "it is missing"),
        (r#"{"command":["x"],"profile":"http"}"#, "agents.x.profile", "\"http\" is not a profile"),
        (r#"{"command":[],"profile":"acp"}"#, "agents.x.command", "it is empty"),
        (r#"{"command":["","a"],"profile":"acp"}"#, "agents.x.command", "it is empty"),
        (r#"{"command":["x","a\u0000"],"profile":"acp"}"#, "agents.x.command[1]", "contains a NUL"),
        (r#"{"agent":"claude","env":["A","B=c"]}"#, "agents.x.env[1]", "is not the name of a variable"),
        (r#"{"agent":"claude","heartbeat_s":5}"#, "agents.x.heartbeat_s", "only an ndjson agent"),
        (
            r#"{"command":["x"],"profile":"exec","heartbeat_s":5}"#,
            "agents.x.heartbeat_s",
            "only an ndjson agent",
        ),
        (r#"{"agent":"claude","modle":"m"}"#, "agents.x.modle", "there is no such key; there are agent"),
    ] {
        check(&with_agent(agent), place, words);
    }
    let odd = r#"{"version":1,"agents":{"builder":{"agent":"claude"},"reviewer":{"agent":"codex"},"../x":{"agent":"codex"}}}"#;
    check(odd, "agents.../x", "is not a valid name");
}

#[test]
fn tasks_are_checked() {
    for (task, place, words) in [
        (r#"{"goal":"g"}"#, "tasks[0].id", "it has no name"),
        (r#"{"id":"T 1","goal":"g"}"#, "tasks[0].id", "is not a valid name"),
        (r#"{"id":"T-1"}"#, "tasks[0].goal", "say what is to be done"),
        (r#"{"id":"T-1","goal":"g"},{"id":"T-1","goal":"g"}"#, "tasks[1].id", "there is another task"),
        (
            r#"{"id":"T-1","goal":"g","inputs":{"a":9007199254740992}}"#,
            "tasks[0].inputs.a",
            "whole numbers go from",
        ),
        (r#"{"id":"T-1","goal":"g","inputs":{"a b":1}}"#, "tasks[0].inputs.a b", "is not a valid name"),
        (
            r#"{"id":"T-1","goal":"g","inputs":{"a":{"file":"/etc/passwd"}}}"#,
            "tasks[0].inputs.a.file",
            "not a path inside",
        ),
        (
            r#"{"id":"T-1","goal":"g","inputs":{"a":{"file":"a/../../b"}}}"#,
            "tasks[0].inputs.a.file",
            "not a path inside",
        ),
        (
            r#"{"id":"T-1","goal":"g","inputs":{"a":{"file":""}}}"#,
            "tasks[0].inputs.a.file",
            "not a path inside",
        ),
        (r#"{"id":"T-1","goal":"g","priority":1}"#, "tasks[0].priority", "there is no such key"),
    ] {
        check(&with_task(task), place, words);
    }
    let mut config: ProjectConfig =
        serde_json::from_str(&with_task(r#"{"id":"T-1","goal":"g"}"#)).expect("a configuration");
    for number in [f64::NAN, f64::INFINITY] {
        config.tasks[0].inputs.insert("a".into(), InputValue::Float(number));
        let found = problems(&config, |_| true);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].to_string(), "tasks[0].inputs.a: it is not a finite number; write it as a text");
    }
}

#[test]
fn what_an_agent_is_told_anyway_is_no_name_of_an_input() {
    let stage = r#"{"name":"s","agent":"n"}"#;
    for name in ["goal", "prompt"] {
        let config = with_stages(stage).replace(r#""spec":"x""#, &format!(r#""{name}":"x""#));
        check(&config, &format!("tasks[0].inputs.{name}"), "give the input another name");
    }
}

#[test]
fn stages_are_checked() {
    for (stages, place, words) in [
        ("", "stages", "there is none"),
        (r#"{"agent":"a","prompt":"x"}"#, "stages[0].name", "it has no name"),
        (r#"{"name":"a/b","agent":"a","prompt":"x"}"#, "stages[0].name", "is not a valid name"),
        (r#"{"name":"next","agent":"a","prompt":"x"}"#, "stages[0].name", "a meaning of its own"),
        (r#"{"name":"task","agent":"a","prompt":"x"}"#, "stages[0].name", "a meaning of its own"),
        (r#"{"name":"complete","agent":"a","prompt":"x"}"#, "stages[0].name", "a meaning of its own"),
        (
            r#"{"name":"s","agent":"a","prompt":"x"},{"name":"s","agent":"a","prompt":"x"}"#,
            "stages[1].name",
            "there is another stage",
        ),
        (r#"{"name":"s","agent":"a","check":["x"]}"#, "stages[0]", "both agent and check"),
        (r#"{"name":"review"}"#, "stages[0]", "neither agent nor check"),
        (
            r#"{"name":"s","agent":"b","prompt":"x"}"#,
            "stages[0].agent",
            "no agent \"b\" in agents; there are a, e, n",
        ),
        (r#"{"name":"s","check":[]}"#, "stages[0].check", "it is empty"),
        (
            r#"{"name":"s","check":["x"],"outcomes":{"ok":"next"}}"#,
            "stages[0].outcomes",
            "a check reports no outcome",
        ),
        (
            r#"{"name":"s","agent":"e","prompt":"x","outcomes":{"ok":"next"}}"#,
            "stages[0].outcomes",
            "an exec agent reports no outcome",
        ),
        (r#"{"name":"s","check":["x"],"prompt":"x"}"#, "stages[0].prompt", "a check gets no prompt"),
        (r#"{"name":"s","agent":"a"}"#, "stages[0].prompt", "it is missing"),
        (r#"{"name":"s","agent":"a","prompt":" "}"#, "stages[0].prompt", "it is empty"),
        (r#"{"name":"s","agent":"a","prompt":"{{task.goal"}"#, "stages[0].prompt", "{{ without }}"),
        (r#"{"name":"s","agent":"a","prompt":"{{qa.diff}}"}"#, "stages[0].prompt", "there is no stage qa"),
        (r#"{"name":"s","agent":"a","prompt":"{{inputs.x}}"}"#, "stages[0].prompt", "no task has an input x"),
        (
            r#"{"name":"s","agent":"a","prompt":"x","outcomes":{"ok":"qa"}}"#,
            "stages[0].outcomes.ok",
            "there is no stage \"qa\"",
        ),
        (
            r#"{"name":"s","agent":"a","prompt":"x","outcomes":{"o k":"next"}}"#,
            "stages[0].outcomes.o k",
            "is not a valid name",
        ),
        (
            r#"{"name":"s","agent":"a","prompt":"x","outcomes":{"failed":"s"}}"#,
            "stages[0].outcomes.failed",
            "use on_fail",
        ),
        (
            r#"{"name":"s","agent":"a","prompt":"x","on_fail":"next"}"#,
            "stages[0].on_fail",
            "there is no stage \"next\"",
        ),
        (r#"{"name":"s","agent":"a","prompt":"x","promt":"y"}"#, "stages[0].promt", "there is no such key"),
    ] {
        check(&with_stages(stages), &format!("pipelines.default.{place}"), words);
    }
    for (rounds, is_right) in [(0, false), (1, true), (100, true), (101, false)] {
        let json = with_stages(r#"{"name":"review","agent":"a"}"#);
        let json = json.replace(r#""default":{"#, &format!(r#""default":{{"max_rounds":{rounds},"#));
        assert_eq!(found(&json).is_empty(), is_right, "{rounds}");
    }
}

/// All that is wrong is told at once, in the order of the file, with the place in a template.
#[test]
fn every_problem_is_told() {
    let json = with_stages(
        r#"{"name":"s","agent":"b","prompt":"é {{qa.diff}} {{inputs.x}}"},{"name":"s","check":["x"],"on_fail":"y"}"#,
    );
    let found = found(&json);
    let places: Vec<(String, Option<usize>)> =
        found.iter().map(|problem| (problem.place.to_string(), problem.offset)).collect();
    let at = |place: &str, offset| (format!("pipelines.default.stages{place}"), offset);
    assert_eq!(
        places,
        [
            at("[0].agent", None),
            at("[0].prompt", Some(3)),
            at("[0].prompt", Some(15)),
            at("[1].name", None),
            at("[1].on_fail", None),
        ]
    );
}

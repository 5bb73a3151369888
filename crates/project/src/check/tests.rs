//! Problems of files as people read them: each with its line and column, however the file is written.

use super::*;

/// The problems of a text, as a person reads them.
fn told(text: &str) -> Vec<String> {
    let problems = check(text).err().unwrap_or_default();
    problems.iter().map(|problem| problem.text(Path::new("r.toml"))).collect()
}

const GOOD: &str = r#"version = 1
[agents.builder]
agent = "claude"
[agents.reviewer]
command = ["my-agent"]
profile = "acp"
"#;

#[test]
fn what_is_right_is_read() {
    let config = check(GOOD).expect("no problems");
    assert_eq!(config.agents["builder"].agent.as_deref(), Some("claude"));
    assert_eq!(told(&GOOD.replace('\n', "\r\n")), [""; 0]);
}

#[test]
fn every_problem_has_its_line_and_column() {
    let cases = [
        // A value, a name of a table, what is missing in one, and what is missing altogether.
        ("version = 2\n", "version = 1", "r.toml:1:11: version: version 2 is not known here"),
        (
            "agent = \"claude\"",
            "agent = \"cloud\"",
            "r.toml:3:9: agents.builder.agent: there is no known agent",
        ),
        ("profile = \"acp\"\n", "", "r.toml:4:9: agents.reviewer.profile: it is missing"),
        ("version = 1\n", "", "r.toml:1:1: version: it is missing"),
        (
            "[agents.builder]",
            "[agents.\"no name\"]",
            "r.toml:2:9: agents.no name: \"no name\" is not a valid name",
        ),
        ("profile =", "colour = 7\nprofile =", "r.toml:6:10: agents.reviewer.colour: there is no such key"),
        (
            "[\"my-agent\"]",
            "[\"my-agent\", \"a\\u0000\"]",
            "r.toml:5:24: agents.reviewer.command[1]: \"a\\0\" contains a NUL",
        ),
    ];
    for (from, to, expected) in cases {
        let (from, to) = if from == "version = 2\n" { ("version = 1\n", from) } else { (from, to) };
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{expected}");
        let told = told(&text);
        assert!(told.iter().any(|line| line.starts_with(expected)), "{expected}: {told:#?}");
    }
}

#[test]
fn items_of_lists_and_places_in_templates_are_found_however_they_are_written() {
    let stages = r#"
[[tasks]]
id = "T-1"
goal = "g"

[[tasks]]
id = "T-1"
goal = " "
inputs = { a = 1, "b c" = { file = "../x" } }

[pipelines.default]
[[pipelines.default.stages]]
name = "one"
agent = "builder"
prompt = "é {{nothing}}"

[[pipelines.default.stages]]
name = "two"
agent = "nobody"
prompt = """
A line \
    goes on
{{task.goal}} {{two.colour}}"""

[[pipelines.default.stages]]
name = "three"

[pipelines.other]
stages = [{ name = "a", check = [] }, { name = "b", agent = "builder", prompt = 'x {{y' }]
"#;
    let told = told(&[GOOD, stages].concat());
    let beginning = |line: &String| line.split(": ").take(2).collect::<Vec<_>>().join(": ");
    let beginnings: Vec<String> = told.iter().map(beginning).collect();
    assert_eq!(
        beginnings,
        [
            "r.toml:13:6: tasks[1].id",
            "r.toml:14:8: tasks[1].goal",
            "r.toml:15:19: tasks[1].inputs.b c",
            "r.toml:15:36: tasks[1].inputs.b c.file",
            "r.toml:21:13: pipelines.default.stages[0].prompt",
            "r.toml:25:9: pipelines.default.stages[1].agent",
            "r.toml:29:15: pipelines.default.stages[1].prompt",
            "r.toml:31:1: pipelines.default.stages[2]",
            "r.toml:31:1: pipelines.default.stages[2].prompt",
            "r.toml:35:25: pipelines.other.stages[0].check",
            "r.toml:35:84: pipelines.other.stages[1].prompt",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_too() {
    let cases = [
        ("version = 1\nagents = {\n", "r.toml:"),
        ("version = = 1\n\n[x\n", "r.toml:1:11: "),
        ("version = \"one\"\n", "r.toml:1:11: invalid type: string \"one\", expected u32; write what"),
        ("version = 1\n[pipelines.default]\nmax_rounds = -1\n", "r.toml:3:14: "),
        ("version = 1\n[[tasks]]\nid = \"T\"\ninputs = { a = true }\n", "r.toml:4:16: "),
        ("version = 1\nversion = 1\n", "r.toml:2:1: "),
    ];
    for (text, expected) in cases {
        let told = told(text);
        assert!(told.first().is_some_and(|line| line.starts_with(expected)), "{text}: {told:#?}");
        assert!(told.iter().all(|line| line.contains("; ")), "{told:#?}");
    }
    assert_eq!(told("version = = 1\n\n[x\n").len(), 2, "a problem a line");
}

#[test]
fn nothing_that_a_file_says_moves_the_cursor() {
    let told = told("version = 1\n\"a\\u001b[2J\" = 1\n");
    assert!(told.iter().all(|line| !line.contains('\u{1b}')), "{told:?}");
}

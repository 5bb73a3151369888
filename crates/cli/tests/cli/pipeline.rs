//! `rekindle pipeline`: a file to begin with, and what is wrong with one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use rekindle_domain::blob_id::BlobId;
use serde_json::{Value, json};

use crate::support::{Home, code, stderr, stdout};

/// A file with problems of every kind: keys, values, places that are missing, templates.
const WRONG: &str = r#"version = 1
[agents.builder]
agent = "claud"
[agents.reviewer]
command = ["my-reviewer"]

[[tasks]]
id = "T-1"
gaol = "Make it so"

[pipelines.default]
max_rounds = 0
[[pipelines.default.stages]]
name = "implement"
agent = "builder"
prompt = """
Do {{task.goal}}
as {{review.findings}} says"""
[[pipelines.default.stages]]
name = "verify"
check = []
on_fail = "implment"
"#;

const TOLD: &str = r#"rekindle.toml:3:9: agents.builder.agent: there is no known agent "claud"; name one that there is, or give command and profile
rekindle.toml:4:9: agents.reviewer.profile: it is missing; write acp, ndjson or exec
rekindle.toml:7:1: tasks[0].goal: it is missing; say what is to be done
rekindle.toml:9:8: tasks[0].gaol: there is no such key; there are id, goal, inputs
rekindle.toml:12:14: pipelines.default.max_rounds: it must be a number from 1 to 100
rekindle.toml:18:4: pipelines.default.stages[0].prompt: {{review.findings}}: there is no stage review; there are implement, verify, and task.id, task.goal, inputs.*, round
rekindle.toml:21:1: pipelines.default.stages[1].check: it is empty; write a program and its arguments, each as a string of its own
rekindle.toml:22:11: pipelines.default.stages[1].on_fail: there is no stage "implment"; name one, or write fail
"#;

/// Makes the directory that is worked in, beside the home.
fn work(home: &Home) -> PathBuf {
    let work = home.path().with_file_name("work");
    fs::create_dir(&work).expect("a directory");
    work
}

/// Runs a command in a directory, with nothing on PATH but what is said.
fn run_in(home: &Home, work: &Path, path: &Path, args: &[&str]) -> Output {
    home.command(args).current_dir(work).env("PATH", path).output().expect("the binary runs")
}

/// Puts programs of these names where they are found.
fn programs(home: &Home, names: &[&str]) -> PathBuf {
    let bin = home.path().with_file_name("bin");
    fs::create_dir_all(&bin).expect("a directory");
    for name in names {
        fs::write(bin.join(name), "#!/bin/sh\nexit 1\n").expect("written");
        fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    bin
}

#[test]
fn every_problem_is_told_with_its_line_and_column() {
    let home = Home::empty();
    let work = work(&home);
    fs::write(work.join("rekindle.toml"), WRONG).expect("written");
    let output = run_in(&home, &work, Path::new(""), &["pipeline", "validate"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert_eq!(stdout(&output), TOLD);

    let output = run_in(&home, &work, Path::new(""), &["pipeline", "validate", "--json"]);
    assert_eq!(code(&output), 1);
    let told: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&told["file"], &told["valid"]), (&json!("rekindle.toml"), &json!(false)));
    let problems = told["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), 8);
    let first = json!({"line": 3, "column": 9, "place": "agents.builder.agent",
        "what": "there is no known agent \"claud\"; name one that there is, or give command and profile"});
    assert_eq!(problems[0], first);
    assert!(!home.path().exists(), "no home is made for it");
}

#[test]
fn a_file_that_is_right_is_told_as_pipelines_and_one_that_is_missing_is_wrong_usage() {
    let home = Home::empty();
    let work = work(&home);
    let validate =
        |args: &[&str]| run_in(&home, &work, Path::new(""), &[&["pipeline", "validate"], args].concat());
    let missing = validate(&[]);
    assert_eq!(code(&missing), 2);
    assert!(stderr(&missing).contains("there is no rekindle.toml in this directory"), "{}", stderr(&missing));
    assert!(stderr(&missing).contains("rekindle pipeline init"), "{}", stderr(&missing));
    let text = r#"version = 1
[agents.a]
agent = "claude"
[agents.builder]
agent = "claude"
[agents.reviewer]
agent = "codex"
[pipelines.quick]
max_rounds = 1
stages = [{ name = "one", agent = "a", prompt = "do {{task.goal}}" }, { name = "verify", check = ["sh", "-c", "exit 0"] }]
"#;
    fs::create_dir(work.join("tools")).expect("a directory");
    fs::write(work.join("tools/p.toml"), text).expect("written");
    let output = validate(&["tools/p.toml"]);
    let hash = BlobId::of(text.as_bytes());
    let expected = format!(
        "default: implement (builder), review (reviewer), spec_maintain (builder)\n\
         quick: one (a), verify (check: sh -c 'exit 0')\n\
         trusted with: rekindle pipeline run --trust {hash}\n"
    );
    assert_eq!((code(&output), stdout(&output)), (0, expected));
    let told: Value = serde_json::from_str(&stdout(&validate(&["tools/p.toml", "--json"]))).expect("JSON");
    let quick = json!({"name": "quick", "max_rounds": 1,
        "stages": [{"name": "one", "agent": "a"}, {"name": "verify", "check": ["sh", "-c", "exit 0"]}]});
    assert_eq!(
        (&told["valid"], &told["problems"], &told["pipelines"][1]),
        (&json!(true), &json!([]), &quick)
    );
    assert_eq!(told["hash"], json!(hash), "what `pipeline run --trust` wants");
    let warned = "stage verify: there is no program \"sh\" on PATH";
    assert_eq!(told["warnings"], json!([{"line": 10, "column": 99, "what": warned}]));
    assert_eq!(stderr(&output), format!("warning: tools/p.toml:10:99: {warned}\n"));

    fs::write(work.join("rekindle.toml"), b"version = 1\n# \xff\n").expect("written");
    let output = validate(&[]);
    assert_eq!(
        (code(&output), stdout(&output).as_str()),
        (1, "rekindle.toml:2:3: this is not valid UTF-8; save the file as UTF-8\n")
    );
    assert_eq!(code(&validate(&["a.toml", "b.toml"])), 2);
}

#[test]
fn a_file_to_begin_with_names_agents_that_are_here_and_replaces_none_unasked() {
    let home = Home::empty();
    let work = work(&home);
    let bin = programs(&home, &["opencode", "gemini"]);
    fs::write(work.join("Cargo.toml"), "").expect("written");
    let init =
        |path: &Path, args: &[&str]| run_in(&home, &work, path, &[&["pipeline", "init"], args].concat());
    let validate = || run_in(&home, &work, Path::new(""), &["pipeline", "validate"]);

    let output = init(&bin, &["--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let expected = json!({"file": "rekindle.toml", "agents": {"builder": "gemini", "reviewer": "opencode"},
        "check": ["cargo", "test"]});
    assert_eq!(told, expected);
    let written = fs::read_to_string(work.join("rekindle.toml")).expect("written");
    assert!(
        written.contains("agent = \"gemini\"") && written.contains("check = [\"cargo\", \"test\"]"),
        "{written}"
    );
    let told = stdout(&validate());
    assert_eq!(
        told.lines().next(),
        Some(
            "default: implement (builder), review (reviewer), verify (check: cargo test), spec_maintain (builder)"
        )
    );

    // What is there stays, whatever it says.
    fs::write(work.join("rekindle.toml"), "mine").expect("written");
    let refused = init(&bin, &[]);
    assert_eq!(code(&refused), 2);
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(work.join("rekindle.toml")).expect("there"), "mine");

    let output = init(Path::new(""), &["--force"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("rekindle agents"), "{}", stdout(&output));
    let written = fs::read_to_string(work.join("rekindle.toml")).expect("written");
    assert!(written.contains("command = [\"rekindle\", \"demo-agent\"]"), "{written}");
    assert_eq!(code(&validate()), 0);
    let names: Vec<_> =
        fs::read_dir(&work).expect("a directory").map(|entry| entry.expect("read").file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
}

/// A file that is right, with two tasks and a pipeline of two stages.
const RIGHT: &str = r#"version = 1
[agents.builder]
command = ["rekindle", "demo-agent"]
profile = "acp"
[agents.reviewer]
agent = "codex"
[[tasks]]
id = "T-1"
goal = "Make it so"
[[tasks]]
id = "T-2"
goal = "And this"
[pipelines.default]
max_rounds = 2
stages = [{ name = "implement", agent = "builder" }, { name = "verify", check = ["true"], on_fail = "implement" }]
"#;

#[test]
fn a_run_that_cannot_begin_says_why_and_what_to_do_before_anything_is_made() {
    let home = Home::empty();
    let work = work(&home);
    let inner = work.join("src/deep");
    fs::create_dir_all(&inner).expect("a directory");
    let run = |args: &[&str]| {
        let output = run_in(&home, &inner, Path::new(""), &[&["pipeline", "run", "--json"], args].concat());
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        let told: Value = serde_json::from_str(&stderr(&output)).expect("JSON");
        let hint = told["error"]["hint"].as_str().unwrap_or_default().to_owned();
        (told["error"]["code"].as_str().expect("a code").to_owned(), hint)
    };
    let (missing, hint) = run(&[]);
    assert_eq!(missing, "config_missing");
    assert!(hint.contains("rekindle pipeline init"), "{hint}");
    fs::write(work.join("rekindle.toml"), WRONG).expect("written");
    assert_eq!(run(&[]).0, "config_invalid");
    fs::write(work.join("rekindle.toml"), RIGHT).expect("written");
    let (unnamed, hint) = run(&[]);
    assert_eq!((unnamed.as_str(), hint.as_str()), ("no_task", "use --task with one of T-1, T-2"));
    assert_eq!(run(&["--task", "T-3"]), ("task_missing".into(), "there are: T-1, T-2".into()));
    assert_eq!(
        run(&["--task", "T-1", "-p", "quick"]),
        ("pipeline_missing".into(), "there are: default".into())
    );
    assert_eq!(run(&["--task", "T-1", "--task", "T-2"]).0, "no_worktree");
    assert_eq!(run(&["--task", "T-1", "--task", "T-2", "--worktree=b"]).0, "no_worktree");
    // What was looked at is another file.
    assert_eq!(run(&["--task", "T-1", "--trust", &"0".repeat(64)]).0, "config_untrusted");
    assert_eq!(run(&["--task", "T-1", "--cwd", "nowhere"]).0, "no_directory");
    assert!(!home.path().exists(), "no home is made for it");
}

#[test]
fn a_pipeline_is_shown_as_where_each_outcome_leads() {
    let home = Home::empty();
    let work = work(&home);
    fs::write(work.join("rekindle.toml"), RIGHT).expect("written");
    let graph = |args: &[&str]| run_in(&home, &work, Path::new(""), &[&["pipeline", "graph"], args].concat());
    let output = graph(&[]);
    assert_eq!(
        (code(&output), stdout(&output).as_str()),
        (
            0,
            "implement  builder\n  completed → verify\n  failed    → fail\n\
             verify  true\n  completed → end\n  failed    → implement, in another round\nat most 2 rounds\n"
        )
    );
    assert!(stdout(&graph(&["--dot"])).starts_with("digraph pipeline {"));
    let told: Value = serde_json::from_str(&stdout(&graph(&["--json"]))).expect("JSON");
    assert_eq!(
        (&told["stages"], &told["edges"][3]),
        (&json!(["implement", "verify"]), &json!({"from": "verify", "outcome": "failed", "to": "implement"}))
    );
    assert_eq!(code(&graph(&["-p", "quick"])), 2);
    assert!(!home.path().exists(), "no home is made for it");
}

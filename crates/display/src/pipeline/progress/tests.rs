//! Lines of runs, from records as a daemon sends them.

use rekindle_domain::line::Line;

use super::*;

const TREE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const STARTED: &str = r#""kind":"pipeline.started","pipeline":"default","config":{"version":1,"agents":{"builder":{"agent":"claude"},"reviewer":{"agent":"codex"}},"tasks":[{"id":"T-1","goal":"Make it so"}],"pipelines":{"default":{"max_rounds":3,"stages":[{"name":"implement","agent":"builder","prompt":"p"},{"name":"review","agent":"reviewer","prompt":"p","writes":false,"outcomes":{"approved":"next","changes_requested":"implement"}},{"name":"verify","check":["true"]}]}}},"config_hash":"TREE","task":{"id":"T-1","goal":"Make it so"},"snapshot_id":"snap-0123456789ab","tree":"TREE","working_dir":"/repo","origin":"/repo","by":"user:ada""#;

/// Shows records, each with the second at which it was written; what is left of the lines without colours.
fn shown(records: &[(u32, &str)], width: usize) -> Vec<String> {
    let mut progress = Progress::new(String::new());
    shown_by(&mut progress, records, width)
}

fn shown_by(progress: &mut Progress, records: &[(u32, &str)], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (second, record) in records {
        let (minutes, seconds) = (second / 60, second % 60);
        let record = record.replace("TREE", TREE);
        let text = format!(r#"{{"seq":1,"ts":"2026-02-21T14:{minutes:02}:{seconds:02}.000Z",{record}}}"#);
        let line = Line::parse(text.as_bytes()).expect("a record");
        lines.extend(progress.take(line.time(), &line.event().expect("an event"), width));
    }
    lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
}

fn intended(step: &str, stage: &str, round: u32, agent: Option<&str>) -> String {
    let agent = agent.map(|name| format!(r#""agent":{{"name":"{name}","command_hash":"TREE"}},"#));
    format!(
        r#""kind":"step.intended","step_id":"{step}","stage":"{stage}","round":{round},"action":"{stage}","key":"ik:TREE","from":"TREE",{}"inputs_hash":"TREE""#,
        agent.unwrap_or_default()
    )
}

fn began(step: &str, attempt: u32, more: &str) -> String {
    format!(
        r#""kind":"step.began","step_id":"{step}","session_id":"sess_1","run_id":"run_1","attempt":{attempt}{more}"#
    )
}

fn finished(step: &str, outcome: &str, more: &str) -> String {
    format!(
        r#""kind":"step.finished","step_id":"{step}","key":"ik:TREE","outcome":"{outcome}","to":"TREE"{more}"#
    )
}

#[test]
fn a_run_is_a_line_for_each_step() {
    let files = r#","files_touched":{"total":2,"lines_added":30,"lines_removed":4,"first":[]},"usage":{"input_tokens":12000,"output_tokens":300,"cost":0.42}"#;
    let findings = r#","payload":{"findings":"Name the function\nafter what it returns"},"usage":{"input_tokens":8000,"output_tokens":100}"#;
    let records = [
        (0, STARTED.to_owned()),
        (0, intended("implement-1", "implement", 1, Some("builder"))),
        (1, began("implement-1", 1, "")),
        (104, finished("implement-1", "completed", files)),
        (104, intended("review-1", "review", 1, Some("reviewer"))),
        (105, began("review-1", 1, "")),
        (160, began("review-1", 1, r#","reminder":true"#)),
        (163, finished("review-1", "changes_requested", findings)),
        (163, intended("implement-2", "implement", 2, Some("builder"))),
        (164, finished("implement-2", "completed", r#","cached":true"#)),
        (164, intended("review-2", "review", 2, Some("reviewer"))),
        (165, began("review-2", 1, "")),
        (170, finished("review-2", "approved", "")),
        (170, intended("verify-2", "verify", 2, None)),
        (171, began("verify-2", 1, "")),
        (171, finished("verify-2", "completed", "")),
        (171, r#""kind":"pipeline.completed""#.to_owned()),
    ];
    let records: Vec<(u32, &str)> = records.iter().map(|(at, text)| (*at, text.as_str())).collect();
    assert_eq!(
        shown(&records, 100),
        [
            "14:00:00  T-1: Make it so",
            "          implement → review → verify from snap-0123456789ab",
            "14:01:44  implement 1  builder   completed  1m 43s  12,300 tokens  cost 0.42  2 files +30 -4",
            "14:02:40  review 1     reviewer  is asked again for its outcome",
            "14:02:43  review 1     reviewer  changes_requested  58s  8,100 tokens",
            "            Name the function",
            "            after what it returns",
            "14:02:43  round 2 of at most 3",
            "14:02:44  implement 2  builder   completed  cached",
            "14:02:50  review 2     reviewer  approved   5s",
            "14:02:51  verify 2     check     completed  0ms",
            "14:02:51  completed",
        ]
    );
}

#[test]
fn cuts_drift_and_ends_say_why() {
    let drift = r#""kind":"pipeline.drift","step_id":"implement-1","expected":"TREE","found":"TREE","files":{"total":3,"first":[{"path":"a.rs","change":"modified"},{"path":"b\u001b[2J.rs","change":"deleted"}]},"after_cut":{"total":1,"first":[{"path":"a.rs"}]},"unknown_author":{"total":1,"first":[{"path":"b\u001b[2J.rs"}]},"decision":"stop""#;
    let records = [
        (0, STARTED.to_owned()),
        (0, intended("implement-1", "implement", 1, Some("builder"))),
        (1, began("implement-1", 1, "")),
        (
            9,
            r#""kind":"step.interrupted","step_id":"implement-1","attempt":1,"reason":"agent_gone","detail":"signal 9","died_at":null,"tree":null"#
                .to_owned(),
        ),
        (10, drift.to_owned()),
        (11, began("implement-1", 2, "")),
        (12, r#""kind":"pipeline.aborted","reason":"enough","by":"user:ada""#.to_owned()),
        (13, r#""kind":"pipeline.reopened","by":"user:ada""#.to_owned()),
        (14, r#""kind":"pipeline.failed","reason":"step implement-1 failed""#.to_owned()),
    ];
    let records: Vec<(u32, &str)> = records.iter().map(|(at, text)| (*at, text.as_str())).collect();
    let lines = shown(&records, 100);
    assert_eq!(
        lines[2..],
        [
            "14:00:09  implement 1  builder   attempt 1 was interrupted: its agent is gone: signal 9",
            "14:00:10  implement 1  builder   3 files are not as it expects: it waits for your decision",
            "          modified  a.rs  (after the agent was gone)",
            "          deleted   b.rs  (it is not known by whom)",
            "          and 1 more",
            "14:00:11  implement 1  builder   starts again: attempt 2",
            "14:00:12  aborted by user:ada: enough",
            "14:00:13  reopened by user:ada",
            "14:00:14  failed: step implement-1 failed",
        ]
    );
}

#[test]
fn a_program_that_could_not_be_started_is_named_once_and_words_stay_whole() {
    let cut = r#""kind":"step.interrupted","step_id":"implement-1","attempt":1,"reason":"not_launched","detail":"tru could not be started: No such file or directory (os error 2)","died_at":null,"tree":null"#;
    let intended = intended("implement-1", "implement", 1, Some("builder"));
    let began = began("implement-1", 1, "");
    let lines = shown(&[(0, STARTED), (0, &intended), (1, &began), (1, cut)], 80);
    assert_eq!(
        lines[2..],
        [
            "14:00:01  implement 1  builder   attempt 1: tru could not be started: No such",
            "                                 file or directory (os error 2)",
        ]
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
}

#[test]
fn what_goes_on_is_known_and_ends_with_the_run() {
    let mut progress = Progress::new("T-1  ".into());
    let current = |progress: &Progress| progress.current().map(|(text, since)| format!("{text} {since}"));
    assert_eq!((current(&progress), progress.ended()), (None, None));
    let intended = intended("implement-1", "implement", 1, Some("builder"));
    let first = shown_by(&mut progress, &[(0, STARTED), (0, &intended)], 100);
    assert!(
        first[0].starts_with("14:00:00  T-1  T-1: Make") && first[1].starts_with("               implement")
    );
    shown_by(&mut progress, &[(5, &began("implement-1", 1, ""))], 100);
    assert_eq!(current(&progress).as_deref(), Some("T-1  implement 1 (builder) 2026-02-21T14:00:05.000Z"));
    shown_by(&mut progress, &[(9, r#""kind":"pipeline.completed""#)], 100);
    assert_eq!((current(&progress), progress.ended()), (None, Some(RunStatus::Completed)));
}

#[test]
fn lines_fit_and_long_findings_are_told_by_their_beginning() {
    let findings =
        format!(r#","payload":{{"findings":"{}"}}"#, "a rather long line of findings\\n".repeat(9));
    let goal = STARTED.replace("\"goal\":\"Make it so\"", &format!("\"goal\":\"{}\"", "字".repeat(60)));
    let intended = intended("review-1", "review", 1, Some("reviewer"));
    let lines = shown(&[(0, &goal), (0, &intended), (2, &finished("review-1", "approved", &findings))], 40);
    assert_eq!(lines.len(), 2 + 1 + FINDINGS + 1, "{lines:#?}");
    assert!(
        lines.iter().take(2).chain(&lines[3..3 + FINDINGS]).all(|line| columns(line) <= 40),
        "{lines:#?}"
    );
    assert!(lines.last().is_some_and(|line| line.contains("3 more")), "{lines:#?}");
}

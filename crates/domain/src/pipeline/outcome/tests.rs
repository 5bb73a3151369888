//! What agents say, in all the ways in which they say it.

use super::*;

fn review() -> StageConfig {
    serde_json::from_str(
        r#"{"name":"review","outcomes":{"approved":"next","changes_requested":"implement"}}"#,
    )
    .expect("a stage")
}

fn said(outcome: &str, findings: Option<&str>) -> Result<Said, Unclear> {
    Ok(Said { outcome: outcome.into(), findings: findings.map(str::to_owned) })
}

#[test]
fn the_block_at_the_end_of_a_message_is_the_outcome() {
    let block = r#"{"outcome":"approved","findings":"all good"}"#;
    for message in [
        format!("Well done.\n\n```json\n{block}\n```"),
        format!("```json\n{block}\n```\n\n"),
        format!(
            "Earlier:\n```json\n{{\"outcome\":\"changes_requested\"}}\n```\nNow:\n```JSON \n{block}\n```\n"
        ),
        format!("```rust\nfn main() {{}}\n```\r\n````json\r\n{block}\r\n````\r\n"),
        "```json\n{\n  \"outcome\": \"approved\",\n  \"findings\": \"all good\",\n  \"more\": 1\n}\n```"
            .into(),
    ] {
        assert_eq!(of_message(&review(), &message), said("approved", Some("all good")), "{message}");
    }
    let read = |block: &str| of_message(&review(), &format!("x\n```json\n{block}\n```"));
    assert_eq!(read(r#"{"outcome":"approved"}"#), said("approved", None));
    assert_eq!(read(r#"{"outcome":"failed","findings":null}"#), said("failed", None));
    assert_eq!(read(r#"{"outcome":"approved","findings":["a","b"]}"#), said("approved", Some("- a\n- b")));
}

#[test]
fn what_is_no_outcome_says_why() {
    let check = |message: &str, expected: &str| {
        let why = of_message(&review(), message).expect_err(message);
        assert!(why.to_string().contains(expected), "{message}: {why}");
    };
    let block = r#"{"outcome":"approved"}"#;
    for message in [
        "",
        "approved",
        block,
        "```",
        "```json",
        &format!("```json\n{block}\n```\nBye!"),
        &format!("```\n{block}\n```"),
        &format!("```json5\n{block}\n```"),
        &format!("~~~json\n{block}\n```"),
        &format!("```json\n{block}\n``"),
    ] {
        check(message, "did not end with a fenced json block");
    }
    check("```json\nnot json\n```", "is not valid");
    check("```json\n{\"findings\":\"x\"}\n```", "is not valid");
    check("```json\n{\"outcome\":1}\n```", "is not valid");
    check("```json\n```", "is not valid");
    check("```json\n{\"outcome\":\"maybe\"}\n```", "\"maybe\" is not one of the outcomes");
    // Where outcomes are declared, that it is done does not say which.
    check("```json\n{\"outcome\":\"completed\"}\n```", "\"completed\" is not one of the outcomes");
}

#[test]
fn a_stage_without_outcomes_asks_for_nothing_and_reads_nothing() {
    let stage = StageConfig::default();
    assert_eq!(request(&stage), None);
    assert_eq!(of_message(&stage, "whatever"), said(COMPLETED, None));
    assert_eq!(of_message(&stage, "```json\n{\"outcome\":\"failed\"}\n```"), said(COMPLETED, None));
}

/// An agent that does exactly what it is shown is understood.
#[test]
fn what_is_asked_for_is_what_is_read() {
    for text in [request(&review()).expect("it asks"), reminder(&review(), &Unclear::NoBlock)] {
        assert!(text.contains("`approved`, `changes_requested`"), "{text}");
        let (_, shown) = text.split_once("\n\n").expect("a block");
        let (shown, _) = shown.split_once("\n\n").expect("a block");
        assert_eq!(of_message(&review(), shown), said("approved", Some("…")), "{shown}");
    }
    let reminded = reminder(&review(), &Unclear::Unknown("maybe".into()));
    assert!(reminded.contains("\"maybe\" is not one of the outcomes"), "{reminded}");
}

#[test]
fn a_summary_is_what_stands_before_the_block() {
    for (message, expected) in [
        ("Done.\n\n```json\n{}\n```\n", "Done."),
        ("```json\n{}\n```", ""),
        ("Done.\n", "Done."),
        ("é\n```json\n{}\n```", "é"),
    ] {
        assert_eq!(without_block(message), expected, "{message}");
    }
}

#[test]
fn an_exit_code_decides() {
    for (code, expected) in [(Some(0), COMPLETED), (Some(1), FAILED), (Some(-1), FAILED), (None, FAILED)] {
        assert_eq!(of_exit(code), expected, "{code:?}");
    }
}

#[test]
fn an_event_ends_its_command_by_its_type() {
    let (plain, declared, own) = (vec![], vec!["approved", "changes_requested"], vec![COMPLETED]);
    let outcome = |text: &str| Terminal::Outcome(text.into());
    let unknown = |text: &str| Terminal::Unclear(Unclear::Unknown(text.into()));
    let missing = || Terminal::Unclear(Unclear::NotNamed);
    for (outcomes, event, said, expected) in [
        (&plain, "builder.completed", None, outcome(COMPLETED)),
        (&plain, "builder.completed", Some("odd"), outcome(COMPLETED)),
        (&plain, "builder.failed", None, outcome(FAILED)),
        (&plain, "builder.progress", None, Terminal::Not),
        (&plain, "completed", None, Terminal::Not),
        (&plain, "builder.approved", None, Terminal::Not),
        (&plain, "builder.completed.later", None, Terminal::Not),
        (&declared, "reviewer.approved", None, outcome("approved")),
        (&declared, "reviewer.failed", Some("approved"), outcome(FAILED)),
        (&declared, "reviewer.completed", Some("approved"), outcome("approved")),
        (&declared, "reviewer.completed", Some("failed"), outcome(FAILED)),
        (&declared, "reviewer.completed", Some("maybe"), unknown("maybe")),
        (&declared, "reviewer.completed", None, missing()),
        (&own, "x.completed", Some("completed"), outcome(COMPLETED)),
        (&own, "x.completed", None, missing()),
    ] {
        assert_eq!(of_event(outcomes, event, said), expected, "{event} {said:?}");
    }
}

//! Templates: what they may say, and what is put in.

use super::*;
use crate::event::ProjectConfig;
use crate::pipeline::tests::script::{CONFIG, Ledger, id};

fn pipeline() -> PipelineConfig {
    let config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
    config.pipelines["default"].clone()
}

fn names(text: &str) -> Vec<String> {
    let template = Template::parse(text).expect(text);
    template.names().map(ToString::to_string).collect()
}

#[test]
fn names_are_read_and_everything_else_is_text() {
    for (text, expected) in [
        ("", &[][..]),
        ("no names { here } }}", &[]),
        ("{{task.goal}}", &["task.goal"]),
        ("a{{ task.id }}b{{round}}{{inputs.spec}}", &["task.id", "round", "inputs.spec"]),
        (
            "{{review.outcome}}{{review.findings}}{{spec-2.summary}}{{implement.diff}}",
            &["review.outcome", "review.findings", "spec-2.summary", "implement.diff"],
        ),
        ("é{{round}}é", &["round"]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_name_is_refused_with_its_place() {
    for (text, offset) in [
        ("{{", 0),
        ("ab {{task.goal", 3),
        ("{{}}", 0),
        ("é{{goal}}", 2),
        ("{{task.colour}}", 0),
        ("{{task}}", 0),
        ("{{round.x}}", 0),
        ("{{inputs.}}", 0),
        ("{{inputs.a b}}", 0),
        ("{{review.colour}}", 0),
        ("{{../x.diff}}", 0),
        ("{{task.goal}} {{{{round}}}}", 14),
    ] {
        let bad = Template::parse(text).expect_err(text);
        assert_eq!(bad.offset, offset, "{text}: {bad}");
    }
}

#[test]
fn a_name_must_be_one_that_there_is() {
    let unknown = |text: &str| -> Vec<(usize, String)> {
        let template = Template::parse(text).expect(text);
        let problems = template.unknown(&pipeline(), |input| input == "spec");
        problems.into_iter().map(|bad| (bad.offset, bad.what)).collect()
    };
    assert_eq!(unknown("{{task.goal}}{{round}}{{inputs.spec}}{{review.diff}}"), []);
    let found = unknown("{{inputs.other}} {{qa.findings}}");
    let offsets: Vec<usize> = found.iter().map(|(offset, _)| *offset).collect();
    assert_eq!(offsets, [0, 17]);
    assert!(found[0].1.contains("no task has an input other"), "{found:?}");
    assert!(
        found[1].1.contains("there is no stage qa; there are implement, review, verify, document"),
        "{found:?}"
    );
}

/// What an agent found may look like a template, and is none.
#[test]
fn values_are_put_in_once() {
    let template =
        Template::parse("1 {{review.findings}} 2 {{task.goal}} 3 {{review.diff}}").expect("a template");
    let expanded = template.expand(|name| match name {
        Name::Findings(_) => Some("{{task.goal}}".into()),
        Name::TaskGoal => Some("goal".into()),
        _ => None,
    });
    assert_eq!(expanded, "1 {{task.goal}} 2 goal 3 ");
}

#[test]
fn a_long_value_is_cut_between_letters_and_says_so() {
    let template = Template::parse("{{round}}").expect("a template");
    let expand = |value: &str| template.expand(|_| Some(value.to_owned()));
    let most = "x".repeat(MAX_VALUE);
    assert_eq!(expand(&most), most);
    let expanded = expand(&format!("{}é!", "x".repeat(MAX_VALUE - 1)));
    assert_eq!(expanded, format!("{}\n[… 3 bytes are left out]", "x".repeat(MAX_VALUE - 1)));
}

#[test]
fn a_ledger_has_what_was_said_and_a_stage_that_has_not_run_has_nothing() {
    let mut ledger = Ledger::of("start; intend implement-1; began; finish completed; intend review-1; began");
    let crate::event::Event::StepFinished(mut finished) = ledger.event("finish changes_requested") else {
        unreachable!("it is what was asked for")
    };
    let payload = serde_json::json!({"findings": ["name it", "test it"], "summary": "Not yet."});
    finished.payload = Some(crate::event::Raw::from_value(&payload).expect("JSON"));
    ledger.take(&finished.into()).expect("it follows");
    let value = |text: &str| {
        let template = Template::parse(&format!("{{{{{text}}}}}")).expect(text);
        let name = template.names().next().expect("a name").clone();
        value_in_ledger(&ledger.state, &id("implement-2"), &name)
    };
    for (name, expected) in [
        ("task.id", Some("T-1")),
        ("task.goal", Some("Make it so")),
        ("round", Some("2")),
        ("inputs.spec", None),
        ("implement.outcome", Some("completed")),
        ("implement.findings", None),
        ("review.outcome", Some("changes_requested")),
        ("review.findings", Some("- name it\n- test it")),
        ("review.summary", Some("Not yet.")),
        ("review.diff", None),
        ("verify.outcome", None),
        ("verify.findings", None),
    ] {
        assert_eq!(value(name).as_deref(), expected, "{name}");
    }
}

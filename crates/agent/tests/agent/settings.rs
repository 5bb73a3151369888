//! Mode and model: nothing is said to an agent before it has taken what is wanted, and what it does not offer is not
//! even asked for.

use std::sync::Arc;

use rekindle_agent::acp::Acp;
use rekindle_agent::connection::{Connection, NextSetting, Wanted};
use rekindle_agent::known::Quirks;
use rekindle_agent::profile::Setting;
use rekindle_domain::line::Line;

use crate::conversations::settings;
use crate::stage::{Stage, Step};

fn refusal(stage: &Stage) -> String {
    match stage.next_setting() {
        NextSetting::Refused(why) => why,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn each_setting_is_awaited_before_the_next_and_before_a_prompt() {
    let steps = settings().steps;
    let mut stage = Stage::acp(Quirks::default());
    let opened = steps.iter().position(|step| matches!(step, Step::Settle(..))).expect("a setting");
    stage.play(&steps[..opened]);
    assert_eq!(stage.next_setting(), NextSetting::Settled, "nothing is wanted yet");
    stage.play(&steps[opened..=opened]);
    assert_eq!(stage.next_setting(), NextSetting::Awaited, "the mode is on its way");
    stage.die();
    stage.read();
    assert_eq!(stage.next_setting(), NextSetting::Awaited, "whoever comes next waits for it too");
    stage.play(&steps[opened + 1..opened + 4]);
    assert_eq!(stage.next_setting(), NextSetting::Ask(Setting::Model("large".into())), "by its id");
    stage.play(&steps[opened + 4..opened + 7]);
    assert_eq!(stage.next_setting(), NextSetting::Settled);
    stage.play(&steps[opened + 7..]);
    let refused =
        r#"the agent refused the model "small": not on your plan (-32603); it offers: small, large"#;
    assert_eq!(refusal(&stage), refused);
    stage.die();
    stage.read();
    assert_eq!(refusal(&stage), refused, "whoever comes next knows of the refusal");
    stage.play(&[Step::Prompt("again")]);
    let again = NextSetting::Ask(Setting::Model("small".into()));
    assert_eq!(stage.next_setting(), again, "another run may ask for it again");
}

#[test]
fn what_the_agent_does_not_offer_is_not_asked_for() {
    let steps = settings().steps;
    let opened = steps.iter().position(|step| matches!(step, Step::Settle(..))).expect("a setting");
    for (mode, model, expected) in [
        ("nosuch", "large", r#"the agent has no mode "nosuch"; it offers: ask, plan"#),
        ("plan", "huge", r#"the agent has no model "huge"; it offers: small, large"#),
    ] {
        let mut stage = Stage::acp(Quirks::default());
        stage.play(&steps[..opened]);
        let before = stage.text();
        stage.play(&[Step::Settle(mode, model)]);
        assert_eq!((refusal(&stage).as_str(), stage.text() == before), (expected, true), "{mode} {model}");
    }
}

#[test]
fn what_an_agent_before_this_one_offered_counts_for_one_that_does_not_say_it() {
    let record = |what: &str, offer: &str| {
        let head = r#"{"seq":3,"ts":"2026-02-21T10:00:00.000Z","kind":"agent.notice","what":"#;
        format!(r#"{head}"{what}","raw":{offer}}}"#)
    };
    let offer =
        r#"{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]}}"#;
    let holder = "h_00112233445566778899aabbccddeeff".parse().expect("an id");
    let mut connection = Connection::new(holder, Arc::new(Acp::new("test", "1")), Quirks::default());
    let wanted = Wanted { mode: Some("nosuch".into()), model: None };
    assert!(connection.lacks_options() && connection.check(&wanted).is_ok(), "nobody knows");
    for (what, is_offer) in [("prompt_accepted", false), ("session_options", true)] {
        let record = record(what, offer);
        let line = Line::parse(record.as_bytes()).expect("a record");
        assert_eq!(Connection::is_offer(&line), is_offer, "{what}");
        connection.note_line(&line).expect("a payload");
        assert_eq!((connection.lacks_options(), connection.check(&wanted).is_ok()), (!is_offer, !is_offer));
    }
}

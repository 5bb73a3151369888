//! Mode and model: nothing is said to an agent before it has taken what is wanted, and what it does not offer is not
//! even asked for.

use rekindle_agent::connection::NextSetting;
use rekindle_agent::known::Quirks;
use rekindle_agent::profile::Setting;

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

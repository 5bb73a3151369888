//! Promise I4, the part that is pure: a supervisor that dies anywhere and reads again loses nothing and repeats
//! nothing.

use std::sync::Arc;

use proptest::prelude::*;
use rekindle_agent::exec::{Exec, PromptBy};
use rekindle_agent::known::Quirks;
use rekindle_agent::profile::Profile;

use crate::conversations::all;
use crate::stage::{Stage, Step};

fn stage() -> Stage {
    Stage::acp(Quirks::default())
}

/// Plays steps with deaths before some of them, each after a number of further steps went unread.
fn with_deaths(mut stage: Stage, steps: &[Step], deaths: &[(usize, usize)]) -> Stage {
    let mut unread = 0;
    for (index, step) in steps.iter().enumerate() {
        if let Some((_, lag)) = deaths.iter().find(|(at, _)| *at == index) {
            unread = unread.max(*lag);
            stage.die();
            if unread == 0 {
                stage.read();
            }
        }
        // A supervisor that is away neither decides nor sends anything.
        let agent_only = matches!(
            step,
            Step::Say(_) | Step::SayInParts(_) | Step::SayOddly(..) | Step::Exit(..) | Step::Vanish
        );
        if !agent_only {
            unread = 0;
            stage.read();
        }
        stage.happen(step);
        if unread > 0 {
            unread -= 1;
        } else {
            stage.read();
        }
    }
    stage.read();
    stage.die();
    stage.read();
    stage
}

fn check(name: &str, whole: &Stage, cut: &Stage) {
    let (expected, found) = (whole.text(), cut.text());
    if expected != found {
        let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        panic!("{name}: first difference {differs:#?}\n{expected}\n---\n{found}");
    }
    assert_eq!(whole.knowledge(), cut.knowledge(), "{name}");
}

// I4: what an agent said while nobody was there is in the log once, in order.
#[test]
fn every_conversation_survives_a_death_at_every_point() {
    for conversation in all() {
        let mut whole = stage();
        whole.play(&conversation.steps);
        for at in 0..=conversation.steps.len() {
            for lag in [0, 1, 3, 100] {
                let cut = with_deaths(stage(), &conversation.steps, &[(at, lag)]);
                check(&format!("{} cut before step {at}, {lag} unread", conversation.name), &whole, &cut);
            }
        }
    }
}

// I4, with more deaths than life.
#[test]
fn a_death_before_every_single_step_changes_nothing() {
    for conversation in all() {
        let mut whole = stage();
        whole.play(&conversation.steps);
        let deaths: Vec<_> = (0..conversation.steps.len()).map(|at| (at, at % 3)).collect();
        check(conversation.name, &whole, &with_deaths(stage(), &conversation.steps, &deaths));
    }
}

fn exec_steps(prompt_by: PromptBy, exit: Step) -> Vec<Step> {
    let mut steps = vec![Step::Start];
    if prompt_by == PromptBy::Stdin {
        steps.push(Step::Prompt("do it"));
        steps.push(Step::AcceptAround("early line".into()));
    }
    // More than one message of lines.
    steps.extend((0..9).map(|n| Step::Say(format!("{n} {}", "x".repeat(10_000)))));
    steps.push(Step::SayOddly(
        b"no newline",
        rekindle_holder::journal::OutFlags { unterminated: true, ..Default::default() },
    ));
    steps.push(exit);
    steps
}

#[test]
fn commands_survive_too() {
    for prompt_by in [PromptBy::Argument, PromptBy::Stdin] {
        for exit in
            [Step::Exit(Some(0), None), Step::Exit(Some(3), None), Step::Exit(None, Some(9)), Step::Vanish]
        {
            let profile: Arc<dyn Profile> = Arc::new(Exec { prompt_by });
            let stage = || Stage::new(Arc::clone(&profile), Quirks::default());
            let steps = exec_steps(prompt_by, exit.clone());
            let mut whole = stage();
            whole.play(&steps);
            for at in 0..=steps.len() {
                for lag in [0, 2, 100] {
                    let cut = with_deaths(stage(), &steps, &[(at, lag)]);
                    check(&format!("{prompt_by:?} {exit:?} cut before step {at}"), &whole, &cut);
                }
            }
        }
    }
}

// I4, I12: an agent that was run as a command has not done what it was asked, whoever reads its end.
#[test]
fn a_command_that_answers_in_json_rpc_has_failed() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    let mut steps = vec![Step::Start, Step::Prompt("do it"), Step::Accept, Step::Say("Welcome".into())];
    steps.extend([Step::Say(error.into()), Step::Say(error.into()), Step::Exit(Some(0), None)]);
    let profile: Arc<dyn Profile> = Arc::new(Exec { prompt_by: PromptBy::Stdin });
    let stage = || Stage::new(Arc::clone(&profile), Quirks::default());
    let mut whole = stage();
    whole.play(&steps);
    let log = whole.text();
    let failed = log.lines().find(|line| line.starts_with("run.failed")).expect("it failed");
    assert!(failed.contains("--profile acp") && !log.contains("run.completed"), "{log}");
    assert_eq!(log.matches("json_rpc_output").count(), 1, "{log}");
    for at in 0..=steps.len() {
        for lag in [0, 2, 100] {
            check(&format!("cut before step {at}"), &whole, &with_deaths(stage(), &steps, &[(at, lag)]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Several deaths, and lines between any others that are not part of the conversation.
    #[test]
    fn deaths_and_disturbances_in_any_number(
        which in any::<prop::sample::Index>(),
        deaths in proptest::collection::vec((any::<prop::sample::Index>(), 0..5usize), 0..6),
        extras in proptest::collection::vec((any::<prop::sample::Index>(), 0..9usize), 0..8),
    ) {
        let conversations = all();
        let conversation = &conversations[which.index(conversations.len())];
        let lines = [
            "noise",
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"usage_update","used":1,"size":2}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"b"}}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t9","title":"x"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"options":[]}}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"craft/x"}"#,
        ];
        let mut steps = conversation.steps.clone();
        for (at, line) in extras {
            // Not behind an end: a process that is gone says nothing.
            let end = steps.len() - usize::from(matches!(steps.last(), Some(Step::Exit(..) | Step::Vanish)));
            steps.insert(at.index(end + 1), Step::Say(lines[line].into()));
        }
        let mut whole = stage();
        whole.play(&steps);
        let deaths: Vec<_> = deaths.into_iter().map(|(at, lag)| (at.index(steps.len()), lag)).collect();
        check(conversation.name, &whole, &with_deaths(stage(), &steps, &deaths));
    }
}

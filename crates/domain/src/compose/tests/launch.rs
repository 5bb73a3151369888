//! Agents launched, taken over and gone without a trace.

use super::*;
use crate::compose::launch::{adopt, bury, launch};
use crate::event::InterruptReason;
use crate::id::{BootId, HolderId};

/// Another life of the daemon than the one that began the runs of these logs, and that one.
const LIVES: [&str; 2] = ["boot_b", "boot_a"];

fn boot(id: &str) -> BootId {
    id.parse().expect("an id")
}

fn holder(number: u8) -> HolderId {
    format!("h_{number}").parse().expect("an id")
}

#[test]
fn a_launch_is_for_the_open_run_which_goes_on_as_the_same_run() {
    let launching = |run: &str| format!("agent.launching holder=2 run={run} argv=[\"agent\",\"--acp\"]");
    let (for_run, alone) = (launching("1"), launching("null"));
    let adopted = format!("run.adopted boot=b holder=null; {for_run}");
    for (appends, life, expected) in [
        (&["session.created"][..], LIVES[0], &alone),
        (&[STARTED, "run.completed"], LIVES[0], &alone),
        (&[STARTED], LIVES[1], &for_run),
        (&[STARTED], LIVES[0], &adopted),
        (&[STARTED, AGENT, "agent.exited"], LIVES[0], &adopted),
    ] {
        check(appends, expected, |state, _| {
            launch(state, holder(2), vec!["agent".into(), "--acp".into()], boot(life), None)
        });
    }
}

#[test]
fn whoever_takes_over_an_agent_says_so_unless_the_run_is_his_own() {
    let adopted = |gap: u64| format!("run.adopted boot=b gap={gap}");
    for (appends, life, head, expected) in [
        (&[STARTED, AGENT][..], LIVES[0], 7, adopted(7)),
        (&[STARTED, AGENT, "message.agent src=5"], LIVES[0], 7, adopted(2)),
        // A log that was put back from a copy may know more than the journal says.
        (&[STARTED, AGENT, "message.agent src=9"], LIVES[0], 7, adopted(0)),
        (&[STARTED, AGENT], LIVES[1], 7, String::new()),
        (&[STARTED, AGENT, "run.completed"], LIVES[0], 7, String::new()),
        (&["session.created", AGENT], LIVES[0], 7, String::new()),
    ] {
        check(appends, &expected, |state, _| adopt(state, holder(1), head, boot(life)));
    }
}

// I9: what is recorded as cut had an agent that is proven gone, and one that no agent had goes on.
#[test]
fn an_agent_of_which_nothing_is_left_takes_its_run_with_it_if_it_had_one() {
    let reason = InterruptReason::MachineRestart;
    for (appends, expected) in [
        (&[STARTED, AGENT][..], &["run.interrupted", "status.derived", "agent.exited"][..]),
        (&[STARTED, "agent.launching", PROMPTED], &["run.interrupted", "status.derived", "agent.exited"]),
        (
            &[STARTED, AGENT, PROMPTED, ASKED],
            &["run.interrupted", "status.derived", "token.revoked", "agent.exited"],
        ),
        (&[STARTED, "agent.launching"], &["agent.exited"]),
        (&[STARTED, AGENT, "run.completed"], &["agent.exited"]),
        (&["session.created"], &[]),
    ] {
        let log = Log::of(appends);
        let composed = bury(&log.replay.state, log.tokens(), reason);
        let kinds: Vec<&str> = composed.iter().map(|draft| draft.event.name()).collect();
        assert_eq!(kinds, expected, "after {appends:?}");
        if let Some(Event::RunInterrupted(cut)) = composed.first().map(|draft| &draft.event) {
            assert!(cut.reason == reason && cut.uncertain_turn && cut.detail.is_some(), "{cut:?}");
        }
    }
}

#[test]
fn a_tool_call_that_had_begun_is_uncertain_when_its_agent_is_gone() {
    let log = Log::of(&[STARTED, AGENT, PROMPTED, "tool.call", "tool.call tool=2; run.waiting tool=2"]);
    let composed = bury(&log.replay.state, log.tokens(), InterruptReason::ProcessRestart);
    let Some(Event::RunInterrupted(cut)) = composed.first().map(|draft| &draft.event) else {
        panic!("{composed:?}")
    };
    let uncertain: Vec<&str> = cut.uncertain.iter().map(|tool| tool.tool_call_id.as_str()).collect();
    assert_eq!(uncertain, ["tool_1"], "nobody has allowed the other one");
}

//! Agents that want someone to sign in first: whoever asked is told how, wherever the failure is shown.

use crate::agents_here::{install_one, run};
use crate::lab::{Lab, wait_for};
use crate::ran::{Ran, Stdin, ran};

/// Returns what a command wrote, without the lines that the width made.
fn words(shown: &Ran) -> String {
    shown.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn whoever_has_to_sign_in_is_told_the_agents_own_command_everywhere() {
    let lab = Lab::new();
    install_one(&lab, "codex-acp", "--auth-required");
    let told = "the agent refused: authentication required (-32000); sign in with: codex login";
    let first = run(&lab, &["run", "say hello", "--agent", "codex"]).exits(1).tells(told);
    assert_eq!(first.out, "");
    let id = lab.only_session();
    for arguments in [&["status", &id][..], &["log", &id], &["status", &id, "--json"]] {
        let shown = lab.ran(arguments).exits(0);
        assert!(words(&shown).contains("sign in with: codex login"), "{shown:#?}");
    }
    assert_eq!(lab.count(&id, "input.queued"), 2, "it was greeted, and asked for a session once");
    wait_for("an agent of no use to go", || lab.living_holders().is_empty().then_some(()));
    // It is so without a daemon, and for who asks again.
    lab.ran(&["stop"]).exits(0);
    assert!(words(&lab.ran(&["status", &id]).exits(0)).contains("sign in with: codex login"));
    run(&lab, &["send", &id, "say hello"]).exits(1).tells(told);
    // Someone has signed in: the agent is told of what it never heard, too.
    install_one(&lab, "codex-acp", "");
    run(&lab, &["send", &id, "say hello"]).exits(0);
    assert_eq!(lab.status(&id), "idle");
}

#[test]
fn an_agent_that_wants_a_sign_in_only_when_it_is_asked_something_is_no_different() {
    let lab = Lab::new();
    install_one(&lab, "codex-acp", "");
    run(&lab, &["run", "refuse -32000 you are signed out", "--agent", "codex"])
        .exits(1)
        .tells("failed: you are signed out (-32000); sign in with: codex login");
    let other = run(&lab, &["run", "refuse -32603 no more", "--agent", "codex"]).exits(1).tells("no more");
    assert!(!other.err.contains("sign in"), "{other:#?}");
}

#[test]
fn without_a_command_to_sign_in_with_it_is_said_what_else_there_is() {
    let lab = Lab::new();
    install_one(&lab, "nanocoder", "--auth-required");
    run(&lab, &["run", "say hello", "--agent", "nanocoder"])
        .exits(1)
        .tells("it takes its key from one of these environment variables: NANOCODER_…");
    let mut command = lab.rekindle(&["run", "say hello", "--"]);
    ran(command.args(lab.demo(&["--auth-required"])), Stdin::Nothing)
        .exits(1)
        .tells("authentication required (-32000)")
        .tells("sign in with the agent's own program, then try again (it offers: Log in)");
}

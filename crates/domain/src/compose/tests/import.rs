//! What makes a session of elsewhere safe here: whatever was going on there has ended, and nothing starts by itself.

use super::*;
use crate::blob_id::BlobId;
use crate::checkpoint::due;
use crate::compose::import::{Import, import};
use crate::event::{NotTakenReason, Permissions, ResumePolicy};

/// What it ends with, always.
const SAFE: &str = r#"session.updated title=null provider=null working_dir=null env_names=[] options={"resume":"never","on_uncertain":"ask"} imported={}"#;
const LOST: &str = "run.interrupted reason=node_lost uncertain=TOOLS uncertain_turn=true detail=DETAIL";

fn imported(appends: &[&str], expected: &str) {
    let expected = format!("{expected}; {SAFE}");
    let mut log = Log::of(appends);
    let composed = import(&log.replay.state, log.tokens(), Import::default());
    let mut wanted: Vec<Draft> =
        expected.split(';').filter(|text| !text.trim().is_empty()).map(draft).collect();
    // Texts of the tests have no blanks in a field.
    for draft in &mut wanted {
        if let Event::RunInterrupted(cut) = &mut draft.event {
            cut.detail = Some("the session was taken to another place while it ran".into());
        }
    }
    assert_eq!(composed, wanted, "after {appends:#?}");
    let count = composed.len();
    for (n, draft) in composed.into_iter().enumerate() {
        log.record(draft, at(100), n + 1 < count);
    }
    assert_eq!(log.replay.oddities, [], "{expected} after {appends:#?}");
    let state = &log.replay.state;
    assert!(state.open_run().is_none() && state.queue.is_empty() && state.created_by_key.is_none());
    assert!(state.agent.as_ref().is_none_or(|agent| agent.exited && agent.cursor.is_none()));
    assert_eq!((state.options.resume, state.options.permissions), (ResumePolicy::Never, Permissions::Ask));
    assert!(log.tokens().tokens.values().all(|token| token.state != crate::token::TokenState::Active));
}

// I7, I13: what was being done elsewhere is uncertain here, and no secret of elsewhere is good for anything.
#[test]
fn a_session_of_elsewhere_has_ended_and_starts_nothing() {
    let lost = |tools: &str| LOST.replace("TOOLS", tools).replace("DETAIL", "x");
    let tool = r#"[{"tool_call_id":"tool_1","title":"t","kind":null}]"#;
    let work = [STARTED, AGENT, PROMPTED];
    imported(&["session.created"], "");
    imported(&["session.created idempotency_key=k"], "");
    let startup = "status.derived status=interrupted_startup";
    imported(&work, &format!("{}; {startup}; agent.exited", lost("[]")));
    imported(
        &[&work[..], &["tool.call title=t"]].concat(),
        &format!("{}; {startup}; agent.exited", lost(tool)),
    );
    let waiting = "status.derived status=interrupted_waiting; token.revoked reason=interrupted";
    imported(&[&work[..], &[ASKED]].concat(), &format!("{}; {waiting}; agent.exited", lost("[]")));
    // One that was to be cancelled is.
    let cancelled = [&work[..], &["run.cancel_requested why=user"]].concat();
    imported(&cancelled, "run.cancelled by=user; agent.exited");
    // Prompts that wait are dropped, and said to be.
    let queued = [&work[..], &["message.user msg=2 queued=true"]].concat();
    let dropped = r#"run.cancel_requested run=null by=import why=imported dropped=["msg_2"]"#;
    imported(&queued, &format!("{}; {startup}; agent.exited; {dropped}", lost("[]")));
    // An agent that idles, and one that is gone.
    imported(&[&work[..], &["run.completed"]].concat(), "agent.exited");
    imported(&[&work[..], &["run.completed; agent.exited"]].concat(), "");
    // A cut of before stays what it was.
    imported(&[&work[..], &["run.interrupted", "agent.exited"]].concat(), "");
}

#[test]
fn settings_of_elsewhere_are_not_taken_over_and_the_directory_is_if_it_is_said() {
    let risky = r#"session.created env_names=["SECRET"] options={"resume":"auto","on_uncertain":"continue","mode":"bypass","permissions":"allow","wait_timeout_s":60,"umask":"0000"}"#;
    let mut log = Log::of(&[risky]);
    let from = Import {
        machine: Some("laptop"),
        made_at: Some(at(50)),
        working_dir: Some("/here"),
        ..Import::default()
    };
    for draft in import(&log.replay.state, log.tokens(), from) {
        log.record(draft, at(100), false);
    }
    let state = &log.replay.state;
    assert_eq!((state.working_dir.as_str(), state.env_names.len()), ("/here", 0));
    let kept = crate::event::Options {
        resume: ResumePolicy::Never,
        wait_timeout_s: Some(60),
        ..crate::event::Options::default()
    };
    assert_eq!(state.options, kept);
}

/// Returns a session after its import.
fn after_import(appends: &[&str], from: Import<'_>) -> Log {
    let mut log = Log::of(appends);
    for draft in import(&log.replay.state, log.tokens(), from) {
        log.record(draft, at(100), false);
    }
    assert_eq!(log.replay.oddities, [], "after {appends:#?}");
    log
}

// What a run left is told by the files that came along: nobody captures the directory of another machine here.
#[test]
fn a_run_that_lacks_a_checkpoint_has_the_files_of_the_bundle_or_says_that_they_stayed() {
    let start = "run.checkpoint at=start how=live";
    let ended = [STARTED, start, AGENT, PROMPTED, "run.completed"];
    let next = [&ended[..], &["run.started run=2"]].concat();
    let lost = [&next[..], &["run.checkpoint at=end; run.checkpoint run=2 at=start"]].concat();
    let tree = BlobId::of(b"a tree");
    for (appends, run) in [(&ended[..4], "run_1"), (&ended, "run_1"), (&lost, "run_2")] {
        let with = after_import(appends, Import { tree: Some(tree), ..Import::default() });
        let without = after_import(appends, Import::default());
        assert!(due(&with.replay.state).is_nothing() && due(&without.replay.state).is_nothing());
        let end = |log: &Log| {
            let run = log.replay.state.run.as_ref().expect("a run");
            (run.run_id.to_string(), run.checkpoints.end.expect("a checkpoint"))
        };
        let (id, taken) = end(&with);
        assert_eq!((id.as_str(), taken.tree, taken.not_taken), (run, Some(tree), None), "{appends:?}");
        let (_, not_taken) = end(&without);
        assert_eq!((not_taken.tree, not_taken.not_taken), (None, Some(NotTakenReason::Unreadable)));
    }
    // The run before the latest, whose own was never begun.
    let state = after_import(&next, Import { tree: Some(tree), ..Import::default() }).replay.state;
    assert!(due(&state).is_nothing() && state.owed_end.is_none());
    // Nobody is owed anything.
    let state = after_import(&[STARTED], Import { tree: Some(tree), ..Import::default() }).replay.state;
    assert!(state.run.is_some_and(|run| run.checkpoints.end.is_none()));
}

#[test]
fn an_agent_is_remembered_by_its_own_session_only_if_its_transcript_came_along() {
    let cursor = |transcript: bool| {
        let work = [STARTED, AGENT, PROMPTED, "run.completed"];
        let state = after_import(&work, Import { transcript, ..Import::default() }).replay.state;
        assert!(state.created_by_key.is_none() && state.options.resume == ResumePolicy::Never);
        state.agent.and_then(|agent| agent.cursor)
    };
    assert_eq!((cursor(true).as_deref(), cursor(false)), (Some("c"), None));
}

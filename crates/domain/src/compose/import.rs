//! A session came here from elsewhere: what makes it safe before anybody sees it. Nothing of it goes on by itself, nobody who knew a
//! secret of it is let in, and its agent asks before it does anything.

use crate::blob_id::BlobId;
use crate::event::{
    AgentExited, CancelReason, CheckpointAt, CheckpointHow, Imported, InterruptReason, NotTaken,
    NotTakenReason, Options, ResumePolicy, RunCancelRequested, RunCheckpoint, SessionUpdated, TokenRevoked,
};
use crate::id::RunId;
use crate::line::Draft;
use crate::session::SessionState;
use crate::time::Timestamp;
use crate::token::{TokenIndex, TokenState};

use super::interrupt::{Ending, end_run};

/// Where a session comes from, and where it is to go on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Import<'a> {
    /// The machine it comes from, as people call it.
    pub machine: Option<&'a str>,
    /// When the bundle was made.
    pub made_at: Option<Timestamp>,
    /// Where its agent works from now on, if that is another directory.
    pub working_dir: Option<&'a str>,
    /// What its directory contained when the bundle was made, if that came along.
    pub tree: Option<BlobId>,
    /// What its agent wrote down of it itself came along.
    pub transcript: bool,
}

/// Composes what follows the last record of a session that came here: the end of an open run, which was lost with its machine, and
/// what its directory contained; the end of its agent; the prompts taken out of its queue; the end of every token; and settings with
/// which nothing starts by itself.
///
/// Settings of elsewhere are not taken over: a mode may be one in which an agent asks for nothing, names of variables would have this
/// machine's values sent along.
pub fn import(state: &SessionState, tokens: &TokenIndex, from: Import<'_>) -> Vec<Draft> {
    let mut records: Vec<Draft> = Vec::new();
    if let Some(run) = state.open_run() {
        let reason = InterruptReason::NodeLost;
        let detail = Some("the session was taken to another place while it ran".to_owned());
        // What its agent did after the last record is not known here.
        let ending =
            Ending::Interrupted { reason, uncertain: run.tools.clone(), uncertain_turn: true, detail };
        records.extend(end_run(run, tokens, ending));
    }
    records.extend(owed_ends(state).map(|run| left_there(run, state, from.tree).into()));
    if let Some(agent) = state.agent.as_ref().filter(|agent| !agent.exited) {
        let holder_id = agent.holder_id;
        records.push(AgentExited { holder_id, code: None, signal: None, stderr_tail: None }.into());
    }
    if !state.queue.is_empty() {
        let (why, dropped) = (CancelReason::Imported, state.queue.clone());
        let by = Some("import".into());
        records.push(RunCancelRequested { run_id: None, by, why, dropped }.into());
    }
    for (id, token) in tokens.tokens.iter().filter(|(_, token)| token.state == TokenState::Active) {
        let is_revoked = |draft: &Draft| match &draft.event {
            crate::event::Event::TokenRevoked(revoked) => revoked.resume_token_id == *id,
            _ => false,
        };
        if !records.iter().any(is_revoked) {
            let (wait_id, reason) = (Some(token.scope.wait_id), "imported".into());
            records.push(TokenRevoked { resume_token_id: *id, wait_id, reason, by: None }.into());
        }
    }
    let options = Options {
        resume: ResumePolicy::Never,
        wait_timeout_s: state.options.wait_timeout_s,
        ..Options::default()
    };
    let imported = Imported {
        machine: from.machine.map(|machine| machine.to_owned().into()),
        made_at: from.made_at,
        transcript: from.transcript,
    };
    let updated = SessionUpdated {
        options: Some(options),
        env_names: Some(Vec::new()),
        working_dir: from.working_dir.map(|directory| directory.to_owned().into()),
        imported: Some(imported),
        ..SessionUpdated::default()
    };
    records.push(updated.into());
    records
}

/// Returns the runs that lack a checkpoint at their end. Nobody here may take it: what their directory contained was there.
fn owed_ends(state: &SessionState) -> impl Iterator<Item = RunId> {
    let latest = state.run.as_ref().map(|run| (run.run_id, run.checkpoints));
    let owed = latest.filter(|(_, taken)| taken.start.is_some() && taken.end.is_none());
    state.owed_end.map(|owed| owed.run_id).into_iter().chain(owed.map(|(run_id, _)| run_id))
}

/// Composes the checkpoint at the end of a run that ended elsewhere: what was in its directory when the bundle was made, or that
/// this is not known.
fn left_there(run_id: RunId, state: &SessionState, tree: Option<BlobId>) -> RunCheckpoint {
    let unknown = || {
        let detail = "the session was taken to another place without its files".to_owned();
        Box::new(NotTaken { reason: NotTakenReason::Unreadable, detail })
    };
    RunCheckpoint {
        run_id,
        at: CheckpointAt::End,
        how: CheckpointHow::Late,
        root: state.working_dir.clone(),
        tree,
        not_taken: tree.is_none().then(unknown),
        git: None,
        rules: None,
        skipped: None,
        files_touched: None,
        directory: None,
        files_changed: None,
    }
}

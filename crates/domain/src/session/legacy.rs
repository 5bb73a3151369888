//! Sessions of an earlier layout: their logs have neither hashes nor a `session.created`, and may begin in the middle of a
//! run; title and directory stand in the snapshot file alone. Such a file is no cache until its facts are in the log.

use serde::Deserialize;

use crate::event::{
    Event, InterruptReason, Options, Provider, ResumePolicy, RunInterrupted, SessionCreated, TokenRevoked,
};
use crate::id::{BootId, RunId, SessionId};
use crate::line::Draft;
use crate::session::{Checkpoints, Run, SessionState};
use crate::time::Timestamp;
use crate::token::{TokenIndex, TokenState};

/// What a snapshot of the earlier layout says that its log does not.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LegacySnapshot {
    id: SessionId,
    /// Files of today's layout have one, and are not read here.
    version: Option<u32>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    working_dir: String,
    #[serde(default)]
    provider: Provider,
    created_at: Option<Timestamp>,
}

impl LegacySnapshot {
    /// Reads a file; none if it is not one of that session in the earlier layout.
    pub fn read(bytes: &[u8], session: SessionId) -> Option<LegacySnapshot> {
        let found: LegacySnapshot = serde_json::from_slice(bytes).ok()?;
        (found.version.is_none() && found.id == session).then_some(found)
    }

    /// Returns the records that put it into the log, so that the file becomes a cache; none if the log has them.
    ///
    /// Who worked then is gone, whatever the log says: a run that it leaves open was cut, and nobody knows how far it came.
    /// Nothing of it goes on without a person's word.
    pub fn records(&self, state: &SessionState, tokens: &TokenIndex) -> Vec<Draft> {
        if !state.is_nameless() || self.title.is_empty() && self.working_dir.is_empty() {
            return Vec::new();
        }
        let mut records: Vec<Draft> = vec![
            SessionCreated {
                parent: None,
                title: self.title.clone().into(),
                working_dir: self.working_dir.clone().into(),
                provider: self.provider.clone(),
                options: Options { resume: ResumePolicy::Ask, ..Options::default() },
                env_names: Vec::new(),
                key: None,
                imported_from: None,
                idempotency_key: None,
                created_at: self.created_at,
                forked_from: None,
                restoring: None,
                worktree: None,
            }
            .into(),
        ];
        if let Some(run) = state.open_run() {
            let (run_id, reason) = (run.run_id, InterruptReason::ProcessRestart);
            let interrupted =
                RunInterrupted { run_id, reason, uncertain: Vec::new(), uncertain_turn: true, detail: None };
            records.push(interrupted.into());
            let active = tokens.tokens.iter().filter(|(_, token)| token.state == TokenState::Active);
            records.extend(active.map(|(id, token)| {
                let (wait_id, reason) = (Some(token.scope.wait_id), "interrupted".into());
                Draft::from(TokenRevoked { resume_token_id: *id, wait_id, reason, by: None })
            }));
        }
        records
    }
}

impl SessionState {
    /// Tells whether the log of the session has no `session.created`: neither title nor directory are known from it.
    pub fn is_nameless(&self) -> bool {
        self.is_created() && self.title.is_empty() && self.working_dir.is_empty()
    }

    /// Begins the run that a log is in the middle of where it begins; tells which, if there is one.
    pub(super) fn begin_legacy_run(&mut self, ts: Timestamp, event: &Event<'_>) -> Option<RunId> {
        let run_id = match event {
            Event::RunWaiting(waiting) => waiting.run_id,
            Event::RunResumed(resumed) => resumed.run_id,
            Event::RunCompleted(completed) => completed.run_id,
            Event::RunFailed(failed) => failed.run_id,
            Event::RunCancelled(cancelled) => cancelled.run_id,
            Event::RunInterrupted(interrupted) => interrupted.run_id,
            _ => return None,
        };
        if self.run.is_some() {
            return None;
        }
        self.run = Some(Run {
            run_id,
            // Which life began it is not known; it is none of today's.
            boot_id: BootId::from_ulid(0),
            machine_boot: None,
            message_id: None,
            started_at: ts,
            ended_at: None,
            end: None,
            attempt: 1,
            continues: None,
            origin_run_id: run_id,
            waits: Vec::new(),
            cancel: None,
            prompted: true,
            checkpoints: Checkpoints::default(),
            drift: None,
            task_id: None,
            tool_calls: 0,
            plan: None,
            budget: None,
            tools: Vec::new(),
        });
        Some(run_id)
    }
}

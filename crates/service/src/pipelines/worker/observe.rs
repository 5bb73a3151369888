//! What is found of a run beside its ledger: its step's session and agent, its directory, what is in the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::event::{ChangedFile, InterruptReason, OnDrift, StageConfig, StepCut};
use rekindle_domain::id::RunName;
use rekindle_domain::pipeline::drift::{DriftedFile, ForeignChanges, foreign_changes};
use rekindle_domain::pipeline::evidence::{
    AgentFound, Continuation, Evidence, RunFound, SignsOfLife, TreeFound, Verdict,
};
use rekindle_domain::pipeline::next_step::asks_for_place;
use rekindle_domain::pipeline::{PipelineState, RunStatus, StepState};
use rekindle_domain::recovery::AgentPresence;
use rekindle_domain::session::{End, Run, SessionState};
use rekindle_domain::task::retry::{RunSoFar, says_later};
use rekindle_store::OpenSessionError;
use rekindle_store::blobs::BlobId;
use rekindle_wire::code::Code;

use super::super::claims::{canonical, conflict};
use super::super::said;
use super::super::{Pipelines, refusal};
use super::Worker;
use super::cache_lookup::Cached;
use super::stage::provider_of;
use crate::drive::provider::profile;
use crate::error::{Result, ServiceError};
use crate::show::run_end_reason;

/// How long the second attempt waits; each later one four times as long.
const BACK_OFF: Duration = Duration::from_millis(250);

/// The same where a provider said that the same may succeed later.
const LATER: Duration = Duration::from_secs(5);

/// The directory, as it was captured since the worker last waited for anything.
#[derive(Debug, Clone, Default)]
pub(super) enum Looked {
    /// Nobody has looked yet.
    #[default]
    NotYet,
    /// It cannot be captured, for this reason.
    Unreadable(String),
    /// It has this tree, in which these files are not as the current step began with them.
    Captured { tree: BlobId, changed: Vec<ChangedFile>, foreign: ForeignChanges },
}

/// What was found.
pub(super) struct Seen {
    pub(super) evidence: Evidence,
    /// The session of the current step's latest attempt, if it can be read.
    pub(super) session: Option<Arc<SessionState>>,
    /// What is there of the current step's result without it.
    pub(super) cached: Cached,
}

/// The session of a step.
enum StepSession {
    /// There is none, or none any more.
    Gone,
    /// Nothing can be told of it.
    Unreadable,
    Known(Arc<SessionState>),
}

impl Worker {
    /// Looks at everything that decides about the next step.
    pub(super) fn observe(&mut self, at: &Pipelines, state: &PipelineState, looked: &Looked) -> Result<Seen> {
        let Some(started) = state.started.as_deref() else {
            return Err(refusal(&rekindle_domain::pipeline::config_change::Refusal::LedgerMissing));
        };
        let step = state.current_step().map(|step| &**step);
        let root = Path::new(&started.working_dir);
        let session = self.session_of(at, step)?;
        let known = match &session {
            StepSession::Known(session) => Some(session.clone()),
            StepSession::Gone | StepSession::Unreadable => None,
        };
        let stage = step.and_then(|step| state.stage(&step.id.stage)).map(|(_, stage)| stage);
        let (agent, run) = match (&session, step.zip(stage)) {
            (StepSession::Known(session), Some((_, stage))) => {
                (agent_found(at, session), run_found(at, stage, session))
            }
            (StepSession::Unreadable, _) => (AgentFound::Silent, RunFound::Open),
            _ => (AgentFound::Gone, RunFound::Interrupted),
        };
        let tree = match looked {
            Looked::NotYet => TreeFound::NotCaptured,
            Looked::Unreadable(_) => TreeFound::Unreadable,
            Looked::Captured { tree, foreign, .. } => TreeFound::Captured {
                tree: *tree,
                after_cut: foreign.after_cut.total,
                unknown_author: foreign.unknown_author.total,
            },
        };
        let cached = self.cached(at, state);
        let mut evidence = Evidence {
            is_held_elsewhere: false,
            agent,
            run,
            has_forgotten: step
                .zip(known.as_deref())
                .is_some_and(|(step, known)| self.has_forgotten(at, step, known)),
            is_overdue: step.zip(stage).is_some_and(|(step, stage)| self.is_overdue(at, step, stage)),
            signs: match (step, stage, &known) {
                (Some(step), Some(stage), Some(session)) => self.signs(at, state, step, stage, session).now,
                _ => SignsOfLife::Heard,
            },
            tree,
            restoring: at.trees.restoring(root),
            has_manifest: step.is_none_or(|step| at.trees.has(step.from)),
            cache: cached.evidence(),
            continuation: known.as_deref().map_or(Continuation::None, continuation),
            is_directory_free: state.status != RunStatus::Running || self.is_directory_free(at, step, root),
            has_environment: stage.is_none_or(|stage| self.missing(at, state, stage).is_empty()),
            is_left: at.is_left(self.id, agent),
            has_place: at.has_place(self.id),
            spent: self.spent(at, state),
            retry_in: step.map_or(Duration::ZERO, |step| self.retry_in(at, step)),
            word: self.word.as_ref().map(|(word, _)| *word).or_else(|| {
                // What becomes of a step that was cut is another question.
                let uncut = step.is_some_and(|step| step.cut().is_none());
                started.on_drift.filter(|word| uncut && *word != OnDrift::Stop)
            }),
        };
        // Whoever has no place asks for one: then the scheduler says when the directory is free, in the order of all who wait for it.
        if step.is_some_and(|step| asks_for_place(step, &evidence)) {
            evidence.is_directory_free = true;
        }
        Ok(Seen { evidence, session: known, cached })
    }

    fn session_of(&self, at: &Pipelines, step: Option<&StepState>) -> Result<StepSession> {
        let Some(attempt) = step.and_then(|step| step.attempt.as_ref()) else { return Ok(StepSession::Gone) };
        crate::lock::locked(&at.sessions).insert(attempt.session_id, self.id);
        match at.store.open_session(attempt.session_id) {
            Ok(current) if current.damage.is_some() => Ok(StepSession::Unreadable),
            Ok(current) => Ok(StepSession::Known(current.state)),
            Err(error @ OpenSessionError::Append(_)) => Err(error.into()),
            Err(error) => Ok(match ServiceError::from(error).code {
                Code::SessionUnknown => StepSession::Gone,
                _ => StepSession::Unreadable,
            }),
        }
    }

    /// Tells whether the agent of an attempt that goes on in the session of the one before has come back without that.
    fn has_forgotten(&mut self, at: &Pipelines, step: &StepState, session: &SessionState) -> bool {
        let attempt = step.open_attempt().filter(|attempt| attempt.continues && !attempt.reminded);
        let run = session.run.as_ref().map(|run| run.run_id);
        let Some(run) = attempt.map(|attempt| attempt.run_id).filter(|asked| Some(*asked) == run) else {
            return false;
        };
        if let Some((_, has_forgotten)) = self.restored.filter(|(of, _)| *of == run) {
            return has_forgotten;
        }
        let reader = at.views.workers.records.store.reader(session.id);
        let verdict = reader.ok().and_then(|reader| said::restored(&reader, run));
        self.restored = verdict.map(|continued| (run, !continued));
        verdict == Some(false)
    }

    /// Captures the directory, and tells whose changes are in it.
    pub(super) fn look(&self, at: &Pipelines, state: &PipelineState) -> Looked {
        let Some(started) = state.started.as_deref() else { return Looked::NotYet };
        let root = Path::new(&started.working_dir);
        let tree = match at.trees.capture(root) {
            Ok(tree) => tree,
            Err(why) => return Looked::Unreadable(why),
        };
        let step = state.current_step();
        let from = step.map(|step| step.from).filter(|from| *from != tree && at.trees.has(*from));
        let changed = match from.map(|from| at.trees.changed(from, tree)).transpose() {
            Ok(changed) => changed.unwrap_or_default(),
            Err(why) => return Looked::Unreadable(why),
        };
        let foreign = match step.filter(|step| step.cut().is_some()) {
            Some(step) => {
                let files: Vec<DriftedFile> = changed
                    .iter()
                    .map(|file| DriftedFile {
                        path: file.path.clone(),
                        changed_at: at.trees.changed_at(root, file),
                    })
                    .collect();
                foreign_changes(&files, step.proven_death())
            }
            None => ForeignChanges::default(),
        };
        Looked::Captured { tree, changed, foreign }
    }

    /// Tells whether an attempt takes longer than it may: what it waited for people does not count.
    fn is_overdue(&self, at: &Pipelines, step: &StepState, stage: &StageConfig) -> bool {
        step.open_attempt().is_some() && self.time_left(at, step, stage).is_some_and(|left| left.is_zero())
    }

    /// Returns how long an attempt may still take; none if it may take as long as it likes.
    pub(super) fn time_left(
        &self,
        at: &Pipelines,
        step: &StepState,
        stage: &StageConfig,
    ) -> Option<Duration> {
        let attempt = step.open_attempt()?;
        let now = at.views.workers.records.time();
        let took = now.millis_since(attempt.began_at);
        let most = stage.deadline_ms()?;
        if took < most {
            return Some(Duration::from_millis(most - took));
        }
        let reader = at.views.workers.records.store.reader(attempt.session_id).ok()?;
        let waited = said::waited_ms(&reader, attempt.began_at, now.wall);
        Some(Duration::from_millis(most.saturating_sub(took.saturating_sub(waited))))
    }

    fn is_directory_free(&self, at: &Pipelines, step: Option<&StepState>, root: &Path) -> bool {
        // Whoever works there already has it, whatever else goes on.
        if step.is_some_and(|step| step.open_attempt().is_some()) {
            let _ = at.claims.take(self.id, root);
            return true;
        }
        self.who_works_in(at, step, root).is_none()
    }

    /// Names whoever else works in a directory, in one above it or below it.
    pub(super) fn who_works_in(
        &self,
        at: &Pipelines,
        step: Option<&StepState>,
        root: &Path,
    ) -> Option<String> {
        if let Some(run) = at.claims.holder(self.id, root) {
            let name = RunName::of(run).map_or_else(|| run.to_string(), |name| name.to_string());
            return Some(format!("run {name}"));
        }
        let own = step.and_then(|step| step.attempt.as_ref()).map(|attempt| attempt.session_id);
        let root = canonical(root);
        let busy = at.views.directory.find_all(at.views.store(), |entry| {
            Some(entry.state.id) != own && entry.state.open_run().is_some()
        });
        let mut busy = busy.iter();
        let found = busy.find(|entry| conflict(&canonical(Path::new(&entry.state.working_dir)), &root));
        found.map(|entry| format!("session {}", entry.state.id))
    }

    /// Returns how long the next attempt still waits after one that was cut.
    fn retry_in(&self, at: &Pipelines, step: &StepState) -> Duration {
        let Some(cut) = step.cut().filter(|_| self.word.is_none()) else { return Duration::ZERO };
        let first = if cut.reason == StepCut::TryLater { LATER } else { BACK_OFF };
        let wait = first * 4_u32.saturating_pow(step.attempts.saturating_sub(1).min(6));
        let ago = at.views.workers.records.time().millis_since(cut.at);
        wait.saturating_sub(Duration::from_millis(ago))
    }

    /// Returns the variables that the agent of a stage lacks.
    pub(super) fn missing(&self, at: &Pipelines, state: &PipelineState, stage: &StageConfig) -> Vec<String> {
        let Some((agent, started)) = stage.agent.as_ref().zip(state.started.as_deref()) else {
            return Vec::new();
        };
        let Some(config) = started.config.agents.get(agent).filter(|config| !config.env.is_empty()) else {
            return Vec::new();
        };
        let Ok(provider) = provider_of(started, stage) else { return Vec::new() };
        let environment = &at.views.workers.agents.environment;
        let (brought, file) = (at.brought(self.id), environment.of_file(&provider));
        environment.lacking(&config.env, &provider, [&brought, &file])
    }
}

fn agent_found(at: &Pipelines, session: &SessionState) -> AgentFound {
    let workers = &at.views.workers;
    let has_worker = workers.pool.get(session.id).is_some();
    match workers.agents.observe(session) {
        // One is about to be launched, or there is something to look at that nobody has looked at yet.
        AgentPresence::Nobody if session.open_run().is_some() => {
            if has_worker {
                AgentFound::Followed
            } else {
                AgentFound::Lives
            }
        }
        AgentPresence::Lives if has_worker => AgentFound::Followed,
        presence => AgentFound::from(presence),
    }
}

/// Returns where the latest run of a step's session stands. Whoever spoke there in between went on with the step: what came of that
/// is what came of the attempt.
fn run_found(at: &Pipelines, stage: &StageConfig, session: &SessionState) -> RunFound {
    let Some(run) = &session.run else { return RunFound::Interrupted };
    let by_rule = run.cancel.is_some_and(|why| why.is_rule());
    match run.end {
        None if run.has_asked() => RunFound::WaitsForPerson,
        None => RunFound::Open,
        Some(End::Completed) => RunFound::Completed(verdict(at, stage, session, run)),
        Some(End::Interrupted { reason: InterruptReason::WaitTimeout, .. }) => RunFound::EndedByRule,
        Some(_) if by_rule => RunFound::EndedByRule,
        Some(End::Cancelled) => RunFound::Cancelled,
        Some(_) if run.cancel.is_some() => RunFound::Cancelled,
        Some(End::Interrupted { .. }) => RunFound::Interrupted,
        Some(End::Failed) => {
            let reader = at.views.workers.records.store.reader(session.id).ok();
            let holder = session.agent.as_ref().map(|agent| agent.holder_id);
            let end =
                reader.as_ref().zip(holder).and_then(|(reader, holder)| said::proven_death(reader, holder));
            let has_begun = RunSoFar::with_exit(session, end.is_some()).is_some_and(|run| run.has_begun);
            let why = reader.and_then(|reader| run_end_reason(session, &reader)).unwrap_or_default();
            match has_begun {
                false => RunFound::NotLaunched,
                // An event ended it: that is its result, whatever it says of later.
                true if session.provider.speaks_ndjson() => RunFound::Failed,
                // What a command does nobody is told: it may have had effects.
                true if run.tool_calls == 0 && !session.provider.is_command() && says_later(&why) => {
                    RunFound::TryLater
                }
                true => RunFound::Failed,
            }
        }
    }
}

fn verdict(at: &Pipelines, stage: &StageConfig, session: &SessionState, run: &Run) -> Verdict {
    let is_told = session.provider.is_command() || session.provider.speaks_ndjson();
    if is_told || stage.outcomes.is_empty() {
        return Verdict::Clear;
    }
    let message = said::last_message(&*at.views.workers.records.store, session.id, run.run_id);
    match said::verdict(stage, message.as_deref()) {
        Ok(_) => Verdict::Clear,
        Err(_) if session.closed || session.deleted => Verdict::Lost,
        Err(_) => Verdict::Unclear,
    }
}

/// Returns how the agent of a session that was cut can go on.
fn continuation(session: &SessionState) -> Continuation {
    if session.provider.is_command() || session.closed || session.deleted {
        return Continuation::None;
    }
    let agent = session.agent.as_ref().filter(|agent| agent.cursor.is_some());
    let said = agent.and_then(|agent| agent.capabilities.as_ref()).map(|said| said.get());
    let can = profile(&session.provider).map(|profile| profile.capabilities(said));
    match can {
        Ok(can) if agent.is_some() && (can.load || can.resume) => Continuation::Native,
        _ => Continuation::Told,
    }
}

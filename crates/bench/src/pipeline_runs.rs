//! Runs of a pipeline as the service carries them out, without agents: what a step begins with is rendered and hashed, what it came to is
//! recorded with the step that follows. Two stages, of which the second always sends the work back.

use anyhow::{Context as _, ensure};
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::compose::begin::{self, Life, NewMessage};
use rekindle_domain::event::{
    Event, Options, PipelineStarted, ProjectConfig, Provider, Raw, SessionCreated, StepCounts, StepFinished,
};
use rekindle_domain::id::{BootId, MessageId, PipelineId, RunId, RunName, SessionId, StepId};
use rekindle_domain::line::Draft;
use rekindle_domain::pipeline::compose::{self, Intention};
use rekindle_domain::pipeline::key::{AgentKey, KeyError, KeyParts, StepInputs};
use rekindle_domain::pipeline::template::{Name, Template, payload_field, value_in_ledger};
use rekindle_domain::pipeline::{Payload, PipelineState};
use rekindle_domain::time::Timestamp;
use rekindle_seeded::Rng;

const CONFIG: &str = r#"{"version":1,
    "agents":{"builder":{"agent":"claude","model":"opus"},"reviewer":{"agent":"codex"}},
    "tasks":[{"id":"T-0042","goal":"Make the parser accept comments","inputs":{"limit":7,"spec":"as in docs/parser.md"}}],
    "pipelines":{"default":{"max_rounds":4000000000,"stages":[
        {"name":"implement","agent":"builder","cache":true,"prompt":"Implement: {{task.goal}}\n{{review.findings}}"},
        {"name":"review","agent":"reviewer","cache":true,"writes":false,"prompt":"Look at round {{round}} of {{task.goal}}",
         "outcomes":{"approved":"next","changes_requested":"implement"}}]}}}"#;

/// What an agent says with its outcome: as long as such things are.
const FINDINGS: &str = "Name the function after what it returns, and let the lexer skip a comment before it looks for the next token: \
     as it is, a comment at the end of a line makes the next one disappear.";

/// A run of a pipeline, and what its ledger amounts to.
pub(crate) struct PipelineRun {
    pub(crate) id: PipelineId,
    pub(crate) state: PipelineState,
    number: u64,
    life: Life,
}

impl PipelineRun {
    /// Begins the n-th run; returns the first records of its ledger.
    pub(crate) fn start(number: u64) -> anyhow::Result<(PipelineRun, Vec<Draft>)> {
        let random = u64::try_from(Rng::new(number).bits() >> 64)?;
        let id = RunName::mint(1_771_668_000_000 + number * 1000, random).pipeline_id();
        let life = Life { boot_id: BootId::mint(0, 1), machine_boot: None };
        let mut run = PipelineRun { id, state: PipelineState::empty(id), number, life };
        let config: ProjectConfig = serde_json::from_str(CONFIG)?;
        let tree = BlobId::of(b"tree");
        let started = PipelineStarted {
            pipeline: "default".into(),
            task: Box::new(config.tasks.first().context("a task")?.clone()),
            config: Box::new(config),
            config_hash: BlobId::of(CONFIG.as_bytes()),
            snapshot_id: "snap-d0ab7e60b764".into(),
            tree,
            working_dir: "/home/someone/src/project".into(),
            origin: "/home/someone/src/project".into(),
            on_cut: None,
            on_drift: None,
            no_cache: false,
            budget: None,
            options: None,
            by: "user:someone".into(),
            idempotency_key: None,
        };
        let mut then = PipelineState::empty(id);
        then.apply(Timestamp::default(), &Event::from(started.clone()))?;
        let first = StepId { stage: "implement".into(), round: 1 };
        let records = compose::start(id, started, intention(&then, &first, tree)?)?;
        run.take(&records)?;
        Ok((run, records))
    }

    /// Begins an attempt at the current step; returns the record of the ledger, its session and the first records of that.
    pub(crate) fn begin(&mut self) -> anyhow::Result<(Draft, SessionId, Vec<Draft>)> {
        let step = self.state.current_step().context("a step")?.clone();
        let n = self.number << 32 | self.state.counts.commands;
        let random = Rng::new(n).bits();
        let (session, run_id) = (SessionId::mint(n, random), RunId::mint(n, random));
        let created = SessionCreated {
            title: format!("T-0042 {}", step.id).into(),
            working_dir: "/home/someone/src/project".into(),
            provider: Provider {
                profile: "acp".into(),
                agent: Some("claude-code".into()),
                ..Provider::default()
            },
            options: Options::default(),
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: Some(step.key.to_string().into()),
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
            parent: None,
        };
        let prompt = prompt(&self.state, &step.id).unwrap_or_default();
        let message = NewMessage {
            message_id: MessageId::mint(n, random),
            content: Raw::text(&prompt),
            idempotency_key: None,
            wait_id: None,
        };
        let records = begin::session(created, Some((message, run_id)), &self.life);
        let began = compose::begin(&step, session, run_id);
        self.take(std::slice::from_ref(&began))?;
        Ok((began, session, records))
    }

    /// Finishes the current step; returns its record and that of the step which follows.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Vec<Draft>> {
        let finished = self.result(false)?;
        self.record(finished)
    }

    /// Returns what the current step comes to.
    pub(crate) fn result(&self, cached: bool) -> anyhow::Result<StepFinished<'static>> {
        let step = self.state.current_step().context("a step")?;
        let reviews = step.id.stage == "review";
        let findings =
            serde_json::json!({"findings": FINDINGS, "summary": "It is done, and the tests pass."});
        Ok(StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: if reviews { "changes_requested" } else { "completed" }.into(),
            payload: Some(Raw::from_value(&findings)?),
            payload_blob: None,
            to: if reviews { step.from } else { BlobId::of(step.key.to_string().as_bytes()) },
            files_touched: None,
            usage: None,
            cached,
            counts: StepCounts::default(),
        })
    }

    /// Composes a result and what follows it, and goes on behind that.
    pub(crate) fn record(&mut self, finished: StepFinished<'static>) -> anyhow::Result<Vec<Draft>> {
        let records = self.compose(finished)?;
        self.take(&records)?;
        Ok(records)
    }

    /// Composes a result and what follows it.
    pub(crate) fn compose(&self, finished: StepFinished<'static>) -> anyhow::Result<Vec<Draft>> {
        let to = finished.to;
        let records = compose::finish(&self.state, finished, |then, next| intention(then, next, to))?;
        ensure!(records.len() == 2, "no step follows");
        Ok(records)
    }

    /// Goes on behind records, as the store does that appends them.
    pub(crate) fn take(&mut self, records: &[Draft]) -> anyhow::Result<()> {
        for record in records {
            self.state.apply(Timestamp::default(), &record.event)?;
        }
        Ok(())
    }
}

/// Returns what a step goes by, as the service finds it out.
fn intention(state: &PipelineState, step: &StepId, from: BlobId) -> Result<Intention, KeyError> {
    let missing = || KeyError::FileMissing { input: step.stage.clone(), path: "rekindle.toml".into() };
    let started = state.started.as_deref().ok_or_else(missing)?;
    let (_, stage) = state.stage(&step.stage).ok_or_else(missing)?;
    let name = stage.agent.as_deref().unwrap_or_default();
    let agent = AgentKey::of(started.config.agents.get(name).ok_or_else(missing)?);
    let inputs = StepInputs::of(&started.task, |_| None)?;
    let prompt = prompt(state, step);
    let task_id = &started.task.id;
    let parts = KeyParts { step, stage, task_id, from, agent, prompt: prompt.as_deref(), inputs: &inputs };
    Ok(Intention {
        key: parts.key()?,
        from,
        agent: Some(agent.identity(name, None)?),
        inputs_hash: inputs.hash(),
    })
}

fn prompt(state: &PipelineState, step: &StepId) -> Option<String> {
    let template = Template::parse(state.stage(&step.stage)?.1.prompt.as_deref()?).ok()?;
    Some(template.expand(|name| match name {
        Name::Findings(stage) => match state.latest_result(stage)?.1.payload.as_ref()? {
            Payload::Inline(json) => payload_field(json.as_json(), "findings"),
            Payload::Blob(_) => None,
        },
        name => value_in_ledger(state, step, name),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_for_as_long_as_it_is_wanted() {
        let (mut run, records) = PipelineRun::start(1).expect("started");
        assert_eq!(records.len(), 2);
        for _ in 0..5 {
            let (_, _, session) = run.begin().expect("begun");
            assert_eq!((session.len(), run.finish().expect("finished").len()), (3, 2));
        }
        assert_eq!((run.state.round(), run.state.steps().count()), (3, 6));
        let keys: std::collections::BTreeSet<_> = run.state.steps().map(|step| step.key).collect();
        assert_eq!(keys.len(), 6, "no two steps are the same");
    }
}

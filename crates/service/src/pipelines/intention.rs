//! What a step begins with: the prompt of its agent with everything put in, the inputs of its task, and the key that both have.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{InputValue, StageConfig};
use rekindle_domain::id::StepId;
use rekindle_domain::pipeline::compose::Intention;
use rekindle_domain::pipeline::key::{AgentKey, KeyError, KeyParts, StepInputs};
use rekindle_domain::pipeline::template::{Name, Template, payload_field, value_in_ledger};
use rekindle_domain::pipeline::{Payload, PipelineState};
use rekindle_store::blobs::Blobs;

use super::trees::Trees;

/// Where values are that no ledger has.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) trees: &'a dyn Trees,
    pub(super) blobs: &'a Blobs,
}

impl Sources<'_> {
    /// Returns what a step that begins with this tree goes by. The same state says the same whenever it is asked.
    pub(super) fn intention(
        &self,
        state: &PipelineState,
        step: &StepId,
        from: BlobId,
    ) -> Result<Intention, KeyError> {
        // A step is always one of a stage of a run that has begun.
        let (Some(started), Some((_, stage))) = (state.started.as_deref(), state.stage(&step.stage)) else {
            return Err(KeyError::FileMissing { input: step.stage.clone(), path: "rekindle.toml".into() });
        };
        let agent = stage.agent.as_ref().and_then(|name| Some((name, started.config.agents.get(name)?)));
        let agent_key = agent.map_or(AgentKey::default(), |(_, agent)| AgentKey::of(agent));
        let inputs = StepInputs::of(&started.task, |path| self.trees.file(from, path))?;
        let prompt = self.prompt(state, step, stage, from);
        let parts = KeyParts {
            step,
            stage,
            task_id: &started.task.id,
            from,
            agent: agent_key,
            prompt: prompt.as_deref(),
            inputs: &inputs,
        };
        let identity = agent.map(|(name, _)| agent_key.identity(name, None)).transpose()?;
        Ok(Intention { key: parts.key()?, from, agent: identity, inputs_hash: inputs.hash() })
    }

    /// Returns what the agent of a step is told, with everything put in; nothing where a command checks.
    pub(super) fn prompt(
        &self,
        state: &PipelineState,
        step: &StepId,
        stage: &StageConfig,
        from: BlobId,
    ) -> Option<String> {
        let text = stage.prompt.as_deref().filter(|_| stage.agent.is_some())?;
        match Template::parse(text) {
            Ok(template) => Some(template.expand(|name| self.value(state, step, from, name))),
            // It was checked before anything began; a ledger of another version may have what this one does not know.
            Err(_) => Some(text.to_owned()),
        }
    }

    fn value(&self, state: &PipelineState, step: &StepId, from: BlobId, name: &Name) -> Option<String> {
        let latest = |stage: &str| state.latest_result(stage);
        match name {
            Name::Input(input) => match state.started.as_deref()?.task.inputs.get(input)? {
                InputValue::File(path) => self.trees.text(self.trees.file(from, path)?),
                _ => value_in_ledger(state, step, name),
            },
            Name::Diff(stage) => {
                let (step, result) = latest(stage)?;
                self.trees.diff(step.from, result.to)
            }
            Name::Findings(stage) => self.payload(latest(stage)?.1.payload.as_ref()?, "findings"),
            Name::Summary(stage) => self.payload(latest(stage)?.1.payload.as_ref()?, "summary"),
            Name::TaskId | Name::TaskGoal | Name::Round | Name::Outcome(_) => {
                value_in_ledger(state, step, name)
            }
        }
    }

    /// Returns a field of what an agent said, wherever that is kept.
    fn payload(&self, payload: &Payload, field: &str) -> Option<String> {
        match payload {
            Payload::Inline(json) => payload_field(json.as_json(), field),
            Payload::Blob(kept) => {
                let bytes = self.blobs.get(&kept.blob).ok()?;
                payload_field(std::str::from_utf8(&bytes).ok()?, field)
            }
        }
    }
}

//! The check of pipelines and their stages.

use std::collections::BTreeSet;

use super::{Agents, Found, Place};
use crate::event::{DEFAULT_PIPELINE, PipelineConfig, ProjectConfig, StageConfig};
use crate::pipeline::builtin::{self, BUILDER, REVIEWER};
use crate::pipeline::outcome;
use crate::pipeline::summary::COMPLETE;
use crate::pipeline::template::{RESERVED, Template};

/// Most rounds of a pipeline: each costs money, and whoever needs more resumes it.
const MOST_ROUNDS: u32 = 100;

/// Most stages of a pipeline: as many as anybody would write.
const MOST_STAGES: usize = 100;

impl Found {
    pub(super) fn pipeline(
        &mut self,
        place: &Place,
        name: &str,
        pipeline: &PipelineConfig,
        agents: &Agents,
        inputs: &BTreeSet<&str>,
    ) {
        self.name(place.clone(), name);
        if !(1..=MOST_ROUNDS).contains(&pipeline.rounds()) {
            self.add(place.key("max_rounds"), format!("it must be a number from 1 to {MOST_ROUNDS}"));
        }
        if pipeline.stages.is_empty() {
            self.add(place.key("stages"), "there is none; add at least one stage");
        }
        if pipeline.stages.len() > MOST_STAGES {
            self.add(place.key("stages"), format!("there are more than {MOST_STAGES}; leave some out"));
        }
        let mut names = BTreeSet::new();
        for (index, stage) in pipeline.stages.iter().enumerate() {
            let at = place.key("stages").index(index);
            self.stage_name(&at, stage);
            if !names.insert(&stage.name) {
                let what = format!("there is another stage {:?}; give it another name", stage.name);
                self.add(at.key("name"), what);
            }
            self.work(&at, stage, agents);
            self.prompt(&at, stage, (pipeline, agents), inputs);
            self.targets(&at, stage, pipeline);
            self.unknown_keys(
                &at,
                &stage.unknown,
                "name, agent, prompt, check, writes, outcomes, on_fail, cache, deadline_s, stalled_after_s",
            );
        }
        self.unknown_keys(place, &pipeline.unknown, "max_rounds, on_cut, stages");
    }

    /// Says who is missing for the pipeline that is built in, where there is no other.
    pub(super) fn default_pipeline(&mut self, root: &Place, config: &ProjectConfig) {
        if config.pipelines.contains_key(DEFAULT_PIPELINE) {
            return;
        }
        for name in [BUILDER, REVIEWER] {
            if !config.agents.contains_key(name) {
                let what =
                    "it is missing: the built-in pipeline needs it; add it, or write a pipelines.default";
                self.add(root.key("agents").key(name), what);
            }
        }
    }

    fn stage_name(&mut self, at: &Place, stage: &StageConfig) {
        self.name(at.key("name"), &stage.name);
        let words = [outcome::NEXT, outcome::FAIL, COMPLETE];
        if words.iter().chain(&RESERVED).any(|word| *word == stage.name) {
            let what = format!("{:?} has a meaning of its own; give the stage another name", stage.name);
            self.add(at.key("name"), what);
        }
    }

    /// Who works: an agent, or a command that checks.
    fn work(&mut self, at: &Place, stage: &StageConfig, agents: &Agents) {
        match (&stage.agent, &stage.check) {
            (Some(_), Some(_)) => self.add(at.clone(), "it has both agent and check; leave one of them out"),
            (None, None) => {
                self.add(
                    at.clone(),
                    "it has neither agent nor check; say who works, or which command checks",
                );
            }
            (Some(agent), None) if !agents.contains_key(agent) => {
                let known: Vec<&str> = agents.keys().map(String::as_str).collect();
                let there = if known.is_empty() {
                    "there are none".into()
                } else {
                    format!("there are {}", known.join(", "))
                };
                self.add(at.key("agent"), format!("there is no agent {agent:?} in agents; {there}"));
            }
            (Some(agent), None) => {
                let is_exec = agents.get(agent).is_some_and(|agent| agent.profile.as_deref() == Some("exec"));
                if is_exec && !stage.outcomes.is_empty() {
                    let what = "an exec agent reports no outcome, its exit code decides; leave them out and use on_fail";
                    self.add(at.key("outcomes"), what);
                }
            }
            (None, Some(check)) => {
                self.command(&at.key("check"), check);
                if !stage.outcomes.is_empty() {
                    let what =
                        "a check reports no outcome, its exit code decides; leave them out and use on_fail";
                    self.add(at.key("outcomes"), what);
                }
            }
        }
    }

    fn prompt(
        &mut self,
        at: &Place,
        stage: &StageConfig,
        (pipeline, agents): (&PipelineConfig, &Agents),
        inputs: &BTreeSet<&str>,
    ) {
        let place = at.key("prompt");
        match (&stage.prompt, &stage.check) {
            (Some(_), Some(_)) => self.add(place, "a check gets no prompt; leave it out"),
            (None, Some(_)) => {}
            (None, None) => {
                // One that is built in, and what an ndjson agent makes of the task by itself, need not be written.
                if !builtin::has_prompt(stage, agents) {
                    self.add(place, "it is missing; say what the agent is to do");
                }
            }
            (Some(prompt), None) if prompt.trim().is_empty() => {
                self.add(place, "it is empty; say what the agent is to do");
            }
            (Some(prompt), None) => {
                let bad = match Template::parse(prompt) {
                    Err(bad) => vec![bad],
                    Ok(template) => template.unknown(pipeline, |input| inputs.contains(input)),
                };
                for bad in bad {
                    self.add(place.clone(), bad.what);
                    if let Some(problem) = self.0.last_mut() {
                        problem.offset = Some(bad.offset);
                    }
                }
            }
        }
    }

    /// Where outcomes and a failure lead.
    fn targets(&mut self, at: &Place, stage: &StageConfig, pipeline: &PipelineConfig) {
        let is_there = |name: &str| pipeline.stages.iter().any(|stage| stage.name == name);
        for (name, target) in &stage.outcomes {
            let place = at.key("outcomes").key(name);
            self.name(place.clone(), name);
            if name == outcome::FAILED {
                self.add(place.clone(), "every stage may fail; leave it out and use on_fail");
            }
            if ![outcome::NEXT, outcome::FAIL].contains(&target.as_str()) && !is_there(target) {
                self.add(place, format!("there is no stage {target:?}; name one, or write next or fail"));
            }
        }
        if let Some(target) = &stage.on_fail
            && target != outcome::FAIL
            && !is_there(target)
        {
            self.add(at.key("on_fail"), format!("there is no stage {target:?}; name one, or write fail"));
        }
    }
}

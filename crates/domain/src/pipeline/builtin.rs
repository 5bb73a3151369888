//! What is built in of configurations: the default pipeline, and the prompts of stages that have none of their own. A run is started
//! with all of it written out, so that a ledger means the same in every version.

use std::collections::BTreeMap;

use crate::event::{
    AgentConfig, DEFAULT_PIPELINE, DEFAULT_ROUNDS, PipelineConfig, ProjectConfig, StageConfig,
};

/// The agents that the default pipeline asks to work.
pub const BUILDER: &str = "builder";
/// The agent that it asks to look at their work.
pub const REVIEWER: &str = "reviewer";

const IMPLEMENT: &str = "implement";
const REVIEW: &str = "review";
const SPEC_MAINTAIN: &str = "spec_maintain";

/// Returns a configuration with everything written out that it leaves to us.
pub fn resolved(mut config: ProjectConfig) -> ProjectConfig {
    config.pipelines.entry(DEFAULT_PIPELINE.to_owned()).or_insert_with(default_pipeline);
    let mut pipelines = std::mem::take(&mut config.pipelines);
    for pipeline in pipelines.values_mut() {
        pipeline.max_rounds.get_or_insert(DEFAULT_ROUNDS);
        let names: Vec<String> = pipeline.stages.iter().map(|stage| stage.name.clone()).collect();
        for stage in pipeline.stages.iter_mut().filter(|stage| stage.agent.is_some()) {
            if stage.prompt.is_none() {
                let own = speaks_ndjson(stage, &config.agents).then(|| "{{task.goal}}".to_owned());
                stage.prompt = prompt_of(&stage.name, &names).or(own);
            }
        }
    }
    config.pipelines = pipelines;
    config
}

/// Returns the pipeline of a configuration that has none: implement, review, and keep the documentation true.
fn default_pipeline() -> PipelineConfig {
    let stage = |name: &str, agent: &str| StageConfig {
        name: name.to_owned(),
        agent: Some(agent.to_owned()),
        ..StageConfig::default()
    };
    let outcomes = [("approved", "next"), ("changes_requested", IMPLEMENT)];
    let review = StageConfig {
        writes: false,
        outcomes: outcomes.map(|(name, target)| (name.to_owned(), target.to_owned())).into(),
        ..stage(REVIEW, REVIEWER)
    };
    PipelineConfig {
        max_rounds: Some(DEFAULT_ROUNDS),
        stages: vec![stage(IMPLEMENT, BUILDER), review, stage(SPEC_MAINTAIN, BUILDER)],
        ..PipelineConfig::default()
    }
}

/// Returns the prompt of a stage that is called as one of the default pipeline; it names no stage that is not there.
fn prompt_of(stage: &str, stages: &[String]) -> Option<String> {
    let has = |name: &str| stages.iter().any(|stage| stage == name);
    let with = |text: &str, other: &str, more: &str| {
        if has(other) { format!("{text}\n{more}") } else { text.to_owned() }
    };
    match stage {
        IMPLEMENT => Some(with(
            "Implement this task: {{task.goal}}\n",
            REVIEW,
            "What the last review found, if there was one:\n{{review.findings}}\n",
        )),
        REVIEW => Some(with(
            "Review the work in this directory for this task: {{task.goal}}\n\nChange no file. Say what has to be changed, and why.\n",
            IMPLEMENT,
            "What was changed:\n{{implement.diff}}\n",
        )),
        SPEC_MAINTAIN => Some(
            "Bring the documentation in line with what was done for this task: {{task.goal}}\n".to_owned(),
        ),
        _ => None,
    }
}

/// Tells whether a stage needs no prompt of its own: one is built in, or its agent is told the task in another way.
pub(super) fn has_prompt(stage: &StageConfig, agents: &BTreeMap<String, AgentConfig>) -> bool {
    [IMPLEMENT, REVIEW, SPEC_MAINTAIN].contains(&stage.name.as_str()) || speaks_ndjson(stage, agents)
}

fn speaks_ndjson(stage: &StageConfig, agents: &BTreeMap<String, AgentConfig>) -> bool {
    let agent = stage.agent.as_ref().and_then(|name| agents.get(name));
    agent.is_some_and(AgentConfig::speaks_ndjson)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::template::Template;

    fn resolve(json: &str) -> ProjectConfig {
        resolved(serde_json::from_str(json).expect("a configuration"))
    }

    #[test]
    fn a_configuration_without_pipelines_has_the_one_that_is_built_in() {
        let config = resolve("{}");
        let pipeline = &config.pipelines[DEFAULT_PIPELINE];
        let names: Vec<&str> = pipeline.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["implement", "review", "spec_maintain"]);
        assert_eq!((pipeline.rounds(), pipeline.stages[1].writes), (3, false));
        assert_eq!(pipeline.stages[1].outcomes["changes_requested"], "implement");
        assert_eq!(resolved(config.clone()), config, "what is written out is not written out again");
    }

    #[test]
    fn a_prompt_that_is_built_in_names_only_stages_that_there_are() {
        for stages in ["implement review spec_maintain", "implement", "review", "spec_maintain review"] {
            let stages: Vec<String> =
                stages.split(' ').map(|name| format!(r#"{{"name":"{name}","agent":"a"}}"#)).collect();
            let config =
                resolve(&format!(r#"{{"pipelines":{{"default":{{"stages":[{}]}}}}}}"#, stages.join(",")));
            let pipeline = &config.pipelines[DEFAULT_PIPELINE];
            for stage in &pipeline.stages {
                let template =
                    Template::parse(stage.prompt.as_deref().expect("a prompt")).expect("a template");
                assert_eq!(template.unknown(pipeline, |_| false), [], "{}", stage.name);
            }
        }
    }

    #[test]
    fn what_is_written_stays_and_what_is_told_in_another_way_is_the_goal() {
        let config = resolve(
            r#"{"agents":{"a":{"agent":"claude"},"n":{"command":["x"],"profile":"ndjson"}},
                "pipelines":{"default":{"max_rounds":7,"stages":[
                {"name":"implement","agent":"a","prompt":"mine"},{"name":"qa","agent":"n"},{"name":"other","agent":"a"},
                {"name":"verify","check":["true"]}]}}}"#,
        );
        let pipeline = &config.pipelines[DEFAULT_PIPELINE];
        let prompts: Vec<Option<&str>> =
            pipeline.stages.iter().map(|stage| stage.prompt.as_deref()).collect();
        assert_eq!(prompts, [Some("mine"), Some("{{task.goal}}"), None, None]);
        assert_eq!(pipeline.rounds(), 7);
    }
}

//! What a run may go by: the configuration makes sense, has the pipeline that is wanted, and asks for nothing that is not built.

use rekindle_agent::exec::PLACEHOLDER;
use rekindle_agent::known::by_id;
use rekindle_domain::event::{PipelineConfig, ProjectConfig};
use rekindle_domain::pipeline::{builtin, validate};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};

/// Problems of a configuration that are told at once.
const TOLD: usize = 20;

/// Returns a configuration with what is built in written out, if a run may go by it.
pub(crate) fn checked(config: ProjectConfig, pipeline: &str) -> Result<ProjectConfig> {
    let problems = validate::problems(&config, |name| by_id(name).is_some());
    if !problems.is_empty() {
        let mut told: Vec<String> = problems.iter().take(TOLD).map(ToString::to_string).collect();
        if problems.len() > TOLD {
            told.push(format!("{} more", problems.len() - TOLD));
        }
        return Err(ServiceError::new(Code::ConfigInvalid, told.join("; ")).hint(Hint::CheckConfig));
    }
    let config = builtin::resolved(config);
    let Some(stages) = config.pipelines.get(pipeline) else {
        let names: Vec<&str> = config.pipelines.keys().map(String::as_str).collect();
        let message = format!("there is no pipeline {pipeline:?}; there are {}", names.join(", "));
        return Err(ServiceError::new(Code::InvalidPipeline, message));
    };
    match not_built(stages) {
        Some(why) => Err(ServiceError::new(Code::InvalidPipeline, why)),
        None => Ok(config),
    }
}

/// Refuses a configuration that a run may not go by, or may not go on by here.
pub(crate) fn check(config: &ProjectConfig, pipeline: &str) -> Result<()> {
    checked(config.clone(), pipeline).map(drop)
}

/// Says what a pipeline asks for that this version cannot do.
fn not_built(pipeline: &PipelineConfig) -> Option<String> {
    pipeline.stages.iter().find_map(|stage| {
        let name = &stage.name;
        let is_place = |word: &String| word == PLACEHOLDER || word.ends_with(&format!("={PLACEHOLDER}"));
        stage.check.as_ref().filter(|check| check.iter().skip(1).any(is_place)).map(|_| {
            format!(
                "the check of stage {name} contains {PLACEHOLDER}, but a check gets no prompt; leave it out"
            )
        })
    })
}

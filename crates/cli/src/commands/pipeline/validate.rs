//! `rekindle pipeline validate`: everything that is wrong with a `rekindle.toml`, or what its pipelines are and by which hash it is
//! trusted.

use std::path::PathBuf;

use rekindle_client::failure::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::pipeline::stage_text;
use rekindle_domain::event::{PipelineConfig, StageConfig};
use rekindle_domain::pipeline::builtin::resolved;
use rekindle_project::ReadError;
use rekindle_project::programs::missing;
use rekindle_service::error::chain;
use rekindle_terminal::output::{BOLD, DIM, styled};
use rekindle_terminal::sanitise;
use serde_json::{Value, json};

use super::Context;
use super::project_dir::{no_file, warn};

/// Check a rekindle.toml, and say what its pipelines are
///
/// Every problem is told with its line and column, and what to do about it; with any the exit code is 1. Programs that are not on
/// PATH are a warning. Of a file that is right the hash is told that `pipeline run --trust` wants. Nothing is started, and nothing is
/// sent anywhere.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline validate
  rekindle pipeline validate tools/rekindle.toml
  hash=$(rekindle pipeline validate --json | jq -r .hash)
  rekindle pipeline run --trust \"$hash\"
  rekindle pipeline validate --json |
    jq -r '.problems[] | \"\\(.line): \\(.what)\"'")]
pub(super) struct Args {
    /// The file
    #[arg(value_name = "FILE", default_value = rekindle_project::FILE)]
    file: PathBuf,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let file = &args.file;
    let (config, hash, warnings) = match rekindle_project::read(file).map_err(|error| unreadable(&error))? {
        Ok(read) => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let config = resolved(read.config);
            let warnings = missing(&read.text, &config, &path, None);
            (config, read.hash, warnings)
        }
        Err(problems) => {
            let told = json!({"file": file, "valid": false, "problems": problems, "warnings": []});
            context.print(&told, |out| {
                Ok(problems.iter().try_for_each(|problem| writeln!(out, "{}", problem.text(file)))?)
            })?;
            return Ok(Exit::Failed);
        }
    };
    let pipelines: Vec<Value> =
        config.pipelines.iter().map(|(name, pipeline)| described(name, pipeline)).collect();
    let told = json!({"file": file, "valid": true, "problems": [], "warnings": warnings, "hash": hash, "pipelines": pipelines});
    if !context.json {
        warn(file, &warnings);
    }
    context.print(&told, |out| {
        for (name, pipeline) in &config.pipelines {
            let stages: Vec<String> = pipeline.stages.iter().map(stage_text).collect();
            writeln!(out, "{}: {}", styled(BOLD, name), sanitise::line(&stages.join(", ")))?;
        }
        writeln!(
            out,
            "{}",
            styled(DIM, format_args!("trusted with: {}", ours(format_args!("pipeline run --trust {hash}"))))
        )?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

/// Returns the failure that a file is which cannot be read.
fn unreadable(error: &ReadError) -> Failure {
    match error {
        ReadError::Missing { path, .. } => no_file(path),
        ReadError::Unreadable { .. } | ReadError::TooLarge { .. } => {
            Failure::usage("config_unreadable", chain(error))
        }
    }
}

fn described(name: &str, pipeline: &PipelineConfig) -> Value {
    let stage = |stage: &StageConfig| match &stage.agent {
        Some(agent) => json!({"name": stage.name, "agent": agent}),
        None => json!({"name": stage.name, "check": stage.check}),
    };
    let stages: Vec<Value> = pipeline.stages.iter().map(stage).collect();
    json!({"name": name, "max_rounds": pipeline.rounds(), "stages": stages})
}

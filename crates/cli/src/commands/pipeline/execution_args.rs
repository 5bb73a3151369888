//! Options of whatever has a run go on, from its beginning or from where it was: what it may use, and whether it is followed.

use std::collections::BTreeMap;

use rekindle_client::Failure;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::ProjectConfig;

use crate::context::Context;
use crate::env_arg::environment_for;

/// Options that `run` and `resume` share.
#[derive(Debug, clap::Args)]
pub(super) struct ExecutionArgs {
    /// Do not use cached results of earlier runs
    #[arg(long)]
    pub(super) no_cache: bool,

    /// Trust rekindle.toml in its directory from now on, if this is its hash
    #[arg(long, value_name = "HASH")]
    pub(super) trust: Option<BlobId>,

    /// Pass an environment variable to agents: NAME from this shell, or NAME=VALUE; those that rekindle.toml names are passed anyway
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Do not follow: return as soon as it runs
    #[arg(long, short)]
    pub(super) detach: bool,
}

impl ExecutionArgs {
    /// Returns what of our environment goes to agents: what each known one needs, what the file names for each, and what is named here.
    /// A daemon elsewhere is given only what is named here.
    pub(super) fn environment(
        &self,
        context: &Context,
        config: Option<&ProjectConfig>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut env = environment_for(context, None, &self.env)?;
        for agent in config.iter().flat_map(|config| config.agents.values()) {
            if let Some(known) = &agent.agent {
                for (name, value) in environment_for(context, Some(known), &[])? {
                    env.entry(name).or_insert(value);
                }
            }
            for name in agent.env.iter().filter(|_| context.server.is_none()) {
                match std::env::var(name) {
                    Ok(value) => drop(env.entry(name.clone()).or_insert(value)),
                    Err(_) if env.contains_key(name) => {}
                    Err(_) => anstream::eprintln!(
                        "note: rekindle.toml passes {name} to an agent, but it is not set in this shell"
                    ),
                }
            }
        }
        Ok(env)
    }
}

//! Requests about runs of pipelines.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{Budget, OnCut, OnDrift, Permissions, ResumePolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::{object, possible_variables};
use super::{NewWorktree, Umask};

/// The most tasks that one request starts runs for: each has a directory of its own, or waits for the one before.
pub const MAX_PIPELINE_TASKS: usize = 64;

/// The most bytes of a `rekindle.toml`.
pub const MAX_PROJECT_CONFIG: usize = 1 << 20;

/// A `rekindle.toml`, whole. It is sent as it is written, so that whoever trusts it trusts these very bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// Where it was read: an absolute path.
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo/rekindle.toml"]))]
    pub path: String,
    /// What it says.
    pub text: String,
}

impl ProjectFile {
    /// Returns BLAKE3 of its bytes, by which it is trusted.
    pub fn hash(&self) -> BlobId {
        BlobId::of(self.text.as_bytes())
    }
}

/// Runs of a pipeline to be started, one for each task: all or none.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPipelines {
    /// The directory of the project: an absolute path. Steps work in it, unless there is a worktree, and its `rekindle.toml` is the
    /// configuration, unless one is sent.
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo"]))]
    pub working_dir: String,
    /// The tasks, by their ids in the configuration. Of several each has a worktree of its own.
    #[schemars(length(min = 1, max = 64))]
    pub tasks: Vec<String>,
    /// Which of the configuration's pipelines; `default` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The configuration; without it the daemon reads `rekindle.toml` in the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub config: Option<ProjectFile>,
    /// BLAKE3 of a configuration that was looked at and is trusted from now on in this directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<BlobId>,
    /// What becomes of a step whose agent was cut; as the pipeline says without it, else that hangs on the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_cut: Option<OnCut>,
    /// What becomes of files that are not as a step expects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drift: Option<OnDrift>,
    /// Whether it goes on by itself under another daemon than it was started under: `auto`, which counts without it, or `ask`, which takes over a step that is
    /// at work and begins nothing until somebody resumes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumePolicy>,
    /// The most that all steps of a run may use, in whatever attempts. When it is used up the step that goes on is cancelled, and the
    /// run fails.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub budget: Option<Budget>,
    /// A worktree of git that it works in, made for the working directory. Its branch names that of a single task.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub worktree: Option<NewWorktree>,
    /// Results of earlier runs are not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// What is answered to permission requests of its agents without asking anyone.
    #[serde(default)]
    pub permissions: Permissions,
    /// The caller's environment, filtered here; what the configuration names for an agent goes to that one too.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that agents make are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

impl NewPipelines {
    /// Makes one of what it cannot be without.
    pub fn new(working_dir: String, tasks: Vec<String>) -> NewPipelines {
        NewPipelines {
            working_dir,
            tasks,
            pipeline: None,
            config: None,
            trust: None,
            on_cut: None,
            budget: None,
            on_drift: None,
            resume: None,
            worktree: None,
            no_cache: false,
            permissions: Permissions::default(),
            env: BTreeMap::new(),
            umask: None,
        }
    }
}

/// A run of a pipeline to be resumed.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumePipeline {
    /// What becomes of files that are not as expected. Without it nothing is decided about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_drift: Option<OnDrift>,
    /// It goes on though it has failed or was aborted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// It goes on, with what it was started with, though the configuration says something else by now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_config: bool,
    /// The configuration as it is now; without it the daemon reads `rekindle.toml` where the run was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub config: Option<ProjectFile>,
    /// BLAKE3 of the configuration that the run was started with, which is trusted from now on in its directory: one that came in a bundle
    /// was trusted elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<BlobId>,
    /// Results of earlier runs are not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// The caller's environment, filtered here.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that agents make are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

/// A run of a pipeline to be ended.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortPipeline {
    /// Why, for its ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_what_was_said_and_nothing_else() {
        let new = NewPipelines::new("/repo".into(), vec!["T-1".into()]);
        let written = serde_json::to_value(&new).expect("a body");
        assert_eq!(
            written,
            json!({"working_dir": "/repo", "tasks": ["T-1"], "permissions": "ask", "env": {}})
        );
        let least: NewPipelines =
            serde_json::from_value(json!({"working_dir": "/repo", "tasks": ["T-1"]})).expect("a request");
        assert_eq!(serde_json::to_value(least).expect("a body"), written);
        assert_eq!(serde_json::to_value(ResumePipeline::default()).expect("a body"), json!({"env": {}}));
        for bad in [json!({"working_dir": "/", "task": "T-1"}), json!({"working_dir": "/", "tasks": "T-1"})] {
            assert!(serde_json::from_value::<NewPipelines>(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_configuration_is_trusted_by_the_hash_of_its_very_bytes() {
        let file = |text: &str| ProjectFile { path: "/r/rekindle.toml".into(), text: text.into() };
        assert_eq!(
            file("").hash().to_string(),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
        assert_ne!(file("version = 1\n").hash(), file("version = 1\r\n").hash());
    }
}

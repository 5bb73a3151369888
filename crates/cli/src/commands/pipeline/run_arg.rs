//! Which run of a pipeline is meant: a name, the beginning of one that only one has, or this directory's latest.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use std::path::Path;

use rekindle_client::{Client, Failure, http};
use rekindle_domain::id::{PipelineId, RunName};
use rekindle_project::FILE;
use rekindle_wire::view::{PipelineList, PipelineView};

/// Most runs that are named where one is meant.
const NAMED: usize = 8;

/// Runs of which the latest is meant: names tell them apart by their second, and more are not started in one.
const SAME_SECOND: usize = 20;

/// Names a run.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RunArg {
    /// The run, by its name or the beginning of it; `run-` may be left out [default: this directory's latest]
    #[arg(value_name = "RUN", add = ids(IdKind::Run))]
    run: Option<String>,

    /// The same as RUN
    #[arg(long = "run", short = 'r', value_name = "RUN", id = "run_option", conflicts_with = "run", add = ids(IdKind::Run))]
    option: Option<String>,
}

impl RunArg {
    /// Tells whether one is named.
    pub(super) fn is_given(&self) -> bool {
        self.name().is_some()
    }

    fn name(&self) -> Option<&str> {
        self.run.as_deref().or(self.option.as_deref())
    }

    /// Finds the run that is meant.
    pub(super) fn find(&self, client: &Client) -> Result<PipelineView, Failure> {
        match self.name() {
            Some(name) => find(name, client),
            None => latest(client),
        }
    }
}

/// What a text names.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    /// A run, whole.
    Whole(String),
    /// The runs whose names begin so.
    Prefix(String),
}

/// Reads a name.
fn named(name: &str) -> Option<Named> {
    if let Ok(id) = name.parse::<PipelineId>() {
        return Some(Named::Whole(RunName::of(id).map_or_else(|| id.to_string(), |name| name.to_string())));
    }
    let whole = if name.starts_with("run-") { name.to_owned() } else { format!("run-{name}") };
    if whole.parse::<RunName>().is_ok() {
        return Some(Named::Whole(whole));
    }
    let digits = whole.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (digits && whole.len() < 48).then_some(Named::Prefix(whole))
}

/// Finds the run that a name means.
pub(in crate::commands) fn find(name: &str, client: &Client) -> Result<PipelineView, Failure> {
    let prefix = match named(name) {
        Some(Named::Whole(whole)) => {
            return client.get(&path(&whole)).map_err(|failure| match failure.code() {
                "run_unknown" => unknown(&whole),
                _ => failure,
            });
        }
        Some(Named::Prefix(prefix)) => prefix,
        None => {
            let shown: String = name.chars().take(48).collect();
            let message = format!("{shown:?} is neither the name of a run nor the beginning of one");
            return Err(Failure::usage("bad_run_name", message).hint("rekindle pipeline ls lists them"));
        }
    };
    let list: PipelineList =
        client.get(&format!("/api/pipelines?prefix={}&limit={}", http::escape(&prefix), NAMED + 1))?;
    let mut found = list.pipelines;
    match (found.len(), found.pop()) {
        (1, Some(one)) => Ok(one),
        (_, None) => Err(unknown(&prefix)),
        (_, Some(last)) => {
            let names: Vec<&str> =
                found.iter().chain([&last]).take(NAMED).map(|run| run.run_id.as_str()).collect();
            Err(Failure::usage(
                "run_ambiguous",
                format!("{prefix} is not unique: it may be {}", names.join(", ")),
            )
            .hint("give more of it"))
        }
    }
}

fn unknown(name: &str) -> Failure {
    Failure::usage("run_unknown", format!("there is no run {name}"))
        .hint("rekindle pipeline ls lists the runs of this home and daemon")
}

/// Returns the latest run of the project that we are in.
fn latest(client: &Client) -> Result<PipelineView, Failure> {
    let here = crate::session_arg::current_dir()?;
    let root = Path::new(&here).ancestors().find(|above| above.join(FILE).is_file());
    let root = root.and_then(Path::to_str).unwrap_or(&here);
    let place = http::escape(root);
    let list: PipelineList = client.get(&format!("/api/pipelines?cwd={place}&limit={SAME_SECOND}"))?;
    list.pipelines.into_iter().max_by_key(|run| run.started_at).ok_or_else(|| {
        Failure::usage("no_run", format!("no pipeline was run in {root}"))
            .hint("rekindle pipeline ls lists the runs of all directories; rekindle pipeline run starts one")
    })
}

/// Returns the path of a run.
pub(super) fn path(run: &str) -> String {
    format!("/api/pipelines/{}", http::escape(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_whole_or_by_its_beginning() {
        let whole = |name: &str| Some(Named::Whole(name.into()));
        let name = "run-20251020-140818-4f9f29a1";
        assert_eq!(named(name), whole(name));
        assert_eq!(named("20251020-140818-4f9f29a1"), whole(name));
        let id = name.parse::<RunName>().expect("a name").pipeline_id();
        assert_eq!(named(id.as_str()), whole(name));
        assert_eq!(named("pl_odd"), whole("pl_odd"));
        assert_eq!(named("20251020-14"), Some(Named::Prefix("run-20251020-14".into())));
        assert_eq!(named("run-2025"), Some(Named::Prefix("run-2025".into())));
        for bad in ["a b", "../x", "run-2025&limit=1", "é", &"2".repeat(60)] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }
}

//! Trust in a project's file: shown to a person, and asked for, when a daemon says that nobody has trusted it yet.

use rekindle_client::Failure;
use rekindle_display::hints::ours;
use rekindle_display::pipeline::{config_runs, config_text};
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::ProjectConfig;
use rekindle_terminal::output::{WARN, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::PipelineView;

use super::project_dir::Project;
use crate::confirm::{can_ask, confirmed};
use crate::context::Context;

/// The code of a refusal for want of trust.
pub(super) const UNTRUSTED: &str = "config_untrusted";

/// Says so if the file is another one than that which is said to be trusted.
pub(super) fn check(given: Option<BlobId>, project: &Project) -> Result<(), Failure> {
    let hash = project.file.hash();
    match given {
        Some(given) if given != hash => {
            let message = format!("{} does not have the hash {given}: its hash is {hash}", project.file.path);
            Err(Failure::usage(UNTRUSTED, message).hint("review it again: the file has changed"))
        }
        _ => Ok(()),
    }
}

/// Shows the file and asks whether it is trusted; returns its hash if it is.
pub(super) fn ask(context: &Context, project: &Project) -> Result<BlobId, Failure> {
    let hash = project.file.hash();
    if !can_ask(context) {
        let message =
            format!("{} is not trusted yet in {}: nothing was started", project.file.path, project.root);
        return Err(
            Failure::usage(UNTRUSTED, message).hint(format!("review what it runs, then use --trust {hash}"))
        );
    }
    anstream::eprint!("{}", config_text(&project.file, &project.config));
    if confirmed("Trust this file in this directory from now on?")? {
        return Ok(hash);
    }
    Err(Failure::usage(UNTRUSTED, "the file is not trusted: nothing was started".into()))
}

/// Shows what a run was started with, and asks whether it is trusted; returns its hash if it is.
pub(super) fn ask_for_run(
    context: &Context,
    run: &PipelineView,
    config: &ProjectConfig,
) -> Result<BlobId, Failure> {
    let (hash, place) = (run.config_hash, sanitise::line(&run.origin));
    if !can_ask(context) {
        let message =
            format!("the configuration that {} was started with is not trusted in {place}", run.run_id);
        return Err(Failure::usage(UNTRUSTED, message).hint(format!(
            "`{} {}` shows it; then use --trust {hash}",
            ours("pipeline log --json"),
            run.run_id
        )));
    }
    anstream::eprintln!(
        "{}",
        styled(
            WARN,
            format_args!(
                "the configuration that {} was started with is not trusted in {place}. It runs:",
                run.run_id
            )
        )
    );
    for line in config_runs(config) {
        anstream::eprintln!("  {}", sanitise::line(&line));
    }
    if confirmed("Trust it in this directory from now on?")? {
        return Ok(hash);
    }
    Err(Failure::usage(UNTRUSTED, "it is not trusted: nothing continues".into()))
}

#[cfg(test)]
mod tests {
    use rekindle_wire::request::ProjectFile;

    use super::*;

    fn project(text: &str) -> Project {
        let config = rekindle_project::check(text).unwrap_or_else(|_| panic!("no problems"));
        let file = ProjectFile { path: "/repo/rekindle.toml".into(), text: text.to_owned() };
        Project { root: "/repo".into(), file, config }
    }

    const TEXT: &str = "version = 1\n[agents.builder]\ncommand = [\"my agent\", \"--x\"]\nprofile = \"acp\"\nenv = [\"TOKEN\"]\n\
        [agents.reviewer]\nagent = \"codex\"\n[pipelines.default]\n[[pipelines.default.stages]]\nname = \"verify\"\n\
        check = [\"make\", \"test\"]\n";

    #[test]
    fn a_hash_is_of_this_very_file() {
        let project = project(TEXT);
        check(None, &project).expect("none is given");
        check(Some(project.file.hash()), &project).expect("it is this one");
        let failure = check(Some(BlobId::of(b"other")), &project).expect_err("it is another");
        assert_eq!(failure.code(), UNTRUSTED);
    }
}

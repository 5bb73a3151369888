//! `rekindle service install`: the unit file first, whole or not at all, then the service. A daemon that runs beside it is
//! asked to leave. Dying anywhere in between leaves what the next call completes.

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::logout::facts_of;
use rekindle_client::problem::Problem;
use rekindle_client::unit::{Manager, RELOADED, Survey, Unit};
use rekindle_display::live::diff;
use rekindle_display::service::print_survey;
use rekindle_store::disk::RealDisk;
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_terminal::output::{self, DIM, GOOD, styled, wrap};
use serde_json::json;

use crate::commands::{Context, stop};

/// Install the service, start it, and say what becomes of agents at logout and restart
///
/// Writes a unit file, enables it and starts it. A daemon that runs already leaves, and the service's takes its place;
/// agents work on. Agents are found by the PATH of this shell: it is written into the file. A file that says something
/// else is kept as .bak. Installing again changes only what has changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle service install
  rekindle --home /srv/agents service install")]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let manager = Manager::find(&facts_of(None)).map_err(|Problem { what, remedy, .. }| {
        let error = anyhow::anyhow!("the service cannot be installed: {what}");
        Failure::failed("no_user_manager", error).hint(remedy)
    })?;
    // A directory that is no home, and holds something else, is refused before anything is written anywhere.
    home::prepare(&RealDisk, &Layout::new(&context.home))?;
    let unit = Unit::of(&context.home)?;
    let text = unit.text(&own_path()?)?;
    let before = std::fs::read_to_string(&unit.path).ok();
    let changed = before.as_ref() != Some(&text);
    let backup = if changed { unit.write(&text, before.as_deref())? } else { None };
    manager.ask(&["daemon-reload"], RELOADED)?;
    manager.ask(&["enable", &unit.name], RELOADED)?;
    let agents = stop::living_holders(context);
    let survey = Survey::of(&context.home)?;
    if !survey.is_daemon_ours() {
        stop::make_way(context)?;
        unit.bring_up(&manager, "start")?;
    } else if changed {
        unit.bring_up(&manager, "restart")?;
    }
    let survey = Survey::of(&context.home)?;
    let still = stop::living_holders(context);
    let stayed = agents.iter().filter(|one| still.contains(one)).count();
    let mut body = survey.to_json();
    body["changed"] = json!(changed);
    body["backup"] = json!(backup);
    body["agents"] = json!(stayed);
    let width = output::width();
    context.print(&body, |out| {
    let path = unit.path.display();
    match (changed, before) {
        (false, _) => writeln!(out, "{path} is up to date")?,
        (true, None) => {
            writeln!(out, "wrote {path}")?;
            let words = "agents are found by the PATH of this shell, which is written there; other variables that they \
                         need come with `rekindle run --env NAME`, or from `systemctl --user edit`";
            writeln!(out, "{}", styled(DIM, wrap(words, width, "  ", "  ")))?;
        }
        (true, Some(before)) => {
            let backup = backup.map(|path| path.display().to_string()).unwrap_or_default();
            writeln!(out, "changed {path}; the previous version is in {backup}")?;
            for (style, line) in diff::compared(&before, &text) {
                writeln!(out, "  {}", styled(style, line))?;
            }
        }
    }
    let pid = survey.daemon.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    writeln!(
        out,
        "{} is {}{pid}; {}",
        unit.name,
        styled(GOOD, "active"),
        stop::survivors_text(agents.len(), stayed)
    )?;
    Ok(print_survey(out, &survey, width)?)
    })
}

/// Returns our `PATH`; a relative place in it would be somewhere else for a service.
fn own_path() -> Result<String, Failure> {
    let path = std::env::var("PATH").unwrap_or_default();
    let absolute: Vec<_> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    if absolute.is_empty() {
        return Err(Failure::usage(
            "path_unknown",
            "$PATH names no directory where agents could be found".into(),
        )
        .hint("set it as in the shell you use agents from"));
    }
    let joined = std::env::join_paths(absolute).map_err(|error| Failure::failed("path_unknown", error))?;
    joined.into_string().map_err(|_| Failure::usage("path_unknown", "$PATH is not valid UTF-8".into()))
}

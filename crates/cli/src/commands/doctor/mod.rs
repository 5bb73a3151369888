//! `rekindle doctor`: shows what is wrong with a home, with or without a daemon, and puts right what can be.

mod bar;
mod release;
mod repair;

use crate::completers::ids;
use rekindle_client::clock::SystemClock;
use rekindle_client::completion::IdKind;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::logout::danger;
use rekindle_client::unit::Survey;
use rekindle_daemon::config::Config;
use rekindle_display::doctor::{print_agents, print_findings, summary, to_json};
use rekindle_domain::time::Clock;
use rekindle_service::daemon::DatabaseSettings;
use rekindle_service::upkeep::{TaskRows, examine};
use rekindle_store::check::{Holding, Report};
use rekindle_terminal::output::{self, DIM, styled};
use serde_json::json;

use super::Context;
use bar::Bar;

/// Check the home: every log, cache, blob and holder, and the rows of tasks, and say what to do about what is wrong
///
/// Reads everything and changes nothing, unless --repair is given. Logs are checked record by record, with what the
/// write-ahead log still has for them. Whether logging out would end agents, and where each of them lives, is told too. Exits 0 if nothing is lost (there may be
/// warnings and notes), 1 if something is.
///
/// With --repair, what is provably safe is put right: caches and rows of tasks that are not what the log says, torn ends,
/// permissions, leftovers. Everything that is taken away or changed is kept below repairs/ in the home. A log that is damaged in the
/// middle cannot be put right without loss: --set-aside moves such a session, whole, to damaged/. No daemon may run
/// meanwhile; agents work on.
///
/// A session that made the daemon crash twice is quarantined: nothing of it is read and its agent is left alone, until --release
/// has it tried again or another version does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle doctor
  rekindle doctor --home /backup/rekindle
  rekindle doctor --json | jq '.findings[] | select(.severity == \"error\")'
  rekindle doctor --repair --dry-run          # what would be done
  rekindle stop && rekindle doctor --repair   # agents keep working
  rekindle doctor --repair --set-aside 01khz0p6r8 --keep-prefix
  rekindle doctor --release 01khz0p6r8        # try a quarantined one again")]
pub(crate) struct Args {
    /// Repair what can be repaired safely, keep what is removed, and check again
    #[arg(long)]
    repair: bool,
    /// Show what would be done, and change nothing
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// Move a damaged session to damaged/ in the home, whole
    #[arg(long, requires = "repair", value_name = "SESSION", add = ids(IdKind::Session))]
    set_aside: Vec<String>,
    /// Then continue from the good beginning of its log; what was running is cancelled
    #[arg(long, requires = "set_aside")]
    keep_prefix: bool,
    /// Try a quarantined session again, which made the daemon crash; works with and without a daemon
    #[arg(long, value_name = "SESSION", conflicts_with = "repair", add = ids(IdKind::Session))]
    release: Option<String>,
    /// Stop agents that belong to no session, without asking
    #[arg(long, short, requires = "repair")]
    yes: bool,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if let Some(name) = &args.release {
        return release::run(context, name);
    }
    if args.repair {
        return repair::run(context, args);
    }
    let report = examine_home(context)?;
    let verdict = if report.is_healthy() { Exit::Ok } else { Exit::Failed };
    let survey = Survey::of(&context.home);
    let mut body = to_json(&context.home, &report);
    body["logout"] = json!(survey.as_ref().ok().and_then(|survey| danger(&survey.facts)));
    body["service"] = json!(survey.as_ref().ok().map(Survey::to_json));
    let printed = context.print(&body, |out| {
        print_findings(out, &context.home, &report)?;
        match &survey {
            Ok(survey) => print_agents(out, survey, output::width())?,
            Err(failure) => writeln!(out, "{}\n", styled(DIM, format!("agents: {}", failure.message())))?,
        }
        Ok(writeln!(out, "{}", summary(&report))?)
    });
    self::verdict(verdict, printed)
}

/// Whoever has seen enough of the findings still wants to know whether there are any.
fn verdict(verdict: Exit, printed: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match printed {
        Err(failure) if failure.is_broken_pipe() => Ok(verdict),
        printed => printed.map(|_| verdict),
    }
}

fn examine_home(context: &Context) -> Result<Report, Failure> {
    let (mut bar, database) = (Bar::new(), task_database());
    let rows = database.as_ref().map(|settings| TaskRows { settings, now: SystemClock.now() });
    Ok(examine(&context.disk(), &context.home, Holding::Nothing, rows, &mut |progress| bar.show(progress))?)
}

/// Returns where the rows of tasks are; not known while the configuration cannot be read, which hides nothing else.
fn task_database() -> Option<DatabaseSettings> {
    Config::read().ok().map(|config| config.tasks.database())
}

//! `rekindle service status`: the unit, the daemon, and where each holder is; what is good and what is to be done.

use std::io::{self, Write};

use clap::builder::styling::Style;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::problem::Problem;
use rekindle_client::unit::{FileState, Survey};
use rekindle_terminal::output::{self, BAD, BOLD, GOOD, WARN, styled, wrap};
use rekindle_terminal::sanitise;

use crate::commands::Context;

/// Show whether the service is as it should be, and where each agent lives
///
/// Changes nothing. Exits 0 if all is well, 1 if there is something to do, which is then told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle service status
  rekindle service status --json | jq '.to_do[]'")]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let survey = Survey::of(&context.home)?;
    context.print(&survey.to_json(), |out| Ok(print(out, &survey)?))?;
    Ok(if survey.problems().is_empty() { Exit::Ok } else { Exit::Failed })
}

fn print(out: &mut dyn Write, survey: &Survey) -> io::Result<()> {
    let width = output::width();
    let (style, file) = match survey.file {
        FileState::Missing => (WARN, "not installed"),
        FileState::Current => (GOOD, "installed"),
        FileState::Outdated => (WARN, "outdated"),
    };
    writeln!(out, "{} is {}", styled(BOLD, &survey.unit), styled(style, file))?;
    let mut line = |name: &str, text: &str| {
        writeln!(out, "{}", wrap(&sanitise::line(text), width, &format!("  {name:9}"), "           "))
    };
    line("file", &survey.path.display().to_string())?;
    if let Ok(shown) = &survey.manager {
        let enabled = if shown.enabled.is_empty() { "not enabled" } else { &shown.enabled };
        line("service", &format!("{enabled}, {}", shown.active))?;
    }
    line(
        "daemon",
        &match survey.daemon {
            None => "none runs".into(),
            Some(pid) if survey.is_daemon_ours() => format!("process {pid}, the service's"),
            Some(pid) => format!("process {pid}, not the service's, in {}", survey.facts.cgroup),
        },
    )?;
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let facts = &survey.facts;
    line("linger", yes(facts.lingers))?;
    line("logins", &format!("KillUserProcesses={}", yes(facts.kills_logins)))?;
    print_survey(out, survey, width)
}

/// Prints where each holder is.
pub(in crate::commands) fn print_holders(
    out: &mut dyn Write,
    survey: &Survey,
    width: usize,
) -> io::Result<()> {
    for holder in &survey.holders {
        let words = sanitise::line(&survey.holder_text(&holder.at));
        let pid = holder.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        // The beginning of an id is enough to find it.
        let id = holder.id.chars().take(10).collect::<String>();
        writeln!(out, "{}", wrap(&format!("{id}{pid} is in {words}"), width, "  holder   ", "           "))?;
    }
    Ok(())
}

/// Prints what is to be done.
pub(in crate::commands) fn print_problems(
    out: &mut dyn Write,
    style: Style,
    problems: &[Problem],
    width: usize,
) -> io::Result<()> {
    for one in problems {
        writeln!(out, "  {}", styled(style, one.code))?;
        writeln!(out, "{}", wrap(&sanitise::line(&one.what), width, "    ", "    "))?;
        writeln!(out, "{}\n", wrap(&sanitise::line(&one.remedy), width, "    → ", "      "))?;
    }
    Ok(())
}

/// Prints where holders are, what becomes of them, and what is to be done.
pub(super) fn print_survey(out: &mut dyn Write, survey: &Survey, width: usize) -> io::Result<()> {
    print_holders(out, survey, width)?;
    for (when, words) in survey.outlook() {
        writeln!(out, "{}", wrap(&words, width, &format!("  {when:9}"), "           "))?;
    }
    let problems = survey.problems();
    if !problems.is_empty() {
        writeln!(out)?;
    }
    print_problems(out, BAD, &problems, width)
}

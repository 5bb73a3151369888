//! The daemon as a service of the user's own: its unit, where each holder is, what becomes of it, and what is to be done.

use std::io::{Result, Write};

use anstyle::Style;
use rekindle_client::problem::Problem;
use rekindle_client::unit::{FileState, Survey};
use rekindle_terminal::output::{self, BAD, BOLD, GOOD, WARN, styled, wrap};
use rekindle_terminal::sanitise;

/// Prints how the service stands, then what [`print_survey`] does.
pub fn print_service(out: &mut dyn Write, survey: &Survey) -> Result<()> {
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
            None => "none is running".into(),
            Some(pid) if survey.is_daemon_ours() => format!("process {pid}, part of the service"),
            Some(pid) => format!("process {pid}, outside the service, in {}", survey.facts.cgroup),
        },
    )?;
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let facts = &survey.facts;
    line("linger", yes(facts.lingers))?;
    line("logins", &format!("KillUserProcesses={}", yes(facts.kills_logins)))?;
    print_survey(out, survey, width)
}

/// Prints where agents run.
pub(crate) fn print_places(out: &mut dyn Write, survey: &Survey, width: usize) -> Result<()> {
    for words in survey.places() {
        writeln!(out, "{}", wrap(&sanitise::line(&words), width, "  agents   ", "           "))?;
    }
    Ok(())
}

/// Prints what is to be done.
pub(crate) fn print_problems(
    out: &mut dyn Write,
    style: Style,
    problems: &[Problem],
    width: usize,
) -> Result<()> {
    for one in problems {
        writeln!(out, "  {}", styled(style, one.code))?;
        writeln!(out, "{}", wrap(&sanitise::line(&one.what), width, "    ", "    "))?;
        writeln!(out, "{}\n", wrap(&sanitise::line(&one.remedy), width, "    → ", "      "))?;
    }
    Ok(())
}

/// Prints where agents run, what becomes of them, and what is to be done.
pub fn print_survey(out: &mut dyn Write, survey: &Survey, width: usize) -> Result<()> {
    print_places(out, survey, width)?;
    for (when, words) in survey.outlook() {
        writeln!(out, "{}", wrap(&words, width, &format!("  {when:9}"), "           "))?;
    }
    let problems = survey.problems();
    if !problems.is_empty() {
        writeln!(out)?;
    }
    print_problems(out, BAD, &problems, width)
}

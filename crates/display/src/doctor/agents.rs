//! Where agents live, and what would end them.

use std::io::Write;

use rekindle_client::failure::Failure;
use rekindle_client::logout::danger;
use rekindle_client::problem::Problem;
use rekindle_client::unit::{FileState, Survey};
use rekindle_terminal::output::{DIM, styled, wrap};
use rekindle_terminal::sanitise;

use crate::service::{print_places, print_problems};

/// Prints what would end agents, where they are, and what is wrong with the service: notes, not findings.
pub fn print_agents(out: &mut dyn Write, survey: &Survey, width: usize) -> Result<(), Failure> {
    let danger = danger(&survey.facts);
    // Whoever wants no service need not be told that there is none, nor twice that logging out ends agents.
    let told = |code: &str| danger.is_some() && matches!(code, "no_linger" | "ends_with_login");
    let mut notes = survey.problems();
    notes.retain(|note| survey.file != FileState::Missing && !told(note.code));
    let notes: Vec<Problem> = danger.clone().into_iter().chain(notes).collect();
    if notes.is_empty() && survey.daemon.is_none() && survey.holders.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", styled(DIM, "agents"))?;
    if let Some(pid) = survey.daemon {
        let cgroup = sanitise::line(&survey.facts.cgroup);
        let words = match (survey.is_daemon_ours(), cgroup.as_str()) {
            (true, _) => format!("process {pid}, part of {}", survey.unit),
            (false, "" | "/") => format!("process {pid}, outside any service"),
            (false, cgroup) => format!("process {pid} in {cgroup}"),
        };
        writeln!(out, "{}", wrap(&words, width, "  daemon   ", "           "))?;
    }
    print_places(out, survey, width)?;
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let (lingers, kills) = (yes(survey.facts.lingers), yes(survey.facts.kills_logins));
    writeln!(out, "  logins   linger: {lingers}, KillUserProcesses: {kills}\n")?;
    Ok(print_problems(out, DIM, &notes, width)?)
}

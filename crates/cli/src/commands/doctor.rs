//! `rekindle doctor`: shows what the store's check found. Reads only, with or without a daemon.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::builder::styling::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rekindle_store::check::{self, Code, Finding, Place, Progress, Report, Severity};
use serde_json::json;

use super::Context;
use crate::commands::service::print_holders;
use crate::failure::{Exit, Failure};
use crate::logout::{Danger, danger};
use crate::output::{self, BAD, BOLD, DIM, GOOD, WARN, plural, styled, wrap};
use crate::sanitise;
use crate::unit::{Advice, FileState, Survey};

/// Check the home: every log, cache and blob, and say what to do about what is wrong
///
/// Reads everything and changes nothing. Logs are checked record by record, with what the write-ahead log
/// still has for them. Whether logging out would end agents, and where each of them lives, is told too. Exits 0 if nothing is lost (there may be
/// warnings and notes), 1 if something is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle doctor
  rekindle doctor --home /backup/rekindle
  rekindle doctor --json | jq '.findings[] | select(.severity == \"error\")'")]
pub(crate) struct Args {}

/// How long a check may take before its progress is shown.
const QUIET_FOR: Duration = Duration::from_secs(1);

/// Findings of one kind that are shown in full; JSON has the rest.
const MAX_SHOWN: usize = 8;

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let report = {
        let mut bar = Bar::new();
        check::check(context.disk(), &context.home, &mut |progress| bar.show(progress))?
    };
    let verdict = if report.is_healthy() { Exit::Ok } else { Exit::Failed };
    let printed = if context.json { print_json(context, &report) } else { print_text(context, &report) };
    match printed {
        // Whoever has seen enough of the findings still wants to know whether there are any.
        Err(failure) if failure.is_broken_pipe() => Ok(verdict),
        printed => printed.map(|()| verdict),
    }
}

/// A progress bar that shows itself late, and only to a person.
struct Bar {
    began: Instant,
    bar: Option<ProgressBar>,
    visible: bool,
}

impl Bar {
    fn new() -> Bar {
        Bar { began: Instant::now(), bar: None, visible: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: Progress) {
        if !self.visible || self.began.elapsed() < QUIET_FOR {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("checking {msg} {bar:30} {pos}/{len}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(progress.what);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn print_json(context: &Context, report: &Report) -> Result<(), Failure> {
    let mut out = output::stdout();
    let [errors, warnings, notes] = severities().map(|severity| report.count(severity));
    let mut text = json!({
        "home": context.home.to_string_lossy(),
        "healthy": report.is_healthy(),
        "errors": errors, "warnings": warnings, "notes": notes,
    });
    let survey = Survey::of(&context.home).ok();
    text["logout"] =
        json!(survey.as_ref().and_then(logout).map(|danger| {
            json!({"code": danger.code(), "what": danger.what(), "remedy": danger.remedy()})
        }));
    text["service"] = json!(survey.as_ref().map(Survey::to_json));
    let report = serde_json::to_value(report).map_err(|error| Failure::failed("output", error))?;
    if let (Some(text), serde_json::Value::Object(report)) = (text.as_object_mut(), report) {
        text.extend(report);
    }
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Returns what would end agents when someone logs out. It says nothing about the home, and is no finding.
fn logout(survey: &Survey) -> Option<Danger> {
    danger(&survey.facts)
}

/// Prints what would end agents, where they are, and what is wrong with the service: notes, not findings.
fn print_agents(out: &mut impl Write, survey: &Survey, width: usize) -> Result<(), Failure> {
    let danger = logout(survey).map(|danger| Advice {
        code: danger.code(),
        what: danger.what().to_owned(),
        remedy: danger.remedy().to_owned(),
    });
    // Whoever wants no service need not be told that there is none, nor twice that logging out ends agents.
    let told = |code: &str| danger.is_some() && matches!(code, "no_linger" | "ends_with_login");
    let mut notes = survey.advice();
    notes.retain(|note| survey.file != FileState::Missing && !told(note.code));
    let notes: Vec<Advice> = danger.clone().into_iter().chain(notes).collect();
    if notes.is_empty() && survey.daemon.is_none() && survey.holders.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", styled(DIM, "agents"))?;
    if let Some(pid) = survey.daemon {
        let cgroup = sanitise::line(&survey.facts.cgroup);
        let words = match (survey.is_daemon_ours(), cgroup.as_str()) {
            (true, _) => format!("process {pid}, that of {}", survey.unit),
            (false, "" | "/") => format!("process {pid}, of no service"),
            (false, cgroup) => format!("process {pid} in {cgroup}"),
        };
        writeln!(out, "{}", wrap(&words, width, "  daemon   ", "           "))?;
    }
    print_holders(out, survey, width)?;
    let yes = |yes: bool| if yes { "yes" } else { "no" };
    let (lingers, kills) = (yes(survey.facts.lingers), yes(survey.facts.kills_logins));
    writeln!(out, "  logins   linger: {lingers}, KillUserProcesses: {kills}\n")?;
    for note in notes {
        writeln!(out, "  {}", styled(DIM, note.code))?;
        writeln!(out, "{}", wrap(&sanitise::line(&note.what), width, "    ", "    "))?;
        writeln!(out, "{}\n", wrap(&sanitise::line(&note.remedy), width, "    → ", "      "))?;
    }
    Ok(())
}

fn severities() -> [Severity; 3] {
    [Severity::Error, Severity::Warning, Severity::Note]
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARN,
        Severity::Note => DIM,
    }
}

fn print_text(context: &Context, report: &Report) -> Result<(), Failure> {
    let mut out = output::stdout();
    let width = output::width();
    for severity in severities() {
        let count = report.count(severity);
        if count > 0 {
            writeln!(out, "{}\n", styled(style(severity), plural(count, severity.as_str())))?;
        }
        let of_severity: Vec<&Finding> =
            report.findings.iter().filter(|finding| finding.severity == severity).collect();
        for group in of_severity.chunk_by(|a, b| a.code == b.code) {
            print_group(&mut out, context, report, group, width)?;
        }
    }
    match Survey::of(&context.home) {
        Ok(survey) => print_agents(&mut out, &survey, width)?,
        Err(failure) => writeln!(out, "{}\n", styled(DIM, format!("agents: {}", failure.message())))?,
    }
    writeln!(out, "{}", summary(report))?;
    Ok(out.flush()?)
}

fn print_group(
    out: &mut impl Write,
    context: &Context,
    report: &Report,
    group: &[&Finding],
    width: usize,
) -> Result<(), Failure> {
    for finding in group.iter().take(MAX_SHOWN) {
        let code = styled(style(finding.severity), finding.code.as_str());
        let at = finding.at.map(place).unwrap_or_default();
        writeln!(out, "  {code}{at}")?;
        writeln!(out, "    {}", styled(BOLD, sanitise::line(&below(&context.home, &finding.path))))?;
        writeln!(out, "{}", wrap(&sanitise::line(&finding.what), width, "    ", "    "))?;
        writeln!(out, "{}\n", wrap(&sanitise::line(&finding.remedy), width, "    → ", "      "))?;
    }
    let count = group.first().and_then(|finding| report.kinds.get(&finding.code)).copied().unwrap_or(0);
    if let Some(more) = count.checked_sub(MAX_SHOWN as u64).filter(|more| *more > 0) {
        let code = group.first().map_or("", |finding| Code::as_str(finding.code));
        writeln!(out, "  {}\n", styled(DIM, format!("and {more} more of {code}; --json lists them")))?;
    }
    Ok(())
}

/// A path as short as it can be: what is in the home is named from there.
fn below(home: &Path, path: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(inner) if !inner.as_os_str().is_empty() => inner.display().to_string(),
        _ => path.display().to_string(),
    }
}

fn place(place: Place) -> String {
    let named = [("byte", place.byte), ("line", place.line), ("record", place.seq)];
    let named = named.iter().filter_map(|(word, number)| number.map(|number| format!("{word} {number}")));
    let named: Vec<String> = named.collect();
    if named.is_empty() { String::new() } else { format!(" at {}", named.join(", ")) }
}

fn summary(report: &Report) -> String {
    let counts = report.counts;
    let mut text = format!(
        "{}, {}, {}, {}: ",
        plural(counts.sessions, "session"),
        plural(counts.records, "record"),
        output::size(counts.bytes),
        plural(counts.blobs, "blob")
    );
    let found: Vec<String> = severities()
        .into_iter()
        .filter_map(|severity| {
            let count = report.count(severity);
            (count > 0).then(|| plural(count, severity.as_str()))
        })
        .collect();
    if report.is_healthy() {
        text.push_str(&styled(GOOD, "healthy"));
        if !found.is_empty() {
            text.push_str(&format!(" ({})", found.join(", ")));
        }
    } else {
        text.push_str(&styled(BAD, found.join(", ")));
    }
    text
}

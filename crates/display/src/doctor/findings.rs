//! Findings as people and programs see them.

use std::io::Write;
use std::path::Path;

use anstyle::Style;
use rekindle_client::failure::Failure;
use rekindle_store::check::{Code, Finding, Place, Report, Severity};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, WARN, plural, styled, wrap};
use rekindle_terminal::sanitise;
use serde_json::{Value, json};

use super::remedy::{advice, remedy};

/// Findings of one kind that are shown in full; JSON has the rest. Of notes, about which nothing need be done, one says it all.
const MAX_SHOWN: usize = 8;
const NOTES_SHOWN: usize = 1;

/// Returns a report as an object, each finding with what to do about it.
pub fn to_json(home: &Path, report: &Report) -> Value {
    let mut text = counts(report);
    text["home"] = json!(home.to_string_lossy());
    let findings =
        report.findings.iter().map(|finding| Finding { remedy: remedy(finding), ..finding.clone() });
    let mut report = json!(report);
    report["findings"] = json!(findings.collect::<Vec<_>>());
    if let (Some(text), Value::Object(report)) = (text.as_object_mut(), report) {
        text.extend(report);
    }
    text
}

/// Returns how many findings there are of each severity, as an object.
pub fn counts(report: &Report) -> Value {
    let [errors, warnings, notes] = SEVERITIES.map(|severity| report.count(severity));
    json!({"healthy": report.is_healthy(), "errors": errors, "warnings": warnings, "notes": notes})
}

/// Worst first.
const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARN,
        Severity::Note => DIM,
    }
}

/// What is found of a home in everyday use, and is nothing that a person need read of one that is healthy: JSON has it.
const EVERYDAY: [Code; 2] = [Code::HomeInUse, Code::IndexMissing];

fn is_everyday(report: &Report, code: Code) -> bool {
    report.is_healthy() && EVERYDAY.contains(&code)
}

/// Counts the findings of a severity that are shown.
fn shown_count(report: &Report, severity: Severity) -> u64 {
    let everyday = EVERYDAY.iter().filter(|code| severity == Severity::Note && is_everyday(report, **code));
    let hidden: u64 = everyday.filter_map(|code| report.kinds.get(code)).sum();
    report.count(severity).saturating_sub(hidden)
}

/// Shows the findings, worst first.
pub fn print_findings(out: &mut dyn Write, home: &Path, report: &Report) -> Result<(), Failure> {
    let width = output::width();
    for severity in SEVERITIES {
        let count = shown_count(report, severity);
        if count > 0 {
            writeln!(out, "{}\n", styled(style(severity), plural(count, severity.as_str())))?;
        }
        let of_severity: Vec<&Finding> = report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity && !is_everyday(report, finding.code))
            .collect();
        for group in of_severity.chunk_by(|a, b| a.code == b.code) {
            print_group(out, home, report, group, width)?;
        }
    }
    Ok(())
}

fn print_group(
    out: &mut dyn Write,
    home: &Path,
    report: &Report,
    group: &[&Finding],
    width: usize,
) -> Result<(), Failure> {
    let shown = match group.first().map(|finding| finding.severity) {
        Some(Severity::Note) => NOTES_SHOWN,
        _ => MAX_SHOWN,
    };
    for finding in group.iter().take(shown) {
        let code = styled(style(finding.severity), finding.code.as_str());
        let at = finding.at.map(place).unwrap_or_default();
        writeln!(out, "  {code}{at}")?;
        writeln!(out, "    {}", styled(BOLD, sanitise::line(&below(home, &finding.path))))?;
        writeln!(out, "{}", wrap(&sanitise::line(&finding.what), width, "    ", "    "))?;
        writeln!(out, "{}\n", wrap(&sanitise::line(&advice(finding)), width, "    → ", "      "))?;
    }
    let count = group.first().and_then(|finding| report.kinds.get(&finding.code)).copied().unwrap_or(0);
    if let Some(more) = count.checked_sub(shown as u64).filter(|more| *more > 0) {
        let code = group.first().map_or("", |finding| Code::as_str(finding.code));
        writeln!(out, "  {}\n", styled(DIM, format!("and {more} more of {code}; --json lists them")))?;
    }
    Ok(())
}

/// A path as short as it can be: what is in the home is named from there.
pub fn below(home: &Path, path: &Path) -> String {
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

/// Returns a report in one line: what there is, and how much is wrong with it.
pub fn summary(report: &Report) -> String {
    let counts = report.counts;
    let mut text = format!(
        "{}, {}, {}, {}: ",
        plural(counts.sessions, "session"),
        plural(counts.records, "record"),
        output::size(counts.bytes),
        plural(counts.blobs, "blob")
    );
    let found: Vec<String> = SEVERITIES
        .into_iter()
        .filter_map(|severity| {
            let count = shown_count(report, severity);
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

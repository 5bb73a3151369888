//! Looking at what is left on the ground, without a daemon in between: logs, and whether the home is whole. And the scripted
//! agent that works there.

use std::path::Path;
use std::sync::Arc;

use rekindle_client::failure::Failure;
use rekindle_domain::id::SessionId;
use rekindle_store::check::{Holding, Severity, check};
use rekindle_store::disk::RealDisk;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use rekindle_terminal::output::plural;

/// Returns the command of the scripted agent, which writes down everything that it is told.
pub(crate) fn agent(state: &Path, record: &Path, more: &[&str]) -> Result<Vec<String>, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::failed("executable", error))?;
    let path = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Failure::failed("path", anyhow::anyhow!("{} is no text", path.display())))
    };
    let mut command = vec![path(&own)?, "demo-agent".into(), "--state".into(), path(state)?];
    command.extend(["--record".into(), path(record)?, "--carry-on".into()]);
    command.extend(more.iter().map(|word| (*word).to_owned()));
    Ok(command)
}

/// Reads a log from the disk, line by line.
pub(crate) fn lines(home: &Path, session: &str) -> Result<Vec<String>, Failure> {
    let unreadable = |error: anyhow::Error| Failure::failed("session_unreadable", error);
    let session: SessionId = session.parse().map_err(|error| unreadable(anyhow::anyhow!("{error}")))?;
    let offline = Offline::open(Arc::new(RealDisk), home)?;
    let reader = offline.reader(session).map_err(|error| unreadable(error.into()))?;
    let (mut forward, mut lines) = (reader.forward(Cursor::START), Vec::new());
    while let Some(line) = forward.next().map_err(|error| unreadable(error.into()))? {
        lines.push(String::from_utf8_lossy(line.bytes).into_owned());
    }
    Ok(lines)
}

/// Checks a home as `rekindle doctor` does, every log record by record with its hash: says how much is whole, or what is
/// wrong.
pub(crate) fn doctor(home: &Path) -> Result<Result<String, String>, Failure> {
    let report = check(Arc::new(RealDisk), home, Holding::Nothing, &mut |_| {})?;
    let found = plural(report.counts.records, "record");
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| report.count(severity));
    let bad = format!("doctor: {}, {}", plural(errors, "error"), plural(warnings, "warning"));
    let whole = report.is_healthy() && warnings == 0;
    if whole {
        return Ok(Ok(format!("doctor: {found}, nothing wrong")));
    }
    let first = report.findings.first().map(|found| format!("; {}: {}", found.path.display(), found.what));
    Ok(Err(bad + &first.unwrap_or_default()))
}

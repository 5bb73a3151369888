//! The ledger of a run as a daemon tells it: page by page.

use rekindle_client::{Client, Failure};
use rekindle_domain::event::{Event, ProjectConfig};
use rekindle_domain::line::Line;
use rekindle_wire::view::LogPage;

use super::run_arg::path;

/// Records fetched at a time.
const PAGE: u64 = 500;

/// Hands on each record behind one.
pub(super) fn each_record(
    client: &Client,
    run: &str,
    mut after: u64,
    mut take: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let page: LogPage = client.get(&format!("{}/ledger?after={after}&limit={PAGE}", path(run)))?;
        for record in &page.records {
            take(record.get())?;
        }
        if let Some(damage) = &page.damage {
            return Err(Failure::damaged(run, format_args!("byte {}", damage.offset), &damage.detail));
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => return Ok(()),
        }
    }
}

/// Returns the configuration that a run was started with.
pub(super) fn started_config(client: &Client, run: &str) -> Result<Option<ProjectConfig>, Failure> {
    let page: LogPage = client.get(&format!("{}/ledger?after=0&limit=1", path(run)))?;
    let Some(first) = page.records.first() else { return Ok(None) };
    let line = Line::parse(first.get().as_bytes());
    Ok(match line.ok().and_then(|line| line.event().ok()) {
        Some(Event::PipelineStarted(started)) => Some(*started.config),
        _ => None,
    })
}

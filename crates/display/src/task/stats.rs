//! How tasks stand, and what came of those that ended in the last day.

use std::collections::BTreeMap;
use std::io::Write;

use rekindle_client::failure::Failure;
use rekindle_domain::event::TaskStatus;
use rekindle_terminal::output::{BOLD, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::TaskStatsView;

use super::table::status_word;

/// Writes how many tasks there are by status and agent, and what those of the last day took.
pub fn write_stats(out: &mut dyn Write, stats: &TaskStatsView) -> Result<(), Failure> {
    let all = plural(stats.statuses.values().sum(), "task");
    writeln!(out, "{}: {}", styled(BOLD, all), counted(&stats.statuses))?;
    for (agent, counts) in &stats.agents {
        writeln!(out, "  {}: {}", sanitise::line(agent), counted(counts))?;
    }
    writeln!(out, "in the last 24 hours: {}", counted(&stats.day.ended))?;
    if let (Some(median), Some(most)) = (stats.day.median_ms, stats.day.p90_ms) {
        writeln!(
            out,
            "  half of them took less than {}, nine of ten less than {}",
            time(median),
            time(most)
        )?;
    }
    let day = &stats.day;
    let tokens = day.tokens.map(|tokens| format!("{tokens} tokens"));
    let cost = day.cost.map(|cost| format!("cost {cost:.2}"));
    let used: Vec<String> = tokens.into_iter().chain(cost).collect();
    if !used.is_empty() {
        writeln!(out, "  used: {}", used.join(", "))?;
    }
    if day.interruptions + day.adoptions > 0 {
        let (cut, adopted) = (plural(day.interruptions, "interruption"), plural(day.adoptions, "adoption"));
        writeln!(out, "  {cut}, {adopted}")?;
    }
    if !day.verdicts.is_empty() {
        let each = day.verdicts.iter().map(|(verdict, count)| format!("{count} {}", sanitise::line(verdict)));
        writeln!(out, "  sessions brought back: {}", each.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

fn counted(counts: &BTreeMap<TaskStatus, u64>) -> String {
    let each: Vec<String> =
        counts.iter().map(|(status, count)| format!("{count} {}", status_word(*status))).collect();
    if each.is_empty() { "none".into() } else { each.join(", ") }
}

/// Writes a length of time in one unit.
fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

//! `rekindle notify log`: what was delivered lately and what was not, and what waits. Read from the home, with or without a daemon.

use std::io::Write;

use clap::builder::styling::Style;
use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_notify::outbox::{Next, Outbox, Outcome, Queue, Told};
use rekindle_service::notifications::read_outbox;
use rekindle_store::layout::Layout;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN, styled};
use rekindle_terminal::sanitise;
use serde_json::json;

use super::{Context, fitting_table};

/// Show what was delivered and what was not, and what waits
///
/// The last 1,000 deliveries are kept. What is told again after a crash has the same event.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle notify log
  rekindle notify log -n 100
  rekindle notify log --json |
    jq -r '.deliveries[] | select(.outcome != \"delivered\")'")]
pub(super) struct Args {
    /// Show this many deliveries
    #[arg(short = 'n', value_name = "COUNT", default_value_t = 20)]
    count: usize,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let outbox = read_outbox(&*context.disk(), &Layout::new(&context.home).outbox()).map_err(|error| {
        Failure::failed("outbox_unreadable", error).hint("rekindle doctor checks the home")
    })?;
    let now = SystemClock.now();
    let mut shown: Vec<&Told> = outbox.recent().rev().take(args.count).collect();
    shown.reverse();
    let waiting = |(sink, queue): (&str, &Queue)| json!({"sink": sink, "waiting": queue.len(), "since": queue.oldest(), "next": rests_until(queue, now), "why": queue.why()});
    let queues: Vec<_> = outbox.queues().filter(|(_, queue)| !queue.is_empty()).map(waiting).collect();
    if !queues.is_empty() && context.daemon()?.is_none() {
        eprintln!("no daemon is running: the next one sends what is waiting");
    }
    context
        .print(&json!({"deliveries": shown, "waiting": queues}), |out| Ok(text(out, &shown, &outbox, now)?))
}

fn text(out: &mut dyn Write, shown: &[&Told], outbox: &Outbox, now: Timestamp) -> std::io::Result<()> {
    let rows: Vec<_> = shown.iter().map(|told| row(told, now)).collect();
    for line in fitting_table(rows) {
        writeln!(out, "{}", line.trim_end())?;
    }
    for (sink, queue) in outbox.queues().filter(|(_, queue)| !queue.is_empty()) {
        let since = queue.oldest().map(|oldest| output::ago(oldest, now)).unwrap_or_default();
        let why = queue.why().map(|why| format!("; {}", sanitise::line(why))).unwrap_or_default();
        let count = output::plural(queue.len(), "notification");
        let next = rests_until(queue, now)
            .map(|until| format!("; sent {}", in_time(until, now)))
            .unwrap_or_default();
        let waits = format!("waiting for {sink}: {count}, the first since {since}{next}{why}");
        writeln!(out, "{}", styled(WARN, output::cut(&waits, output::width())))?;
    }
    if shown.is_empty() && outbox.as_of().is_none() {
        writeln!(out, "no notification was ever sent: add a sink in [notify.sinks.NAME] of config.toml")?;
    } else if shown.is_empty() {
        writeln!(out, "nothing was delivered yet")?;
    }
    Ok(())
}

/// Returns when something is sent next, if not at once: after a failure, in quiet hours, beyond the rate.
fn rests_until(queue: &Queue, now: Timestamp) -> Option<Timestamp> {
    match queue.next(now) {
        Next::Rest(until) => Some(until),
        Next::Notice(_) | Next::Summary(_) | Next::Idle => None,
    }
}

fn in_time(then: Timestamp, now: Timestamp) -> String {
    match then.millis_since(now).div_ceil(1000) {
        seconds @ 0..120 => format!("in {seconds} s"),
        seconds @ 120..7200 => format!("in {} min", seconds / 60),
        seconds => format!("in {} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn row(told: &Told, now: Timestamp) -> Vec<(Style, String)> {
    let outcome = match told.outcome {
        Outcome::Delivered => (GOOD, "delivered"),
        Outcome::Refused => (BAD, "refused"),
        Outcome::GivenUp => (BAD, "given up"),
        Outcome::Outdated => (DIM, "outdated"),
    };
    let kind = told.kind.map_or("summary", |kind| kind.name());
    let why = told.why.as_deref().map(|why| format!(": {}", sanitise::line(why))).unwrap_or_default();
    vec![
        (DIM, output::ago(told.at, now)),
        (BOLD, told.sink.clone()),
        (outcome.0, outcome.1.to_owned()),
        (PLAIN, kind.to_owned()),
        (PLAIN, format!("{}{why}", sanitise::line(&told.title))),
    ]
}

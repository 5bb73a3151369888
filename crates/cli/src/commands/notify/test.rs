//! `rekindle notify test`: a message through each sink, at once and whatever the filters say.

use std::io::Write;
use std::time::{Duration, Instant};

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_notify::{Delivery, Message, Notice, NoticeKind, Sink};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN};
use rekindle_terminal::sanitise;
use serde_json::json;

use super::{Context, sinks};

/// Send a message through each sink, and say what came of it
///
/// Filters, quiet hours and limits do not count, and nothing is repeated. Exits with 1 if a sink did not take it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle notify test
  rekindle notify test --sink phone")]
pub(super) struct Args {
    /// Only this one
    #[arg(long, value_name = "NAME")]
    sink: Option<String>,
}

/// What came of one sink.
struct Tried<'a> {
    sink: &'a Sink,
    delivery: Delivery,
    took: Duration,
}

impl Tried<'_> {
    fn why(&self) -> Option<&str> {
        match &self.delivery {
            Delivery::Delivered => None,
            Delivery::Retry { why, .. } | Delivery::Refused { why } => Some(why),
        }
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let sinks = sinks()?.sinks;
    let chosen: Vec<&Sink> = match &args.sink {
        None => sinks.iter().collect(),
        Some(name) => vec![find(&sinks, name)?],
    };
    if chosen.is_empty() {
        return Err(Failure::usage(
            "no_sinks",
            "no sink is configured that a message could be sent through".into(),
        )
        .hint("write [notify.sinks.NAME] into config.toml, with type, and url or command"));
    }
    let (now, mut all_taken) = (SystemClock.now(), true);
    let message = Message::Notice(test_notice(now));
    let mut out = output::stdout();
    // A sink takes up to ten seconds; whoever waits sees which one it is.
    for sink in chosen {
        let begin = Instant::now();
        let delivery = sink.deliver(&message, &[], now);
        let tried = Tried { sink, delivery, took: begin.elapsed() };
        all_taken &= tried.why().is_none();
        show(&mut out, context.json, &tried)?;
        out.flush()?;
    }
    Ok(if all_taken { Exit::Ok } else { Exit::Failed })
}

fn find<'a>(sinks: &'a [Sink], name: &str) -> Result<&'a Sink, Failure> {
    sinks.iter().find(|sink| sink.name() == name).ok_or_else(|| {
        let names: Vec<&str> = sinks.iter().map(Sink::name).collect();
        let hint = match names.is_empty() {
            true => "no sink is configured".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        Failure::usage(
            "sink_unknown",
            format!("there is no sink {name:?} that a message could be sent through"),
        )
        .hint(hint)
    })
}

fn show(out: &mut dyn Write, as_json: bool, tried: &Tried<'_>) -> std::io::Result<()> {
    let (name, millis) = (tried.sink.name(), tried.took.as_millis());
    if as_json {
        let delivered = tried.why().is_none();
        return writeln!(
            out,
            "{}",
            json!({"sink": name, "delivered": delivered, "why": tried.why(), "took_ms": millis})
        );
    }
    let outcome = match tried.why() {
        None => (GOOD, "delivered".to_owned()),
        Some(why) => (BAD, format!("not delivered: {}", sanitise::line(why))),
    };
    let row =
        vec![(BOLD, name.to_owned()), (PLAIN, tried.sink.describe()), outcome, (DIM, format!("{millis} ms"))];
    output::table(&[row]).0.iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// Returns a notice that says that it is a test.
fn test_notice(now: Timestamp) -> Notice {
    Notice {
        event_id: format!("test.{}", now.as_millis()),
        kind: NoticeKind::Completed,
        at: now,
        session_id: None,
        run_id: None,
        task_id: None,
        title: "a test: notifications of rekindle arrive here".into(),
        agent: None,
        directory: None,
        reason: None,
        question: None,
        last_words: None,
    }
}

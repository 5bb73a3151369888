//! `rekindle notify test`: a message through each sink, at once and whatever the filters say. The daemon sends it if one runs, since it is
//! the one that will tell: with its variables, and the sinks that it has read.

use std::io::Write;
use std::time::Instant;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::{Client, read};
use rekindle_display::hints::ours;
use rekindle_domain::time::Clock;
use rekindle_notify::{Message, Sink, Sinks};
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN};
use rekindle_terminal::sanitise;
use rekindle_wire::request::TestSink;
use rekindle_wire::view::SinkTested;
use serde_json::json;

use super::{Context, sinks};

/// Send a message through each sink, and say what came of it
///
/// Filters, quiet hours and limits do not count, and nothing is repeated. The daemon sends it if one runs, else this command does, with
/// its own variables. Exits with 1 if a sink did not take it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle notify test
  rekindle notify test --sink phone")]
pub(super) struct Args {
    /// Only this one
    #[arg(long, value_name = "NAME")]
    sink: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let sinks = sinks()?;
    let chosen: Vec<&Sink> = match &args.sink {
        None => sinks.sinks.iter().collect(),
        Some(name) => vec![find(&sinks, name)?],
    };
    if chosen.is_empty() {
        return Err(Failure::usage("no_sinks", "no sink is configured that can send a message".into())
            .hint("add [notify.sinks.NAME] to config.toml, with type, and url or command"));
    }
    let daemon = context.daemon()?;
    if daemon.is_none() {
        eprintln!("no daemon is running: sent from here, with the variables of this shell");
    }
    let mut all_taken = true;
    let mut out = output::stdout();
    // A sink takes up to ten seconds; whoever waits sees which one it is.
    for sink in chosen {
        let tested = match &daemon {
            Some(daemon) => by_daemon(daemon, sink)?,
            None => from_here(sink),
        };
        all_taken &= tested.delivered;
        show(&mut out, context.json, sink, &tested)?;
        out.flush()?;
    }
    Ok(if all_taken { Exit::Ok } else { Exit::Failed })
}

/// Has the daemon send it. That it does not have the sink yet is an outcome like others.
fn by_daemon(daemon: &Client, sink: &Sink) -> Result<SinkTested, Failure> {
    let name = sink.name();
    match daemon.post_patiently("/api/notify/test", &TestSink { sink: name.to_owned() }) {
        Ok(answer) => read(&answer),
        Err(failure) if failure.code() == "sink_unknown" => {
            let why = format!("the daemon has not read it yet: run {}", ours("restart"));
            Ok(SinkTested { sink: name.to_owned(), delivered: false, why: Some(why), took_ms: 0 })
        }
        Err(failure) => Err(failure),
    }
}

fn from_here(sink: &Sink) -> SinkTested {
    let (begin, now) = (Instant::now(), SystemClock.now());
    let why = sink.deliver(&Message::test(now), &[], now).into_why();
    let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    SinkTested { sink: sink.name().to_owned(), delivered: why.is_none(), why, took_ms }
}

fn find<'a>(sinks: &'a Sinks, name: &str) -> Result<&'a Sink, Failure> {
    sinks.sinks.iter().find(|sink| sink.name() == name).ok_or_else(|| {
        if sinks.bells.iter().any(|bell| bell.name() == name) {
            let message = format!("{name} is a bell, which rings in a terminal that watches");
            return Failure::usage("sink_is_bell", message)
                .hint(format!("watch with {}", ours("ps --watch")));
        }
        let names: Vec<&str> = sinks.sinks.iter().map(Sink::name).collect();
        let hint = match names.is_empty() {
            true => "no sink is configured".to_owned(),
            false => format!("there are {}", names.join(", ")),
        };
        Failure::usage("sink_unknown", format!("there is no sink {name:?} that can send a message"))
            .hint(hint)
    })
}

fn show(out: &mut dyn Write, as_json: bool, sink: &Sink, tested: &SinkTested) -> std::io::Result<()> {
    if as_json {
        return writeln!(out, "{}", json!(tested));
    }
    let outcome = match &tested.why {
        None => (GOOD, "delivered".to_owned()),
        Some(why) => (BAD, format!("not delivered: {}", sanitise::line(why))),
    };
    let took = (DIM, format!("{} ms", tested.took_ms));
    let row = vec![(BOLD, tested.sink.clone()), (PLAIN, sink.describe()), outcome, took];
    output::table(&[row]).0.iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

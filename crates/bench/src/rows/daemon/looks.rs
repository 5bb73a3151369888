//! Looking at a daemon that knows ten thousand sessions: the first page of their list, and the page of metrics. Some of the
//! sessions have an agent in the middle of a turn, so that there is something to look at.

use anyhow::ensure;
use rekindle_lab::Connection;

use crate::chatter;
use crate::context::{Context, progress};
use crate::lab::Lab;
use crate::measure::Latencies;
use crate::table::{Row, Target, Unit};

/// In milliseconds.
const LIST: f64 = 10.0;
const METRICS: f64 = 5.0;

/// How many agents work.
const LIVE: usize = 50;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (known, times) = context.pick((10_000, 200), (10_000, 40));
    let mut lab = Lab::with_sessions(context, known)?;
    lab.start()?;
    let mut link = lab.link()?;
    for _ in 0..LIVE {
        lab.session(&mut link, Some(chatter::HOLD))?;
    }
    progress(&format!("looking {times} times at {known} sessions"));
    let list = often(&mut link, "/api/sessions", times)?;
    // Every one has to be looked at before it is clear that there is none.
    let none = often(&mut link, "/api/sessions?status=waiting&q=no%20title%20has%20this", times)?;
    let metrics = often(&mut link, "/metrics", times)?;
    let page = link.ask("GET", "/metrics", "", "")?.expect(200)?;
    ensure!(
        String::from_utf8_lossy(&page.body).contains("rekindle_sessions{"),
        "the page counts no sessions"
    );
    let row = |what: String, value, most| Row::alone(what, Unit::Millis, value, Target::AtMost(most));
    Ok(vec![
        row(format!("list of {known} sessions, first page, p50"), list.percentile(0.5) / 1000.0, LIST),
        row("… p99".into(), list.percentile(0.99) / 1000.0, LIST),
        row("… of those that a filter asks for, none, p50".into(), none.percentile(0.5) / 1000.0, LIST),
        row(
            format!("/metrics, {known} sessions, {LIVE} agents, p50"),
            metrics.percentile(0.5) / 1000.0,
            METRICS,
        ),
        row("… p99".into(), metrics.percentile(0.99) / 1000.0, METRICS),
        Row::alone("… size of the page", Unit::Bytes, page.body.len() as f64, Target::None),
    ])
}

fn often(link: &mut Connection, path: &str, times: usize) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::default();
    // The first look may be at what has grown since the start.
    link.ask("GET", path, "", "")?.expect(200)?;
    for _ in 0..times {
        latencies.time(|| link.ask("GET", path, "", ""))?.expect(200)?;
    }
    Ok(latencies)
}

//! The end of a turn, from its record to a webhook on this machine that has taken it.

use std::time::Duration;

use anyhow::Context as _;
use rekindle_domain::time::Timestamp;

use super::hook::Hook;
use crate::chatter;
use crate::context::{Context, progress};
use crate::lab::{Lab, message};
use crate::measure::Latencies;
use crate::table::{Row, Target, Unit};

/// What it may take, in milliseconds.
const MOST: f64 = 20.0;

/// How long a request is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let turns = context.pick(200, 50);
    let hook = Hook::start(false)?;
    let mut lab = Lab::without_daemon(context)?;
    lab.configure(&hook.config())?;
    lab.start()?;
    let mut link = lab.link()?;
    let (session, mut ear) = lab.warm_session(&mut link)?;
    hook.came.recv_timeout(PATIENCE).context("nothing is told")?;
    let request = message(&session, &chatter::say(1, Duration::ZERO));
    progress(&format!("measuring webhooks, {turns} turns"));
    let mut latencies = Latencies::default();
    for _ in 0..turns {
        link.send(request.as_bytes())?;
        ear.turn(|_, _| Ok(()))?;
        link.receive()?.expect(202)?;
        let came = hook.came.recv_timeout(PATIENCE).context("nothing is told")?;
        let at: Timestamp =
            came.body["at"].as_str().context("a notice has a time")?.parse().context("that is no time")?;
        latencies.note(came.at.millis_since(at) as f64);
    }
    let row =
        |what: &str, share: f64, target| Row::alone(what, Unit::Millis, latencies.percentile(share), target);
    Ok(vec![
        row("the end of a turn to a webhook that has it", 0.5, Target::AtMost(MOST)),
        row("… one in a hundred takes longer", 0.99, Target::None),
    ])
}

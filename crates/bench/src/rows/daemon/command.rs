//! A command of the command line while a daemon runs: from exec to its end. Raw: `true`, which is what any process takes.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::context::Context;
use crate::lab::{Lab, text};
use crate::measure::{Latencies, interleave};
use crate::table::{Row, Target, Unit};

/// What a command may take, in milliseconds: below this nobody sees it.
const AT_MOST: f64 = 10.0;

const SESSIONS: usize = 50;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (times, rounds) = context.pick((20, 11), (10, 5));
    let mut lab = Lab::with_sessions(context, SESSIONS)?;
    lab.start()?;
    let listed = lab.link()?.get("/api/sessions?limit=1")?;
    let session = text(listed["sessions"].get(0).context("there are no sessions")?, "id")?;
    let mut rows = Vec::new();
    for (name, arguments) in
        [("rekindle ps --json", &["ps", "--all", "--json"][..]), ("rekindle status", &["status", session])]
    {
        let what = format!("`{name}`, a daemon with {SESSIONS} sessions");
        let raw = || run_often(&mut Command::new("true"), times);
        let [time] = interleave(&what, rounds, raw, || run_often(&mut lab.rekindle(arguments)?, times))?;
        rows.push(Row::compared(what, Unit::Millis, &time, Target::AtMost(AT_MOST)));
    }
    Ok(rows)
}

fn run_often(command: &mut Command, times: usize) -> anyhow::Result<[f64; 1]> {
    let mut latencies = Latencies::default();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    for _ in 0..times {
        let ended = latencies.time(|| command.status())?;
        ensure!(ended.success(), "{command:?}: {ended}");
    }
    Ok([latencies.percentile(0.5) / 1000.0])
}

//! A thousand events a second, to a target that never answers: what that costs the daemon in memory, and those who append in time. Raw: the
//! same daemon that tells nobody.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_lab::Connection;
use serde_json::json;

use super::hook::Hook;
use crate::actors;
use crate::context::Context;
use crate::home::WallClock;
use crate::lab::Lab;
use crate::measure::{Rounds, interleave, rate};
use crate::proc;
use crate::table::{Row, Target, Unit};

const MIB: f64 = (1 << 20) as f64;

/// What a slow target may cost in memory.
const MORE: f64 = 5.0 * MIB;

/// What is left of the speed of appends, at least.
const SPEED: f64 = 0.97;

/// Events of one second.
const EVENTS: i64 = 1_000;

/// How long before the first of them they are asked for, and how long after the last everything has settled, in milliseconds.
const BEFORE: i64 = 500;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (rounds, appends) = context.pick((15, 300), (5, 100));
    let hook = Hook::start(true)?;
    let mut telling = Lab::without_daemon(context)?;
    telling.configure(&hook.config())?;
    telling.start()?;
    let silent = Lab::new(context)?;
    let what = "a thousand events a second to a slow target";
    let [speed] = interleave(what, rounds, || second(&silent, appends), || second(&telling, appends))?;
    let [raw, ours] = [&silent, &telling].map(|lab| anyhow::Ok(proc::memory(lab.id()?)?[0]));
    let memory = Rounds { raw: vec![raw?], ours: vec![ours?] };
    Ok(vec![
        Row::compared(
            "appends beside 1,000 events a second",
            Unit::PerSecond,
            &speed,
            Target::RatioAtLeast(SPEED),
        ),
        Row::compared("memory of the daemon after that", Unit::Bytes, &memory, Target::MoreAtMost(MORE)),
    ])
}

/// Has a thousand tasks fail, one each millisecond, and appends meanwhile; returns how many appends a second that is.
fn second(lab: &Lab, appends: usize) -> anyhow::Result<[f64; 1]> {
    let mut link = lab.link()?;
    let first = WallClock.now().plus_millis(BEFORE);
    fail_tasks(lab, &mut link, first)?;
    sleep_until(first);
    let appending = Instant::now();
    for _ in 0..appends {
        lab.session(&mut link, None)?;
    }
    let rate = rate(appends, appending.elapsed());
    sleep_until(first.plus_millis(EVENTS + BEFORE));
    Ok([rate])
}

/// Asks for tasks that fail one after the other, because it is too late for them.
fn fail_tasks(lab: &Lab, link: &mut Connection, first: Timestamp) -> anyhow::Result<()> {
    let agent = json!({"profile": "acp", "command": actors::chatter_command()?});
    let tomorrow = first.plus_millis(24 * 60 * 60 * 1000);
    let work = lab.home().parent().context("a home is somewhere")?.join("work");
    let task = |n: i64| {
        let (prompt, deadline) = (format!("task {n}"), first.plus_millis(n));
        json!({"working_dir": work, "agent": agent, "prompt": prompt, "not_before": tomorrow, "deadline_at": deadline})
    };
    let body = json!({"tasks": (0..EVENTS).map(task).collect::<Vec<_>>()});
    link.ask("POST", "/api/tasks", "", &body.to_string())?.expect(201)?;
    Ok(())
}

fn sleep_until(time: Timestamp) {
    std::thread::sleep(Duration::from_millis(time.millis_since(WallClock.now())));
}

//! A daemon in a home where a million tasks have ended within the time that rows are kept: how long it takes to say something of
//! them, and what it takes in memory beside one in an empty home.

use std::time::Duration;

use anyhow::Context as _;
use rekindle_lab::Connection;
use rekindle_service::task_rows::catch_up;
use rekindle_store::layout::Layout;
use rekindle_taskdb::project::Owner;
use rekindle_taskdb::{Sqlite, TaskDb};

use crate::context::{Context, progress};
use crate::lab::Lab;
use crate::measure::{Latencies, Rounds};
use crate::proc;
use crate::table::{Row, Target, Unit};
use crate::task_records::fill;

/// Days over which they ended: as long as their rows are kept.
const DAYS: i64 = 90;

/// Tasks that have not ended.
const OPEN: usize = 100;

/// Milliseconds of an answer.
const AT_MOST: f64 = 10.0;

/// How much more memory.
const MORE: f64 = 10.0 * (1 << 20) as f64;

/// After its start nothing happens any more.
const SETTLED: Duration = Duration::from_secs(1);

/// Statistics are given again as they were for so long.
const STATS_FOR: Duration = Duration::from_millis(2_100);

/// What is asked, and whether it has to be quick.
const QUESTIONS: [(&str, &str, bool); 5] = [
    ("first page of a list", "/api/tasks", true),
    ("… of those that failed", "/api/tasks?status=failed", true),
    ("… with words that no title has", "/api/tasks?q=nowhere", false),
    ("those that have not ended", "/api/tasks/active", true),
    ("statistics", "/api/tasks/stats", true),
];

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (count, rounds) = context.pick((1_000_000, 5), (100_000, 3));
    let mut empty = Lab::without_daemon(context)?;
    let mut full = Lab::without_daemon(context)?;
    make(&full, count)?;
    progress(&format!("measuring a daemon with {count} tasks that have ended, {rounds} rounds"));
    let mut figures: [Vec<f64>; QUESTIONS.len()] = Default::default();
    let mut memory: [Rounds; 2] = Default::default();
    for _ in 0..rounds {
        let before = start(&mut empty)?;
        ask(&empty, context.quick)?;
        let asked = resident(&empty)?;
        empty.leave()?;
        memory.iter_mut().zip([before, asked]).for_each(|(memory, figure)| memory.raw.push(figure));

        let before = start(&mut full)?;
        let times = ask(&full, context.quick)?;
        let asked = resident(&full)?;
        full.leave()?;
        memory.iter_mut().zip([before, asked]).for_each(|(memory, figure)| memory.ours.push(figure));
        figures.iter_mut().zip(times).for_each(|(figures, time)| figures.push(time));
    }
    let questions = QUESTIONS.iter().zip(&figures).map(|((what, _, goal), figures)| {
        let target = if *goal { Target::AtMost(AT_MOST) } else { Target::None };
        Row::alone(format!("{count} tasks: {what}"), Unit::Millis, figures.as_slice(), target)
    });
    let [before, asked] = &memory;
    let what = format!("memory of a daemon, {count} ended tasks beside none, resident");
    let memory = [
        Row::compared(what, Unit::Bytes, before, Target::MoreAtMost(MORE)),
        Row::compared("… after these questions", Unit::Bytes, asked, Target::MoreAtMost(MORE)),
    ];
    Ok(questions.chain(memory).collect())
}

/// Fills the home, and the database with it: a daemon that has been there all the time would have.
fn make(lab: &Lab, count: usize) -> anyhow::Result<()> {
    progress(&format!("making {count} tasks that have ended"));
    let store = fill(&lab.home(), count, DAYS)?;
    progress("making rows of them");
    let sqlite = Sqlite::open(&Layout::new(lab.home()).tasks_database())?;
    let host = "machine".to_owned();
    let owner = Owner { home_id: store.home_id().to_string(), host };
    catch_up(&store, &owner, &mut TaskDb::open(Box::new(sqlite))?).context("rows cannot be made")
}

/// Starts a daemon and gives it some tasks that wait; returns what it takes in memory.
fn start(lab: &mut Lab) -> anyhow::Result<f64> {
    lab.start()?;
    let mut link = lab.link()?;
    if link.get("/api/tasks/active")?["tasks"].as_array().is_none_or(Vec::is_empty) {
        lab.queue_tasks(&mut link, OPEN)?;
    }
    resident(lab)
}

fn resident(lab: &Lab) -> anyhow::Result<f64> {
    std::thread::sleep(SETTLED);
    let [_, resident] = proc::memory(lab.id()?)?;
    Ok(resident)
}

/// Asks everything several times; returns the medians, in milliseconds.
fn ask(lab: &Lab, quick: bool) -> anyhow::Result<[f64; QUESTIONS.len()]> {
    let mut link = lab.link()?;
    let mut medians = [0.0; QUESTIONS.len()];
    for (median, (_, path, _)) in medians.iter_mut().zip(QUESTIONS) {
        let is_kept = path.ends_with("stats");
        let times = if is_kept { 3 } else { 20 };
        let mut latencies = Latencies::default();
        for _ in 0..if quick { times / 2 } else { times } {
            if is_kept {
                std::thread::sleep(STATS_FOR);
            }
            latencies.time(|| answered(&mut link, path))?;
        }
        *median = latencies.percentile(0.5) / 1000.0;
    }
    Ok(medians)
}

fn answered(link: &mut Connection, path: &str) -> anyhow::Result<()> {
    link.send(rekindle_lab::request("GET", path, rekindle_lab::HOST, "").as_bytes())?;
    link.receive()?.expect(200)?;
    Ok(())
}

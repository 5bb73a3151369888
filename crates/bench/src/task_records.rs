//! Tasks such as people ask for: what is recorded of one from the request to its end, and homes with many that have ended.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rekindle_domain::event::{
    Options, Provider, Raw, TaskClaimed, TaskCreated, TaskEnded, TaskKind, TaskSpec, TaskStatus,
};
use rekindle_domain::id::{RunId, SessionId, StreamId, TaskId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_seeded::Rng;
use rekindle_store::Store;
use rekindle_store::commit::Append;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::tapped::{Tapped, Unsynced};

use crate::home::{WallClock, open_with};

/// Tasks that are open at the same time in a home that is made.
const TOGETHER: usize = 100;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the n-th task as it was asked for.
pub(crate) fn spec(n: u64) -> TaskSpec {
    let agent = ["claude-code", "codex", "gemini"][n as usize % 3];
    TaskSpec {
        kind: TaskKind::Task,
        parent_id: None,
        title: format!("Fix the parser's last token, part {n}"),
        prompt: Raw::text(
            "The parser drops the last token when the input ends without a newline. Find out why, add a test \
             that shows it, mend it, and run all tests of the workspace.",
        ),
        working_dir: format!("/home/someone/src/project-{}", n % 200),
        worktree: None,
        provider: Provider { profile: "acp".into(), agent: Some(agent.into()), ..Provider::default() },
        options: Options::default(),
        env_names: vec!["PATH".into(), "HOME".into()],
        priority: (n % 7) as i8 - 3,
        not_before: None,
        deadline_at: None,
        max_attempts: 3,
        repeatable: false,
        shared: false,
        budget: None,
        labels: if n.is_multiple_of(4) { vec!["nightly".into()] } else { Vec::new() },
        after: Vec::new(),
        idempotency_key: None,
        created_by: Some("user:someone".into()),
    }
}

/// Returns the request of the n-th task.
pub(crate) fn created(task_id: TaskId, n: u64) -> Draft {
    TaskCreated { task_id, actor: "user:someone".into(), task: Box::new(spec(n)), met: Vec::new() }.into()
}

fn claimed(task_id: TaskId, n: u64) -> Draft {
    let random = Rng::new(n).bits();
    let (session_id, run_id) = (SessionId::mint(n, random), RunId::mint(n, random));
    let actor = "scheduler".into();
    TaskClaimed { task_id, attempt: 1, session_id, run_id, actor, reason: None, resume_prompt: None }.into()
}

fn ended(task_id: TaskId, n: u64) -> Draft {
    let (status, reason) = match n % 10 {
        0 => (TaskStatus::Failed, "the agent ended with status 1"),
        _ => (TaskStatus::Completed, "end_turn"),
    };
    TaskEnded { task_id, attempt: 1, status, actor: "agent".into(), reason: Some(reason.into()) }.into()
}

/// Makes a home with tasks that have ended in the last days, as evenly as work comes; nothing of it is synced.
pub(crate) fn fill(home: &Path, count: usize, days: i64) -> anyhow::Result<Store> {
    let now = WallClock.now();
    let clock = Arc::new(SimClock::new(now.plus_millis(-days * DAY_MS)));
    let store = open_with(Arc::new(Tapped(Unsynced)), home, clock.clone())?;
    store.open_tasks().context("the tasks cannot be opened")?;
    let turns = count.div_ceil(TOGETHER);
    let step = days * DAY_MS / (turns as i64 * 3 + 1);
    for first in (0..count).step_by(TOGETHER) {
        let millis = millis(clock.now());
        let tasks: Vec<(TaskId, u64)> = (first..count.min(first + TOGETHER))
            .map(|n| (TaskId::mint(millis, n as u128), n as u64))
            .collect();
        for record in [created, claimed, ended] {
            let drafts = tasks.iter().map(|(task, n)| record(*task, *n)).collect();
            store.append(Append::quick(StreamId::tasks(), drafts)).context("a task cannot be recorded")?;
            clock.advance(step);
        }
    }
    store.cache_tasks().context("what is open cannot be written")?;
    Ok(store)
}

pub(crate) fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rekindle_domain::line::Line;
    use rekindle_store::log::Cursor;

    #[test]
    fn a_home_is_filled_with_tasks_that_have_ended_in_the_last_days() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = fill(&directory.path().join("home"), 250, 30).expect("filled");
        assert!(store.open_tasks().expect("opened").fold.is_empty());
        let reader = store.tasks_reader().expect("a log");
        let mut lines = reader.forward(Cursor::START);
        let mut times = Vec::new();
        while let Some(raw) = lines.next().expect("read") {
            times.push(Line::parse(raw.bytes).expect("a line").time());
        }
        assert_eq!(times.len(), 750);
        let (first, last) = (times[0], times[749]);
        assert!(last < WallClock.now() && last.millis_since(first) > 20 * DAY_MS as u64);
    }
}

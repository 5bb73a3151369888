//! A follower of one task: told every record of it and, between them, those of its runs, each once and in order. It ends with the task.

use std::collections::VecDeque;
use std::sync::Arc;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::{Event, Kind};
use rekindle_domain::id::{RunId, SessionId, TaskId};
use rekindle_domain::line::Line;
use rekindle_store::Store;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::{EncodedOnce, Feed, Following, Since, Told};
use crate::error::{Result, ServiceError};
use crate::show::Views;
use crate::show::log::{LogLine, history, log_line};
use crate::task_history::{lines_behind, lines_of};

/// The place of an event of a task: how far both streams were told with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPoint {
    /// The last record of the stream of tasks.
    pub tasks_seq: u64,
    /// The attempt.
    pub attempt: u32,
    /// The last record of the session in which that runs; 0 before the first.
    pub session_seq: u64,
    /// The hash of the record that the event is; none of a record of an older version.
    pub h: Option<ChainHash>,
}

/// What a follower of a task gets.
#[derive(Debug, Clone)]
pub enum TaskTold {
    /// A record of the task or of its run, and its place.
    Record(TaskPoint, Arc<EncodedOnce<LogLine>>),
    /// The logs are not what the follower thinks: begin again.
    Reset {
        /// The newest record of the task.
        last_seq: u64,
    },
    /// The follower is too slow: it is to come again with the last event it has.
    TooSlow,
}

/// Someone who wants to follow a task.
pub enum FollowTask {
    /// It is followed.
    Following(Box<TaskFollowing>),
    /// The task has ended, and the follower has been told so.
    Over,
}

/// Someone who follows a task.
pub struct TaskFollowing {
    feed: Arc<Feed>,
    views: Arc<Views>,
    store: Arc<Store>,
    task: TaskId,
    news: watch::Receiver<u64>,
    /// Where the part of the stream of tasks begins that was not looked at.
    next: Cursor,
    /// Records of the task that are still to be told.
    waiting: VecDeque<LogLine>,
    /// Records of the session through this one are told before the first of them.
    through: Option<u64>,
    /// How far the follower was told.
    point: TaskPoint,
    /// The run whose records are told, and its session.
    run: Option<(SessionId, RunId)>,
    session: Option<Following>,
    /// The session is to be followed behind this record.
    open_behind: Option<u64>,
    /// The run has ended: what its session does from then on is told when the task goes on.
    run_over: bool,
    /// The beginning of another run in the session: it is told when the task says that it is its own.
    held_back: Option<(RunId, Arc<EncodedOnce<LogLine>>)>,
    ready: VecDeque<TaskTold>,
    /// The last record of the task that is known ends it.
    ended: bool,
    over: bool,
}

impl TaskFollowing {
    /// Follows a task behind a place, or from its beginning; none if the log knows of no such task.
    pub(crate) fn open(
        feed: &Arc<Feed>,
        views: &Arc<Views>,
        store: &Arc<Store>,
        task: TaskId,
        since: Option<TaskPoint>,
    ) -> Result<Option<FollowTask>> {
        // Before the log is looked at: what comes meanwhile is news.
        let news = feed.follow_tasks();
        let found = lines_of(store, task);
        let (lines, next) = found.map_err(|error| ServiceError::caused_by(Code::Storage, error))?;
        let mut ended = false;
        let lines = meaningful(lines.iter().filter_map(|line| log_line(line)), &mut ended);
        let Some(last_seq) = lines.last().map(|line| line.seq) else { return Ok(None) };
        let begin = TaskPoint { tasks_seq: 0, attempt: 0, session_seq: 0, h: None };
        let mut following = TaskFollowing {
            feed: feed.clone(),
            views: views.clone(),
            store: store.clone(),
            task,
            news,
            next,
            waiting: VecDeque::new(),
            through: None,
            point: since.unwrap_or(begin),
            run: None,
            session: None,
            open_behind: None,
            run_over: false,
            held_back: None,
            ready: VecDeque::new(),
            ended,
            over: false,
        };
        let (told, left): (Vec<LogLine>, Vec<LogLine>) =
            lines.into_iter().partition(|line| line.seq <= following.point.tasks_seq);
        following.run = told.iter().rev().find_map(run_of).map(|(_, session, run)| (session, run));
        following.waiting = left.into();
        let Some(since) = since else { return Ok(Some(FollowTask::Following(Box::new(following)))) };
        let last = told.last().filter(|line| line.seq == since.tasks_seq);
        if !last.is_some_and(|last| following.is_same(&since, last.hash)) {
            following.ready.push_back(TaskTold::Reset { last_seq });
            following.over = true;
        } else if last.is_some_and(|last| last.kind == "task.ended") {
            if following.waiting.is_empty() {
                return Ok(Some(FollowTask::Over));
            }
        } else {
            following.open_behind = Some(since.session_seq);
            following.run_over = following.is_run_end(since.session_seq);
        }
        Ok(Some(FollowTask::Following(Box::new(following))))
    }

    /// Tells whether the record at a place is the one that the follower has, of whichever stream it is.
    fn is_same(&self, since: &TaskPoint, task_record: Option<ChainHash>) -> bool {
        let Some(h) = since.h else { return since.session_seq > 0 };
        if task_record == Some(h) {
            return true;
        }
        let Some((session, _)) = self.run.filter(|_| since.session_seq > 0) else { return false };
        let opened = Following::new(&self.feed, &self.views, session, Since::Point(since.session_seq, h));
        opened.is_ok_and(|opened| opened.last() == since.session_seq)
    }

    /// Tells whether a record of the session ends a run.
    fn is_run_end(&self, seq: u64) -> bool {
        let ends = |session: SessionId| {
            let history = history(self.views.store(), session).ok()?;
            let begin = history.reader.find(seq).ok()??;
            let mut lines = history.reader.forward(begin);
            let line = log_line(lines.next().ok()??.bytes)?;
            Some(line.seq == seq && Kind::from_name(&line.kind)?.ends_run())
        };
        self.run.and_then(|(session, _)| ends(session)).unwrap_or(false)
    }

    /// Follows the session of the run, behind a record; on a thread that may block.
    async fn open_session(&mut self, after: u64) {
        let Some((session, _)) = self.run else { return };
        self.point.session_seq = after;
        let (feed, views) = (self.feed.clone(), self.views.clone());
        let opened =
            spawn_blocking(move || Following::new(&feed, &views, session, Since::After(after))).await;
        // One that is gone has nothing to tell.
        self.session = opened.ok().and_then(Result::ok);
    }

    /// Waits for the next thing to tell; none when it is over.
    pub async fn next(&mut self) -> Option<TaskTold> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if self.over {
                return None;
            }
            if let Some(after) = self.open_behind.take() {
                self.open_session(after).await;
            } else if self.waiting.is_empty() {
                self.await_news().await;
            } else if self.is_session_told() {
                self.tell_task();
            } else if let Some(session) = &mut self.session {
                let told = session.next().await;
                self.tell_session(told);
            }
        }
    }

    /// Tells whether everything of the session was told that comes before the next record of the task.
    fn is_session_told(&mut self) -> bool {
        let Some(session) = self.session.as_ref().filter(|_| self.tells_session()) else { return true };
        let through = self.through.unwrap_or_else(|| {
            let current = self.run.and_then(|(session, _)| self.views.store().at_hand(session));
            current.map_or(0, |current| current.state.last_seq).max(session.known())
        });
        self.through = Some(through);
        self.point.session_seq >= through
    }

    /// Tells whether what its session does belongs to the task, as far as is known.
    fn tells_session(&self) -> bool {
        !self.run_over && self.held_back.is_none()
    }

    async fn await_news(&mut self) {
        let tells_session = self.tells_session();
        match self.session.as_mut().filter(|_| tells_session) {
            Some(session) => tokio::select! {
                told = session.next() => self.tell_session(told),
                grown = self.news.changed() => match grown {
                    Ok(()) => self.read_tasks().await,
                    Err(_) => self.over = true,
                },
            },
            None => match self.news.changed().await {
                Ok(()) => self.read_tasks().await,
                Err(_) => self.over = true,
            },
        }
    }

    /// Reads what was added to the stream of tasks, on a thread that may block.
    async fn read_tasks(&mut self) {
        let (store, task, from) = (self.store.clone(), self.task, self.next);
        let read = spawn_blocking(move || lines_behind(&store, task, from)).await;
        match read {
            Ok(Ok((lines, next))) => {
                self.next = next;
                let lines = lines.iter().filter_map(|line| log_line(line));
                self.waiting.extend(meaningful(lines, &mut self.ended));
            }
            // Whoever follows comes again, when it can be read again.
            Ok(Err(error)) => {
                tracing::warn!("{} can no longer be followed: {error}", self.task);
                self.over = true;
            }
            Err(_) => self.over = true,
        }
    }

    /// Tells the next record of the task.
    fn tell_task(&mut self) {
        let Some(line) = self.waiting.pop_front() else { return };
        self.through = None;
        if let Some((attempt, session, run)) = run_of(&line) {
            let is_other = self.run.is_none_or(|(known, _)| known != session);
            self.run_over &= self.is_current(run);
            (self.run, self.point.attempt) = (Some((session, run)), attempt);
            if is_other {
                (self.session, self.held_back) = (None, None);
                self.point.session_seq = 0;
            }
            if self.session.is_none() {
                self.open_behind = Some(self.point.session_seq);
            }
        }
        self.over = line.kind == "task.ended";
        (self.point.tasks_seq, self.point.h) = (line.seq, line.hash);
        self.ready.push_back(TaskTold::Record(self.point, Arc::new(line.into())));
        let is_its = |held: &RunId| self.run.is_some_and(|(_, run)| run == *held);
        if let Some((_, line)) = self.held_back.take_if(|(held, _)| is_its(held)) {
            self.tell_record(line);
        }
    }

    /// Tells what the session has told.
    fn tell_session(&mut self, told: Option<Told>) {
        match told {
            Some(Told::Record(line)) => match begun(&line).filter(|run| !self.is_current(*run)) {
                Some(other) => self.held_back = Some((other, line)),
                None => {
                    self.run_over = Kind::from_name(&line.kind).is_some_and(Kind::ends_run);
                    self.tell_record(line);
                }
            },
            Some(Told::Words(_) | Told::Status(_) | Told::HistoryMissing(_)) => {}
            Some(Told::TooSlow) => {
                self.ready.push_back(TaskTold::TooSlow);
                self.over = true;
            }
            Some(Told::Reset { .. } | Told::Damaged(_) | Told::Deleted) | None => self.session = None,
        }
    }

    fn tell_record(&mut self, line: Arc<EncodedOnce<LogLine>>) {
        (self.point.session_seq, self.point.h) = (line.seq, line.hash);
        self.ready.push_back(TaskTold::Record(self.point, line));
    }

    fn is_current(&self, run: RunId) -> bool {
        self.run.is_some_and(|(_, current)| current == run)
    }
}

/// Returns the run that a record of a session begins.
fn begun(line: &LogLine) -> Option<RunId> {
    if line.kind != "run.started" {
        return None;
    }
    match Line::parse(line.line.as_bytes()).ok()?.event().ok()? {
        Event::RunStarted(started) => Some(started.run_id),
        _ => None,
    }
}

/// Returns the records that mean something for the task: one that has ended may have been raced by records of what happened before,
/// and has more to tell only if it is brought back.
fn meaningful(lines: impl Iterator<Item = LogLine>, ended: &mut bool) -> Vec<LogLine> {
    let counts = |line: &LogLine| {
        let counts = !*ended || brings_back(line);
        *ended = if counts { line.kind == Kind::TaskEnded.as_str() } else { *ended };
        counts
    };
    lines.filter(counts).collect()
}

fn brings_back(line: &LogLine) -> bool {
    match Line::parse(line.line.as_bytes()).ok().and_then(|line| line.event().ok()) {
        Some(Event::TaskRetried(_)) => true,
        Some(Event::TaskResumed(resumed)) => resumed.ended.is_some(),
        _ => false,
    }
}

/// Returns the attempt, the session and the run that a record of a task names.
fn run_of(line: &LogLine) -> Option<(u32, SessionId, RunId)> {
    match Line::parse(line.line.as_bytes()).ok()?.event().ok()? {
        Event::TaskClaimed(claimed) => Some((claimed.attempt, claimed.session_id, claimed.run_id)),
        Event::TaskResumed(resumed) => Some((resumed.attempt, resumed.session_id, resumed.run_id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_its_end_a_task_has_more_to_tell_only_if_it_is_brought_back() {
        let line = |kind: &str, more: &str| {
            let envelope = r#""seq":1,"ts":"2026-02-21T10:00:00.000Z""#;
            let text = format!(
                r#"{{{envelope},"kind":"{kind}","task_id":"task_1",{more},"actor":"agent","reason":"why","h":"0123456789abcdef"}}"#
            );
            log_line(text.as_bytes()).expect("a record")
        };
        let resumed = || line("task.resumed", r#""attempt":1,"session_id":"sess_1","run_id":"run_1""#);
        let ended = || line("task.ended", r#""attempt":1,"status":"completed""#);
        let mut is_ended = false;
        let mut kinds = |lines: Vec<LogLine>| -> Vec<String> {
            meaningful(lines.into_iter(), &mut is_ended).into_iter().map(|line| line.kind).collect()
        };
        assert_eq!(kinds(vec![resumed(), ended(), resumed()]), ["task.resumed", "task.ended"]);
        assert!(kinds(vec![resumed(), ended()]).is_empty(), "nor later");
        let task = r#"{"title":"","prompt":"look","working_dir":"/repo","provider":{"type":"exec","agent":null,"model":null},"max_attempts":3}"#;
        let before = format!(
            r#""ended":{{"task":{task},"created_at":"2026-02-21T10:00:00.000Z","status":"failed","attempt":1,"transitions":2}}"#
        );
        let retried = line("task.retried", &before);
        assert_eq!(kinds(vec![retried, resumed(), ended()]), ["task.retried", "task.resumed", "task.ended"]);
    }
}

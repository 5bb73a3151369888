//! Checkpoints of the session's directory: asked for when they are due, recorded when they are taken, given up when they take
//! too long. A prompt is given to no agent before the one at its run's start is recorded, taken or not.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rekindle_domain::checkpoint::{Due, due, is_start_due};
use rekindle_domain::compose::checkpoint::{Capture, Look, MissedCapture, checkpoints};
use rekindle_domain::event::{CheckpointAt, Event, InputKind, NotTaken, NotTakenReason, RunCheckpoint};
use rekindle_domain::id::RunId;
use rekindle_domain::line::Line;
use rekindle_domain::session::{OwedEnd, SessionState};
use rekindle_domain::time::Timestamp;
use rekindle_wire::code::Code;

use super::command::{CaptureNews, Command};
use super::step::StepOutcome;
use super::{Worker, Workers};
use crate::drive::checkpoints::{CaptureRequest, StopFlag};
use crate::error::Result;
use crate::lock::locked;
use crate::log_search::find_last_event;
use crate::test_knobs::{crash_point, hurried};
use crate::ticks;

/// How long a prompt waits for the checkpoint at its run's start: what a person waits for without wondering.
static START_WITHIN: LazyLock<Duration> =
    LazyLock::new(|| hurried("CHECKPOINT_WITHIN", Duration::from_secs(30)));

/// How long the one at a run's end may take while no prompt waits for it.
const END_WITHIN: Duration = Duration::from_secs(600);

/// Runs that are looked through for the end of the turn before: more were cancelled before anybody heard of them.
const RUNS_SEARCHED: usize = 8;

/// When what could not be recorded is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A capture that is under way. It ends soon after this is dropped.
pub(super) struct UnderWay {
    /// Tells it from every other capture of this daemon.
    number: u64,
    /// Which checkpoints it is for.
    parts: Due,
    since: Instant,
    begun: Timestamp,
    stop: StopFlag,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

impl UnderWay {
    /// Returns those of its checkpoints that are still due.
    fn still_due(&self, due: &Due) -> Due {
        let same = |owed: &OwedEnd| due.end.is_some_and(|now| now.run_id == owed.run_id);
        let end = self.parts.end.filter(same);
        Due { end, start: self.parts.start.filter(|run| due.start == Some(*run)) }
    }
}

/// The captures of a session, as its worker knows them.
#[derive(Default)]
pub(super) struct Captures {
    under_way: Option<UnderWay>,
    /// Since when the prompt of a run waits for one.
    start_due: Option<(RunId, Instant)>,
    /// One could not be recorded: not before then.
    not_before: Option<Instant>,
}

impl Captures {
    /// Tells whether one is under way.
    fn any(&self) -> bool {
        self.under_way.is_some()
    }

    /// Tells whether they have to be looked after: one is under way, or is to be begun again.
    pub(super) fn need_care(&self) -> bool {
        self.any() || self.not_before.is_some()
    }

    /// Returns how long the one that is under way may still take, or how long none is begun.
    pub(super) fn patience(&self) -> Option<Duration> {
        match (&self.under_way, self.not_before) {
            (Some(under_way), _) => Some(match self.start_due {
                Some((_, since)) => START_WITHIN.saturating_sub(ticks::since(since)),
                None => END_WITHIN.saturating_sub(ticks::since(under_way.since)),
            }),
            (None, not_before) => Some(not_before?.saturating_duration_since(ticks::now())),
        }
    }
}

impl Worker {
    /// Takes the checkpoints that are due to a session that has no agent.
    pub(super) fn checkpoint(&mut self, workers: &Workers, state: &SessionState) -> Result<StepOutcome> {
        Ok(match self.take_checkpoints(workers, state)? {
            Some(left) => StepOutcome::Rest(Some(left)),
            None => StepOutcome::Again,
        })
    }

    /// Tells whether a living agent is to be given nothing yet: checkpoints are due, and are taken.
    pub(super) fn awaits_checkpoints(&mut self, workers: &Workers, state: &SessionState) -> Result<bool> {
        self.drop_unneeded_capture(workers, state);
        let due = self.due_beside_agent(workers, state);
        if due.is_nothing() {
            return Ok(false);
        }
        // Everything is to stop: no prompt is given, and nothing waits for it.
        if workers.is_stopping() && due.end.is_none() {
            return Ok(true);
        }
        if self.take_checkpoints(workers, state)?.is_none() {
            // It took too long, which is recorded: what it held up goes on.
            self.seat.inbox.push(Command::Look);
        }
        Ok(true)
    }

    /// Tells whether the prompt of the open run waits for its checkpoint. A command was given its own when it was started.
    pub(super) fn is_prompt_held(&self, workers: &Workers, state: &SessionState) -> bool {
        self.due_beside_agent(workers, state).start.is_some()
    }

    fn due_beside_agent(&self, workers: &Workers, state: &SessionState) -> Due {
        if !workers.agents.captures.is_on(state) {
            return Due::default();
        }
        let works = self.live.as_ref().is_some_and(|live| live.connection().profile().process_is_turn());
        let open = state.open_run().filter(|run| is_start_due(run));
        if works && open.is_some() { Due::default() } else { due(state) }
    }

    /// Stops a capture that nobody needs any more: its run was cancelled, or its session removed.
    pub(super) fn drop_unneeded_capture(&mut self, workers: &Workers, state: &SessionState) {
        let due = if workers.agents.captures.is_on(state) { due(state) } else { Due::default() };
        self.captures.under_way.take_if(|under_way| under_way.still_due(&due).is_nothing());
        if due.is_nothing() {
            self.captures.not_before = None;
        }
        self.captures.start_due.take_if(|(run, _)| due.start != Some(*run));
        self.show_captures();
    }

    /// Takes the checkpoints that are due: returns how long to wait for them, or nothing if that was long enough.
    fn take_checkpoints(&mut self, workers: &Workers, state: &SessionState) -> Result<Option<Duration>> {
        let due = due(state);
        if let Some(run) = due.start {
            self.captures.start_due.get_or_insert_with(|| (run, ticks::now()));
        }
        match self.captures.patience() {
            Some(left) if !left.is_zero() => return Ok(Some(left)),
            Some(_) if self.captures.any() => {
                let begun = self.captures.under_way.take().map(|under_way| under_way.begun);
                let seconds = if due.start.is_some() { *START_WITHIN } else { END_WITHIN }.as_secs();
                let detail = format!("it took longer than {seconds} s");
                let late = NotTaken { reason: NotTakenReason::TimedOut, detail };
                tracing::warn!("no checkpoint: {}", late.detail);
                workers.checkpoint_counts.add_not_taken(&late);
                self.record(workers, state, due, begun.unwrap_or(workers.records.now()), Err(late.into()))?;
                return Ok(None);
            }
            _ => {}
        }
        self.begin_capture(workers, state, due);
        Ok(self.captures.patience())
    }

    fn begin_capture(&mut self, workers: &Workers, state: &SessionState, due: Due) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (number, stop) = (NUMBER.fetch_add(1, Ordering::Relaxed), StopFlag::default());
        let asked = CaptureRequest {
            session: self.session,
            root: state.working_dir.clone().into(),
            mode: state.options.checkpoints,
            start: due.end.and_then(|owed| self.start_of(workers, &owed)),
            before: self.end_of_last_turn(workers, &due),
            stop: stop.clone(),
        };
        let (since, begun) = (ticks::now(), workers.records.now());
        self.captures.not_before = None;
        self.captures.under_way = Some(UnderWay { number, parts: due, since, begun, stop });
        self.show_captures();
        let (at, session) = (self.workers.clone(), self.session);
        let done = move |outcome| {
            if let Some(workers) = at.upgrade() {
                let news = Box::new(CaptureNews { number, outcome });
                workers.send_if_present(session, Command::Captured(news));
            }
        };
        crash_point("checkpoint.before_capture");
        workers.agents.captures.begin(asked, Box::new(done));
    }

    /// Finds the checkpoint at the start of a run that has ended.
    fn start_of(&self, workers: &Workers, owed: &OwedEnd) -> Option<Box<RunCheckpoint>> {
        let log = workers.records.store.reader(self.session).ok()?;
        let mut lines = log.forward(log.find(owed.start.seq).ok()??);
        let line = lines.next().ok()?.and_then(|raw| Line::parse(raw.bytes).ok())?;
        match line.event() {
            Ok(Event::RunCheckpoint(start))
                if start.run_id == owed.run_id && start.at == CheckpointAt::Start =>
            {
                Some(Box::new(start))
            }
            _ => None,
        }
    }

    /// Finds the checkpoint at the end of the turn before, for an agent that begins and was not there. If that is still due it is
    /// what is about to be found, and if there is none nobody knows what the turn left.
    fn end_of_last_turn(&self, workers: &Workers, due: &Due) -> Option<Box<RunCheckpoint>> {
        if self.live.is_some() || due.end.is_some() || due.start.is_none() {
            return None;
        }
        let log = workers.records.store.reader(self.session).ok()?;
        let mut begun = 0;
        let found = find_last_event(&log, |event| match event {
            Event::RunCheckpoint(end) if end.at == CheckpointAt::End => {
                Some(end.tree.map(|_| Box::new(end.clone())))
            }
            Event::InputQueued(input) if input.what == InputKind::Prompt => Some(None),
            // A command may be given its prompt by its launch alone.
            Event::RunStarted(_) if begun == RUNS_SEARCHED => Some(None),
            Event::RunStarted(_) => {
                begun += 1;
                None
            }
            _ => None,
        });
        found.ok()??
    }

    /// Records what came of a capture, as far as it is still wanted.
    pub(super) fn take_news(&mut self, workers: &Workers, news: CaptureNews) {
        let CaptureNews { number, outcome } = news;
        let under_way = self.captures.under_way.take_if(|under_way| under_way.number == number);
        let Some(under_way) = under_way else { return };
        // What was captured stays until its record is on disk.
        let (outcome, kept) = match outcome {
            Ok(taken) => {
                workers.checkpoint_counts.add_taken(&taken, ticks::since(under_way.since));
                (Ok(taken.capture.clone()), Some(taken))
            }
            Err(missed) => {
                workers.checkpoint_counts.add_not_taken(&missed.not_taken);
                (Err(missed), None)
            }
        };
        let recorded =
            workers.records.store.open_session(self.session).map_err(Into::into).and_then(|current| {
                let parts = under_way.still_due(&due(&current.state));
                self.record(workers, &current.state, parts, under_way.begun, outcome)
            });
        drop(kept);
        if let Err(error) = recorded {
            tracing::warn!("a checkpoint cannot be recorded: {}", error.text());
            self.set_held(Some(error.text()));
            self.captures.not_before = Some(ticks::now() + AGAIN);
        }
        self.show_captures();
    }

    fn record(
        &mut self,
        workers: &Workers,
        state: &SessionState,
        parts: Due,
        begun: Timestamp,
        outcome: Result<Capture, MissedCapture>,
    ) -> Result<()> {
        let boot_id = workers.agents.supervisor.boot_id;
        let records = checkpoints(&parts, Look { root: &state.working_dir, boot_id, begun }, outcome);
        if records.is_empty() {
            return Ok(());
        }
        crash_point("checkpoint.before_record");
        match workers.records.append(self.session, records.clone()) {
            // Its run was cancelled, or its session removed, a moment ago.
            Err(error) if error.code == Code::NotNow => {}
            Err(error) => return Err(error),
            Ok(_) => self.live.iter_mut().for_each(|live| live.note_appended(&records)),
        }
        crash_point("checkpoint.after_record");
        Ok(())
    }

    /// Shows whether the directory is being captured, and whether a prompt waits for that.
    fn show_captures(&self) {
        let any = self.captures.any();
        let mut seen = locked(&self.seat.seen);
        (seen.capturing, seen.checkpointing) = (any, any && self.captures.start_due.is_some());
    }
}

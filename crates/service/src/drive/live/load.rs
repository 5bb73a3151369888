//! Bringing an agent's own session back: how long that may take, and what the agent did meanwhile that nobody had asked of it
//! here. Some agents go on with a turn that was cut before they answer a load; some never answer.

use std::sync::LazyLock;
use std::time::Duration;

use rekindle_agent::connection::Taken;
use rekindle_agent::known::Quirk;
use rekindle_agent::profile::Open;
use rekindle_agent::replay::{Replay, Unrecorded, beyond};
use rekindle_domain::event::AgentNotice;

use super::error::Result;
use super::{LOAD_TIMED_OUT, LiveAgent};
use crate::test_knobs::hurried;
use crate::ticks;

/// How long an agent may be silent while it brings its session back. The slowest that was met takes some seconds; one that works
/// inside the load says so.
static LOAD_WITHIN: LazyLock<Duration> = LazyLock::new(|| hurried("LOAD_WITHIN", Duration::from_secs(60)));

/// How long an agent that answers a load first, and replays afterwards, is silent when it is done with that.
static REPLAY_QUIET: LazyLock<Duration> =
    LazyLock::new(|| hurried("REPLAY_QUIET", Duration::from_millis(500)));

/// How long such an agent is waited for at most.
const REPLAY_WITHIN: Duration = Duration::from_secs(10);

/// How long each step of the end of an agent that does not come back may take.
const GRACE: Duration = Duration::from_secs(2);

impl LiveAgent {
    /// Returns how the agent's session is opened: brought back if there is one to come back to and the agent can, forked if
    /// there is one to go on from.
    pub(super) fn how_to_open(&self) -> Open<'_> {
        let can = self.connection.capabilities();
        // It would begin with the very tool call whose effect is uncertain.
        let cut_in_tool = self.history.as_ref().is_some_and(|history| history.own_session.cut_in_tool);
        let reruns = cut_in_tool && self.connection.has(Quirk::RerunsInterruptedTool);
        match self.cursor.as_deref().filter(|_| !reruns) {
            Some(cursor) if can.load => Open::Load(cursor),
            Some(cursor) if can.resume => Open::Resume(cursor),
            Some(_) => Open::New,
            None => match self.fork_of.as_deref() {
                Some(origin) if can.fork => Open::Fork(origin),
                _ => Open::New,
            },
        }
    }

    /// Tells whether the agent is bringing its session back.
    pub(crate) fn is_loading(&self) -> bool {
        self.control.is_some() && self.connection.in_flight().iter().any(|(_, request)| request.brings_back())
    }

    /// Returns how much longer an agent that brings its session back may be silent.
    pub(super) fn load_patience(&self) -> Option<Duration> {
        self.loading.map(|since| LOAD_WITHIN.saturating_sub(ticks::since(since)))
    }

    /// Ends an agent that was silent for too long while it brought its session back. The log says so, and the next agent gets a
    /// new session and the story of the old one.
    pub(super) fn end_stalled_load(&mut self, heard: bool) -> Result<()> {
        if !self.is_loading() {
            self.loading = None;
            return Ok(());
        }
        // Whoever waits for a person is not silent.
        if heard || self.loading.is_none() || self.connection.asks().next().is_some() {
            self.loading = Some(ticks::now());
            return Ok(());
        }
        let is_given_up = self.cursor.is_none() && self.fork_of.is_none();
        if self.load_patience().is_none_or(|left| !left.is_zero()) || is_given_up {
            return Ok(());
        }
        let seconds = LOAD_WITHIN.as_secs();
        let text = format!("the agent sent nothing for {seconds} s while it loaded its session: it is ended");
        let what = LOAD_TIMED_OUT.into();
        self.append(vec![AgentNotice { run_id: None, what, text: Some(text.into()), raw: None }.into()])?;
        (self.cursor, self.fork_of) = (None, None);
        self.stop("the agent did not load its session in time", "daemon", GRACE)
    }

    /// Notes that an agent which replays behind its answer was heard, or is waited for from now on.
    pub(super) fn note_replay(&mut self, heard: bool) {
        let now = ticks::now();
        self.replaying = match self.replaying {
            _ if !self.connection.may_replay() => None,
            Some((begun, _)) if heard => Some((begun, now)),
            replaying => replaying.or(Some((now, now))),
        };
    }

    /// Returns how long to wait until an agent has told again what was said: what it says after it was prompted is new.
    pub(super) fn replay_patience(&self) -> Option<Duration> {
        let (begun, heard) = self.replaying?;
        let left = REPLAY_QUIET.saturating_sub(ticks::since(heard));
        Some(left.min(REPLAY_WITHIN.saturating_sub(ticks::since(begun)))).filter(|left| !left.is_zero())
    }

    /// Tells whether the agent may still be telling again what was said; of one that was just taken over nobody knows.
    pub(super) fn is_replaying(&self) -> bool {
        self.connection.may_replay() && (self.replaying.is_none() || self.replay_patience().is_some())
    }

    /// Ends an agent whose run was cancelled while it brought its session back: what comes next must not wait behind it.
    pub(super) fn cancel_load(&mut self) -> Result<()> {
        if !self.is_loading() {
            return Ok(());
        }
        let stopped = self.stop("the run was cancelled while the session was loaded", "daemon", GRACE);
        self.note_send_failure(stopped);
        Ok(())
    }

    /// Records what an agent did inside a load, or after we had lost it, as part of the run that it was launched for.
    pub(super) fn record_work_in_load(&mut self, taken: &mut Taken, replay: &Replay) -> Result<()> {
        let Some(cut) = self.history()?.spoken.cut() else { return Ok(()) };
        let work = beyond(replay, cut);
        let state = self.store.open_session(self.session)?.state;
        let Some(run_id) = state.open_run().map(|run| run.run_id).filter(|_| !work.is_empty()) else {
            return Ok(());
        };
        let holder = self.connection.holder();
        taken.uncertain.extend(work.iter().filter_map(Unrecorded::unfinished).cloned());
        let events: Vec<_> = work.into_iter().map(|work| work.event(run_id, holder)).collect();
        self.connection.note_work(&events);
        events.into_iter().for_each(|event| taken.add(event));
        Ok(())
    }
}

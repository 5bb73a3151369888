//! What is due when. All of it on the monotonic clock, which stands still while the machine sleeps.

use std::time::{Duration, Instant};

/// Output is on disk within this.
pub(super) const SYNC_OUTPUT: Duration = Duration::from_millis(200);
/// An unfinished line is in the journal within this.
pub(super) const FLUSH_PART: Duration = Duration::from_millis(100);
/// The socket and the directory are looked at this often.
const LOOK_ROUND: Duration = Duration::from_secs(5);
/// A journal that cannot be written is tried again this often.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// What was acknowledged is removed this much later, not while the agent waits for us.
pub(super) const TRIM: Duration = Duration::from_secs(1);
/// The hint for people is at most this old while things change.
pub(super) const STATUS: Duration = Duration::from_millis(500);
/// After the agent's end its pipe is read until nothing comes for this long: someone it left behind may hold it
/// open for ever.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// After the system has refused a connection, the next one is accepted this much later: descriptors come back when others end.
pub(super) const ACCEPT: Duration = Duration::from_millis(100);

/// The deadlines that come and go.
#[derive(Debug)]
pub(super) struct Clocks {
    pub(super) sync_output: Option<Instant>,
    pub(super) flush_part: Option<Instant>,
    pub(super) retry: Option<Instant>,
    pub(super) trim: Option<Instant>,
    pub(super) status: Option<Instant>,
    /// No connection is accepted before this.
    pub(super) accept: Option<Instant>,
    pub(super) look_round: Instant,
    pub(super) started: Instant,
    /// Since when nobody commands.
    pub(super) detached: Option<Instant>,
}

impl Clocks {
    pub(super) fn new(now: Instant) -> Clocks {
        Clocks {
            sync_output: None,
            flush_part: None,
            retry: None,
            trim: None,
            status: None,
            accept: None,
            look_round: now + LOOK_ROUND,
            started: now,
            detached: Some(now),
        }
    }

    /// Sets a deadline unless there is one.
    pub(super) fn set(deadline: &mut Option<Instant>, within: Duration) {
        if deadline.is_none() {
            *deadline = Some(Instant::now() + within);
        }
    }

    /// Takes a deadline that has come.
    pub(super) fn take_due(deadline: &mut Option<Instant>, now: Instant) -> bool {
        let due = deadline.is_some_and(|at| now >= at);
        if due {
            *deadline = None;
        }
        due
    }

    pub(super) fn take_due_check(&mut self, now: Instant) -> bool {
        let due = now >= self.look_round;
        if due {
            self.look_round = now + LOOK_ROUND;
        }
        due
    }

    /// Returns the earliest of these.
    pub(super) fn next(&self) -> Instant {
        let dated = [self.sync_output, self.flush_part, self.retry, self.trim, self.status, self.accept];
        dated.into_iter().flatten().fold(self.look_round, Instant::min)
    }
}

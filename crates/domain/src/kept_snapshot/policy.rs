//! The policy of kept snapshots: when they are taken, how long they stay, and what records mean for that.

use std::time::Duration;

use super::{Retention, is_worth_keeping};
use crate::event::{Compression, Event, Kind, Persistence};

/// How snapshots are taken and kept: as a daemon is configured, or as one session wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Whether any are taken by themselves.
    pub enabled: bool,
    /// Time between two while something happens.
    pub interval: Duration,
    /// Whether one is taken when the daemon leaves or the session is closed.
    pub on_exit: bool,
    /// How long they stay.
    pub retention: Retention,
    /// How they are compressed.
    pub compression: Compression,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            enabled: true,
            interval: Duration::from_secs(300),
            on_exit: true,
            retention: Retention::default(),
            compression: Compression::default(),
        }
    }
}

impl Policy {
    /// Returns the policy for a session that wants some things otherwise.
    pub fn for_session(self, wanted: Option<&Persistence>) -> Policy {
        let Some(wanted) = wanted else { return self };
        Policy {
            enabled: wanted.enabled.unwrap_or(self.enabled),
            // None at all would be one for every record.
            interval: wanted.interval_s.map_or(self.interval, |seconds| Duration::from_secs(seconds.max(1))),
            on_exit: wanted.on_exit.unwrap_or(self.on_exit),
            retention: Retention {
                keep: wanted.keep.map_or(self.retention.keep, |keep| keep as usize),
                max_age: wanted.max_age_s.map(Duration::from_secs).or(self.retention.max_age),
            },
            compression: wanted.compression.unwrap_or(self.compression),
        }
    }
}

/// What some records mean for those who follow what happens: for the snapshots of their session, and for people elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    /// There is something in them that no snapshot has.
    pub is_worth_keeping: bool,
    /// A run ends.
    pub ends_run: bool,
    /// The session is closed.
    pub closes: bool,
    /// Somebody elsewhere may want to be told of them.
    pub is_news: bool,
}

impl Activity {
    /// Says what some events mean.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event<'static>>) -> Activity {
        let mut activity = Activity::default();
        for event in events {
            activity.is_worth_keeping |= is_worth_keeping(event);
            if let Some(kind) = event.kind() {
                activity.ends_run |= kind.ends_run();
                activity.closes |= kind == Kind::SessionClosed;
                activity.is_news |= kind.is_news();
            }
        }
        activity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{RunCompleted, SessionClosed, SnapshotCreated};
    use crate::id::RunId;

    #[test]
    fn a_session_gets_what_it_wants_and_the_rest_as_configured() {
        let policy = Policy { interval: Duration::from_secs(60), ..Policy::default() };
        assert_eq!(policy.for_session(None), policy);
        let wanted = Persistence {
            enabled: Some(false),
            interval_s: Some(0),
            keep: Some(2),
            max_age_s: Some(5),
            ..Persistence::default()
        };
        let own = policy.for_session(Some(&wanted));
        assert_eq!((own.enabled, own.interval, own.on_exit), (false, Duration::from_secs(1), true));
        let retention = Retention { keep: 2, max_age: Some(Duration::from_secs(5)) };
        assert_eq!((own.retention, own.compression), (retention, Compression::Zstd));
    }

    #[test]
    fn records_say_what_they_mean_for_those_who_follow() {
        let run_id = RunId::mint(1, 1);
        let end: Event<'static> = RunCompleted { run_id, stop_reason: None, usage: None }.into();
        let closed: Event<'static> = SessionClosed::default().into();
        let kept: Event<'static> = SnapshotCreated::default().into();
        let said = |events: &[&Event<'static>]| {
            let activity = Activity::of(events.iter().copied());
            (activity.is_worth_keeping, activity.ends_run, activity.closes, activity.is_news)
        };
        assert_eq!(said(&[]), (false, false, false, false));
        assert_eq!(said(&[&kept]), (false, false, false, false));
        assert_eq!(said(&[&kept, &end]), (true, true, false, true));
        assert_eq!(said(&[&closed]), (true, false, true, false));
    }
}

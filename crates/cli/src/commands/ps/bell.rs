//! The bell of `ps --watch`: it rings when a session that is watched comes to where a sink of type `bell` wants it to.

use std::collections::BTreeMap;
use std::sync::Arc;

use rekindle_domain::id::{RunId, SessionId, WaitId};
use rekindle_domain::time::Timestamp;
use rekindle_notify::{Bell, Machine, Notice, NoticeKind, NotifyConfig, Sinks, ThisMachine};
use rekindle_wire::view::{RunState, SessionView};

/// Where a session stood: its latest run, and what that waited for.
type Stood = (RunId, RunState, Option<WaitId>);

/// The bells of the configuration, and what they have heard of.
pub(super) struct WatchBell {
    bells: Vec<Bell>,
    stood: BTreeMap<SessionId, Option<Stood>>,
    /// What is there in the beginning is seen, and rings nobody.
    begun: bool,
}

impl WatchBell {
    pub(super) fn new(config: &NotifyConfig) -> WatchBell {
        let machine: Arc<dyn Machine> = Arc::new(ThisMachine);
        WatchBell { bells: Sinks::new(config, &machine).bells, stood: BTreeMap::new(), begun: false }
    }

    /// Looks at all sessions that are watched; tells whether the bell rings.
    pub(super) fn look<'a>(&mut self, views: impl Iterator<Item = &'a SessionView>, now: Timestamp) -> bool {
        let mut rings = false;
        let mut stand = BTreeMap::new();
        for view in views {
            let stands = standing(view);
            let is_news = self.begun && self.stood.get(&view.id) != Some(&stands);
            if is_news && let Some(notice) = stands.as_ref().and_then(|(_, state, _)| notice(view, *state)) {
                rings |= self.bells.iter().any(|bell| bell.rings(&notice, now));
            }
            stand.insert(view.id, stands);
        }
        (self.stood, self.begun) = (stand, true);
        rings
    }
}

fn standing(view: &SessionView) -> Option<Stood> {
    let run = view.run.as_ref()?;
    Some((run.run_id, run.state, view.wait.as_ref().map(|wait| wait.wait_id)))
}

/// Returns what there is to tell of a session whose run has come to a state.
fn notice(view: &SessionView, state: RunState) -> Option<Notice> {
    let kind = match state {
        RunState::Waiting => NoticeKind::Waiting,
        RunState::Completed => NoticeKind::Completed,
        RunState::Failed => NoticeKind::Failed,
        RunState::Interrupted => NoticeKind::Interrupted,
        RunState::Checkpointing | RunState::Running | RunState::Unknown => return None,
        // Whoever cancels something knows it.
        RunState::Cancelling | RunState::Cancelled => return None,
    };
    Some(Notice {
        event_id: format!("{}.{}", view.id, view.last_seq),
        kind,
        at: view.since,
        session_id: Some(view.id),
        run_id: view.run.as_ref().map(|run| run.run_id),
        task_id: None,
        title: view.title.clone(),
        agent: Some(view.agent.clone()),
        directory: Some(view.working_dir.clone()),
        reason: None,
        question: None,
        last_words: None,
    })
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::session_view::session;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_bell_rings_once_for_each_thing_that_happens() {
        let config = json!({"sinks": {"desk": {"type": "bell"}}});
        let config: NotifyConfig = serde_json::from_value(config).expect("settings");
        let mut bell = WatchBell::new(&config);
        let mut looks = |status: &str, state: &str| {
            let run = match state {
                "" => Value::Null,
                state => json!({"run_id": "run_1", "state": state}),
            };
            bell.look([session(status, run, Value::Null)].iter(), Timestamp::from_millis(0))
        };
        assert!(!looks("waiting", "waiting"), "it was so in the beginning");
        assert!(!looks("running", "running"));
        assert!(looks("waiting", "waiting"));
        assert!(!looks("waiting", "waiting"), "it rang for that");
        assert!(!looks("running", "running"));
        assert!(looks("idle", "completed"));
        assert!(!looks("idle", "cancelled") && !looks("idle", ""));

        let mut silent = WatchBell::new(&NotifyConfig::default());
        let views = [
            session("idle", Value::Null, Value::Null),
            session("waiting", json!({"run_id": "run_1", "state": "waiting"}), Value::Null),
        ];
        assert!(views.iter().all(|view| !silent.look([view].into_iter(), Timestamp::from_millis(0))));
    }
}

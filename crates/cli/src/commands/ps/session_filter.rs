//! The filter of `ps`: which sessions are asked for, and where they are asked for, at the daemon, or in the home itself.

use std::cell::RefCell;
use std::collections::HashMap;

use rekindle_client::{Client, Failure};
use rekindle_display::status_text::status_words;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::Timestamp;
use rekindle_wire::view::SessionView;
use serde::Deserialize;
use serde_json::Value;

use super::super::Context;
use super::{Args, is_listed};
use crate::offline_session::{Looker, health, is_below, load_or_stand_in, read_last_words, to_json};
use crate::session_arg::current_dir;

/// Bytes of logs that are read for one list although caches have passed them, to find what has rotted: they cost about as
/// much as listing some thousands of sessions.
const READ_AT_ONCE: u64 = 32 << 20;

/// A session of the list: what is known of it, and all that was said of it.
pub(super) struct Listed {
    pub(super) view: SessionView,
    pub(super) json: Value,
}

impl Listed {
    /// Reads what a daemon says of a session.
    pub(super) fn read(json: Value) -> Result<Listed, Failure> {
        let view = SessionView::deserialize(&json);
        Ok(Listed { view: view.map_err(|error| Failure::failed("answer_unreadable", error))?, json })
    }

    /// Orders sessions by what is shown of them: whose status is the newest comes first.
    pub(super) fn newest_first(&self) -> impl Ord + use<> {
        std::cmp::Reverse((self.view.since, self.view.updated_at, self.view.id))
    }
}

/// Which sessions are to be listed.
pub(super) struct SessionFilter {
    below: Option<String>,
    statuses: Vec<String>,
    agent: Option<String>,
    words: Option<String>,
    /// How far logs were found whole although caches have passed that: whoever watches has it read once.
    whole: RefCell<HashMap<SessionId, u64>>,
}

impl SessionFilter {
    pub(super) fn new(args: &Args) -> Result<SessionFilter, Failure> {
        Ok(SessionFilter {
            below: args.here.then(current_dir).transpose()?,
            statuses: args.status.clone(),
            agent: args.agent.clone(),
            words: args.search.clone(),
            whole: RefCell::default(),
        })
    }

    /// Asks the daemon, and puts the newest status first.
    pub(super) fn fetch(&self, client: &Client) -> Result<Vec<Listed>, Failure> {
        // A word that is not a status but shown as one is known here alone: then all are asked for.
        let is_status = |word: &String| SessionStatus::ALL.iter().any(|status| status.as_str() == word);
        let statuses = Some(self.statuses.join(",")).filter(|_| self.statuses.iter().all(is_status));
        let filters = [
            ("status", statuses.as_deref().filter(|text| !text.is_empty())),
            ("agent", self.agent.as_deref()),
            ("cwd", self.below.as_deref()),
            ("q", self.words.as_deref()),
        ];
        let sessions: Vec<Value> = client.all("sessions", &filters)?;
        let mut sessions = sessions.into_iter().map(Listed::read).collect::<Result<Vec<_>, _>>()?;
        sessions.retain(|session| self.has_status(&session.view));
        sessions.sort_by_key(Listed::newest_first);
        Ok(sessions)
    }

    /// Reads the sessions from the home.
    ///
    /// Each is taken from its caches and what its log has behind them. What the caches have passed is read too, as
    /// `status` does, but only of sessions that are shown, the newest first, and only so many bytes in all: thousands of
    /// finished sessions must not be read from their beginnings. Damage that is not come to here is found by `status`, by
    /// `doctor` and by the daemon.
    pub(super) fn on_disk(
        &self,
        context: &Context,
        args: &Args,
        now: Timestamp,
    ) -> Result<Vec<Listed>, Failure> {
        // Without one nothing was ever asked of anyone here.
        let Some(home) = context.offline_if_any()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let surveyed = home.survey(|id, loaded| found.extend(load_or_stand_in(&home, id, loaded).ok()));
        surveyed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
        found.retain(|(loaded, _)| !loaded.state.deleted);
        // What is read of logs is spent on those first in which anything happened last.
        found.sort_by_key(|(loaded, _)| std::cmp::Reverse((loaded.state.updated_at, loaded.state.id)));
        let looker = Looker::new(&home, now);
        let mut left = READ_AT_ONCE;
        let mut whole = self.whole.borrow_mut();
        let mut sessions = Vec::new();
        for (mut loaded, trouble) in found {
            let mut session = looker.session(&loaded, trouble);
            if !self.has(&session) {
                continue;
            }
            let (id, end) = (loaded.state.id, loaded.read_from);
            let listed = is_listed(&session, args, now);
            if listed {
                session.last_words = read_last_words(&home, id);
            }
            let unread = loaded.damage.is_none() && whole.get(&id) != Some(&end);
            if unread && end <= left && listed {
                left -= end;
                match home.verify_cached_part(&mut loaded) {
                    Ok(()) if loaded.damage.is_none() => drop(whole.insert(id, end)),
                    Ok(()) => session.health = health(&loaded),
                    // What cannot be read now proves nothing.
                    Err(_) => {}
                }
            }
            sessions.push(Listed { json: to_json(&session, &loaded), view: session });
        }
        sessions.sort_by_key(Listed::newest_first);
        Ok(sessions)
    }

    /// Tells whether a session is wanted for what is shown of it.
    pub(super) fn has(&self, session: &SessionView) -> bool {
        let title = session.title.to_lowercase();
        self.has_status(session)
            && self.below.as_ref().is_none_or(|below| is_below(&session.working_dir, below))
            && self.agent.as_ref().is_none_or(|agent| *agent == session.agent)
            && self.words.as_ref().is_none_or(|words| title.contains(&words.to_lowercase()))
    }

    /// Tells whether a session has a status that is wanted, or is shown with it.
    fn has_status(&self, session: &SessionView) -> bool {
        let shown = status_words(session);
        self.statuses.is_empty() || self.statuses.iter().any(|word| shown.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_daemon_sessions_are_chosen_as_with_one() {
        let mut session = rekindle_testkit::session_view::session("waiting", Value::Null, Value::Null);
        session.title = "Fix the Flaky test".into();
        let (idle, waiting) = ("idle", "waiting");
        let wanted = |statuses: &[&str], agent: Option<&str>, words: Option<&str>| {
            let (agent, words) = (agent.map(Into::into), words.map(Into::into));
            SessionFilter {
                below: None,
                statuses: statuses.iter().map(|word| (*word).to_owned()).collect(),
                agent,
                words,
                whole: RefCell::default(),
            }
            .has(&session)
        };
        assert!(wanted(&[], None, None) && wanted(&[idle, waiting], Some("claude"), Some("flaky TEST")));
        assert!(!wanted(&[idle], None, None) && !wanted(&[], Some("codex"), None));
        assert!(!wanted(&[], None, Some("flakier")));
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a") && !is_below("/ab", "/a"));
    }
}

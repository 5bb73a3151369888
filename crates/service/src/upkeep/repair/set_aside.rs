//! Setting damaged sessions aside at a person's word, and going on from the good beginning of their logs.

use std::io;
use std::path::PathBuf;

use rekindle_domain::compose::cancel::{self, Agent, Cancel, cancel};
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use rekindle_holder::client::{LockState, inspect_all};
use rekindle_store::aside::{self, is_elsewhere, set_aside};
use rekindle_store::check::{Code, Report};
use rekindle_store::disk::SharedDisk;
use rekindle_store::keep_forked_history;
use rekindle_store::layout::Layout;

use super::{Done, is_damage};

/// Who asks in the records.
const BY: &str = "doctor";

/// Why no beginning of a quarantined session's log is kept.
const UNREAD: &str =
    "it is quarantined, and its log is not read: set the whole session aside, or release it first";

/// What is to become of damaged sessions.
pub(super) struct SetAside<'a> {
    pub(super) disk: &'a SharedDisk,
    pub(super) layout: &'a Layout,
    /// The good beginning of a log is to be the session's log again.
    pub(super) keep_prefix: bool,
}

impl SetAside<'_> {
    /// Says what is to be done with a session; none if it was done before.
    pub(super) fn plan(&self, session: SessionId, report: &Report) -> Option<Done> {
        let path = self.layout.log(session);
        let done = |code, what: String, error| {
            let (session, path) = (Some(session), path.clone());
            Done { action: "set_aside", code, session, path, what, kept: None, error }
        };
        let of_session = || report.findings.iter().filter(|found| found.session == Some(session));
        if let Some(found) = of_session().find(|found| found.code == Code::SessionQuarantined) {
            let error = self.keep_prefix.then(|| UNREAD.to_owned());
            return Some(done(found.code.as_str(), found.what.clone(), error));
        }
        if let Some(damage) = of_session().find(|found| is_damage(found)) {
            let error = self.refusal(session);
            return Some(done(damage.code.as_str(), damage.what.clone(), error));
        }
        if is_elsewhere(&**self.disk, self.layout, session) {
            // Nothing is left but the second half of what was asked.
            let what = "The session was set aside.".to_owned();
            return self.keep_prefix.then(|| done("aside", what, self.refusal(session)));
        }
        if aside::was_kept(&**self.disk, self.layout, session) {
            return None;
        }
        let what = "Nothing is wrong with this session's log.".to_owned();
        Some(done(
            "not_damaged",
            what,
            Some("it was not moved: only a damaged session can be set aside".into()),
        ))
    }

    /// A log is not cut back under an agent that lives: it has heard more than the log would know of.
    fn refusal(&self, session: SessionId) -> Option<String> {
        if !self.keep_prefix {
            return None;
        }
        let all = match inspect_all(&self.layout.home().join("holders")) {
            Ok(all) => all,
            Err(error) => return Some(format!("the holders cannot be listed: {error}")),
        };
        let id = session.to_string();
        let mut of_session =
            all.iter().filter(|one| one.launch.there().is_none_or(|launch| launch.session_id == id));
        let lives = |one: &&rekindle_holder::client::Inspection| {
            matches!(one.lock, LockState::Held { .. } | LockState::Unreadable(_))
        };
        of_session.find(lives).map(|one| {
            format!(
                "its agent is alive ({}): set the whole session aside, end the agent, then try again",
                one.holder_id
            )
        })
    }

    /// Sets a session aside; what was forked from it keeps its history.
    pub(super) fn move_away(&self, session: SessionId) -> io::Result<PathBuf> {
        keep_forked_history(self.disk, self.layout.home(), session)?;
        set_aside(&**self.disk, self.layout, session)
    }

    /// Goes on from the good beginning of a log. Whatever was going on there is cancelled: nobody knows how it went on, and
    /// nothing is done twice. Returns the log and what was done.
    pub(super) fn keep_prefix(&self, session: SessionId, now: Timestamp) -> io::Result<(PathBuf, String)> {
        let kept = aside::keep_prefix(&**self.disk, self.layout, session, now, |state, tokens| {
            if !cancel::is_possible(state) {
                return Vec::new();
            }
            let (why, dropped, agent) = (CancelReason::User, state.queue.clone(), Agent::Absent);
            cancel(state, tokens, Cancel { why, by: BY, dropped, agent, behind: Vec::new() })
        })?;
        let what = format!(
            "The first {} records are the session's log again; the {} bytes after them are only in {}.",
            kept.records,
            kept.left_bytes,
            kept.aside.display()
        );
        Ok((self.layout.log(session), what))
    }
}

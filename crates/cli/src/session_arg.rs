//! Which session is meant: an id, or the beginning of one that only one session has.

use rekindle_domain::id::{MAX_ID_LEN, SessionId};
use rekindle_store::offline::Offline;

use crate::failure::Failure;

/// Most candidates that are listed.
const MAX_SHOWN: usize = 8;

/// Names a session.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SessionArg {
    /// The session's id, or the beginning of it; `sess_` may be left out
    #[arg(value_name = "SESSION")]
    session: String,
}

impl SessionArg {
    /// Finds the session that is meant.
    pub(crate) fn find(&self, home: &Offline) -> Result<SessionId, Failure> {
        let prefix = self.prefix()?;
        let sessions = home.sessions().map_err(|error| {
            let error = anyhow::Error::new(error).context("cannot list the sessions");
            Failure::failed("sessions_unreadable", error)
        })?;
        if let Some(exact) = sessions.iter().find(|id| id.as_str() == prefix) {
            return Ok(*exact);
        }
        let matching: Vec<SessionId> =
            sessions.iter().copied().filter(|id| id.as_str().starts_with(&prefix)).collect();
        match matching.as_slice() {
            [one] => Ok(*one),
            [] => Err(unknown(&prefix, &sessions, home)),
            several => Err(ambiguous(&prefix, several)),
        }
    }

    /// Returns what the id must begin with. Nothing but what ids are made of gets through.
    fn prefix(&self) -> Result<String, Failure> {
        let rest = self.session.strip_prefix("sess_").unwrap_or(&self.session);
        let clean = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let whole = format!("{}_{rest}", SessionId::PREFIX);
        if rest.is_empty() || !clean || whole.len() > MAX_ID_LEN {
            // It may be huge or hostile: the beginning is enough, and quoted.
            let shown: String = self.session.chars().take(MAX_ID_LEN).collect();
            let message = format!("{shown:?} is not a session id nor the beginning of one");
            return Err(Failure::usage("bad_session_id", message)
                .hint("ids look like sess_01khz0p6r8… and are made of letters, digits, _ and -"));
        }
        Ok(whole)
    }
}

fn unknown(prefix: &str, sessions: &[SessionId], home: &Offline) -> Failure {
    let error = anyhow::anyhow!("no session's id begins with {prefix}");
    let place = home.layout().sessions();
    let hint = match sessions {
        [] => format!("there is no session in {} yet", place.display()),
        // Ids begin with the time: the last are the newest.
        some => format!("the newest of {} sessions:{}", some.len(), names(some.iter().rev())),
    };
    Failure::failed("session_unknown", error).hint(hint)
}

fn ambiguous(prefix: &str, several: &[SessionId]) -> Failure {
    let message = format!("{} sessions begin with {prefix}", several.len());
    Failure::usage("session_ambiguous", message).hint(format!("give more of it:{}", names(several.iter())))
}

fn names<'a>(ids: impl ExactSizeIterator<Item = &'a SessionId>) -> String {
    let more = if ids.len() > MAX_SHOWN { "\n  …" } else { "" };
    let shown: String = ids.take(MAX_SHOWN).map(|id| format!("\n  {id}")).collect();
    shown + more
}

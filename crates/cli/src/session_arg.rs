//! Which session is meant: an id, the beginning of one that only one session has, or this directory's latest.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::target::Target;
use rekindle_client::{Client, Failure};
use rekindle_domain::id::{MAX_ID_LEN, SessionId};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_store::disk::Disk;
use rekindle_store::layout::{Layout, SessionFile, session_file};
use rekindle_store::offline::Offline;
use rekindle_wire::view::SessionView;

use crate::context::Context;

/// Most candidates that are listed.
const MAX_SHOWN: usize = 8;

/// Names a session.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SessionArg {
    /// The session's id, or the beginning of it; `sess_` may be left out [default: this directory's latest]
    #[arg(value_name = "SESSION", add = ids(IdKind::Session))]
    session: Option<String>,
}

impl SessionArg {
    /// Returns what names a session like this, or none.
    pub(crate) fn named(session: Option<String>) -> SessionArg {
        SessionArg { session }
    }

    /// Finds the session that is meant, in a home without a daemon.
    pub(crate) fn find(&self, home: &Offline) -> Result<SessionId, Failure> {
        match &self.session {
            Some(name) => find_offline(name, home),
            None => latest_offline(home),
        }
    }

    /// Finds the session that is meant, with a daemon.
    pub(crate) fn find_live(&self, context: &Context, client: &Client) -> Result<String, Failure> {
        find_live(self.session.as_deref(), context, client)
    }
}

/// Finds the session that a name means, in a home without a daemon.
pub(crate) fn find_offline(name: &str, home: &Offline) -> Result<SessionId, Failure> {
    choose_among(name, &home.sessions().map_err(unlisted)?, home.layout())
}

/// Finds the session among some that a name means.
pub(crate) fn choose_among(
    name: &str,
    sessions: &[SessionId],
    layout: &Layout,
) -> Result<SessionId, Failure> {
    choose(&prefix(name)?, sessions, &layout.sessions().display().to_string())
}

/// Finds the session that a name means, with a daemon.
pub(crate) fn find_live(name: Option<&str>, context: &Context, client: &Client) -> Result<String, Failure> {
    let Some(name) = name else { return latest_live(client) };
    let prefix = prefix(name)?;
    let (sessions, place) = match client.target() {
        Target::Local { home, .. } => {
            let layout = Layout::new(home);
            let sessions = list_local(&*context.disk(), &layout).map_err(unlisted)?;
            (sessions, layout.sessions().display().to_string())
        }
        Target::Remote { server, .. } => (list_remote(client)?, server.url.clone()),
    };
    choose(&prefix, &sessions, &place).map(|id| id.to_string())
}

/// Lists the sessions of a daemon elsewhere.
fn list_remote(client: &Client) -> Result<Vec<SessionId>, Failure> {
    let all: Vec<SessionView> = client.all("sessions", &[])?;
    let mut sessions: Vec<SessionId> = all.iter().map(|session| session.id).collect();
    sessions.sort_unstable();
    Ok(sessions)
}

/// Lists the sessions that have a log, or a note that it should be there; with a daemon every one has.
fn list_local(disk: &dyn Disk, layout: &Layout) -> std::io::Result<Vec<SessionId>> {
    let entries = disk.list(&layout.sessions())?;
    let id = |name: &str| match session_file(name) {
        SessionFile::Log(id) | SessionFile::DamageNote(id) => Some(id),
        _ => None,
    };
    let mut sessions: Vec<SessionId> = entries.iter().filter_map(|entry| id(&entry.name)).collect();
    sessions.sort_unstable();
    sessions.dedup();
    Ok(sessions)
}

fn unlisted(error: std::io::Error) -> Failure {
    let error = anyhow::Error::new(error).context("cannot list the sessions");
    Failure::failed("sessions_unreadable", error)
}

/// Returns the only session whose id begins so.
fn choose(prefix: &str, sessions: &[SessionId], place: &str) -> Result<SessionId, Failure> {
    if let Some(exact) = sessions.iter().find(|id| id.as_str() == prefix) {
        return Ok(*exact);
    }
    let matching: Vec<SessionId> =
        sessions.iter().copied().filter(|id| id.as_str().starts_with(prefix)).collect();
    match matching.as_slice() {
        [one] => Ok(*one),
        [] => Err(unknown(prefix, sessions, place)),
        several => Err(ambiguous(prefix, several)),
    }
}

/// Returns what an id must begin with. Nothing but what ids are made of gets through.
fn prefix(name: &str) -> Result<String, Failure> {
    let rest = name.strip_prefix("sess_").unwrap_or(name);
    let clean = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let whole = format!("{}_{rest}", SessionId::PREFIX);
    if rest.is_empty() || !clean || whole.len() > MAX_ID_LEN {
        // It may be huge or hostile: the beginning is enough, and quoted.
        let shown: String = name.chars().take(MAX_ID_LEN).collect();
        let message = format!("{shown:?} is neither a session id nor the beginning of one");
        return Err(Failure::usage("bad_session_id", message)
            .hint("ids look like sess_01khz0p6r8… and are made of letters, digits, _ and -"));
    }
    Ok(whole)
}

/// Shortest beginning of an id, without its prefix, that is taken for one where a text could be meant too: as many digits as say
/// the time to some minutes, which no word has.
const TELLING: usize = 6;

/// Tells whether a text looks like a session's id, or the beginning of one, rather than like something to say: `sess_` and
/// what follows it, or the first digits of one, which are the time.
pub(crate) fn is_like_an_id(text: &str) -> bool {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'h' | b'j' | b'k' | b'm' | b'n' | b'p'..=b't' | b'v'..=b'z');
    match text.strip_prefix("sess_") {
        Some(rest) => {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        }
        None => text.starts_with("01") && text.len() >= TELLING && text.bytes().all(digit),
    }
}

/// Returns the directory we are in, as sessions name theirs.
pub(crate) fn current_dir() -> Result<String, Failure> {
    let error = match std::env::current_dir() {
        Ok(path) => match path.into_os_string().into_string() {
            Ok(path) => return Ok(path),
            Err(path) => format!("the path of the current directory is not valid UTF-8: {}", path.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let gone = "the current directory was removed".to_owned();
            return Err(Failure::usage("no_directory", gone).hint(
                "change to one that exists: cd DIR, or cd \"$PWD\" if it was made again; with rekindle run, --cwd DIR names another",
            ));
        }
        Err(error) => format!("cannot tell the current directory: {error}"),
    };
    Err(Failure::usage("no_directory", error)
        .hint("change to another directory, or name the session or the directory"))
}

fn latest_live(client: &Client) -> Result<String, Failure> {
    let here = current_dir()?;
    find_latest(client)?.map(|session| session.id.to_string()).ok_or_else(|| match client.target() {
        Target::Local { .. } => none_here(&here),
        Target::Remote { server, .. } => none_here(&format!("{here} at {}", server.url)),
    })
}

/// Finds this directory's latest session, if there is one.
pub(crate) fn find_latest(client: &Client) -> Result<Option<SessionView>, Failure> {
    let here = current_dir()?;
    let sessions: Vec<SessionView> = client.all("sessions", &[("cwd", Some(&here))])?;
    // In a worktree that was made for this directory, too.
    let origin = |session: &SessionView| session.worktree.as_ref().map(|worktree| worktree.origin.clone());
    let works_here =
        |session: &SessionView| session.working_dir == here || origin(session).as_ref() == Some(&here);
    let in_here = sessions.into_iter().filter(works_here);
    // What is closed is named by its id: whoever names none wants to go on. An agent that ends while nothing goes on, or whatever else
    // is recorded of a session that nobody uses, does not make it the latest.
    Ok(in_here.max_by_key(|session| {
        (!session.closed, session.since.max(session.created_at), session.updated_at, session.id)
    }))
}

pub(crate) fn latest_offline(home: &Offline) -> Result<SessionId, Failure> {
    let here = current_dir()?;
    let mut latest: Option<(bool, Timestamp, Timestamp, SessionId)> = None;
    let surveyed = home.survey(|id, loaded| {
        if let Ok(loaded) = loaded
            && (loaded.state.working_dir == here || loaded.state.origin() == here)
            && !loaded.state.deleted
        {
            let state = &loaded.state;
            latest = latest.max(Some((!state.closed, last_used(state), state.updated_at, id)));
        }
    });
    surveyed.map_err(unlisted)?;
    latest.map(|(.., id)| id).ok_or_else(|| none_here(&here))
}

/// Returns when somebody last used a session: when its latest run ended or began, or when it was made.
fn last_used(state: &SessionState) -> Timestamp {
    let run = state.run.as_ref().map(|run| run.ended_at.unwrap_or(run.started_at));
    run.map_or(state.created_at, |run| run.max(state.created_at))
}

fn none_here(here: &str) -> Failure {
    Failure::usage("session_unnamed", format!("no session works in {here}"))
        .hint("rekindle run TEXT starts one here; rekindle ps -a lists those of other directories, which the beginning of their id names")
}

fn unknown(prefix: &str, sessions: &[SessionId], place: &str) -> Failure {
    let message = format!("no session's id begins with {prefix}");
    let hint = match sessions {
        [] => format!("there is no session in {place} yet"),
        // Ids begin with the time: the last are the newest.
        some => format!("the newest of {} sessions:{}", some.len(), names(some.iter().rev())),
    };
    Failure::usage("session_unknown", message).hint(hint)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        text.parse().expect("an id")
    }

    #[test]
    fn a_beginning_names_the_only_session_that_has_it() {
        let sessions = [id("sess_01abc"), id("sess_01abd"), id("sess_01abcd")];
        let choose = |name: &str| choose(&prefix(name)?, &sessions, "/nowhere");
        assert_eq!(choose("01abd").ok(), Some(sessions[1]));
        assert_eq!(choose("sess_01abc").ok(), Some(sessions[0]), "a whole id is no beginning");
        assert_eq!(choose("01abcd").ok(), Some(sessions[2]));
        for (name, code) in
            [("01ab", "session_ambiguous"), ("02", "session_unknown"), ("../x", "bad_session_id")]
        {
            assert_eq!(choose(name).expect_err(name).code(), code);
        }
    }

    #[test]
    fn an_id_is_told_from_something_to_say() {
        for id in ["sess_01khz0p6r8", "sess_x", "01khz0p6r8vk6mqj3b8y2c9d4e", "01khz0p6r8", "01khz0"] {
            assert!(is_like_an_id(id), "{id}");
        }
        for text in [
            "",
            "go on",
            "yes",
            "01",
            "01khz",
            "sess_",
            "sess_ what",
            "0123 is it",
            "continue",
            "01KHZ0P6R8",
            "01-02-2026",
        ] {
            assert!(!is_like_an_id(text), "{text}");
        }
    }
}

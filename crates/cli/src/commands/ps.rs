//! `rekindle ps`: the sessions, what each is doing and since when. Without a daemon the home itself is read.

mod canvas;
mod session_filter;
mod table;
mod watch;

use std::collections::BTreeMap;
use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::output::{self, BOLD, DIM, plural, styled};
use rekindle_wire::view::SessionView;
use serde_json::{Value, json};

use self::session_filter::SessionFilter;
use super::{Context, Unheard};
use crate::hints::ours;
use crate::status_text::agent_lives;

/// Idle sessions are listed this long after anything happened in them, unless all are asked for.
const RECENT_MILLIS: u64 = 24 * 3_600_000;

/// List sessions: what each is doing, since when, where
///
/// Idle sessions are left out a day after anything happened in them; -a lists all. Works without a daemon: then it is
/// looked whether agents live.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle ps
  rekindle ps -a --here
  rekindle ps -l
  rekindle ps --watch
  rekindle ps --status waiting,running
  rekindle ps -a --agent claude -q \"flaky test\"
  rekindle ps --json | jq -r '.sessions[] | select(.status == \"waiting\") | .id'

What a session is doing:
  running, cancelling   rekindle attach watches it
  waiting               for an answer: rekindle waits
  interrupted_…         cut short: rekindle resume, unless it goes on by itself
  idle                  nothing; it says so if the last run failed or was cancelled
  damaged, unreadable   not even its first record can be read: rekindle doctor")]
pub(crate) struct Args {
    /// All sessions
    #[arg(long, short)]
    all: bool,

    /// Only those in this directory or below
    #[arg(long)]
    here: bool,

    /// Only those with this status; several, divided by commas
    #[arg(long, value_name = "STATUS", value_parser = statuses, value_delimiter = ',')]
    status: Vec<SessionStatus>,

    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only those with these words in their title
    #[arg(long = "search", short = 'q', value_name = "WORDS")]
    search: Option<String>,

    /// Say how each status is known
    #[arg(long, short)]
    long: bool,

    /// Show it again whenever something changes, until q or Ctrl-C
    ///
    /// On a terminal the list is drawn over in place. Elsewhere every change prints another table, or with --json another
    /// line.
    #[arg(long, short)]
    watch: bool,
}

impl Args {
    fn is_narrow(&self) -> bool {
        self.here || !self.status.is_empty() || self.agent.is_some() || self.search.is_some()
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let wanted = SessionFilter::new(args)?;
    if args.watch {
        return watch::watch(context, args, wanted);
    }
    let now = SystemClock.now();
    let asked = context.ask(|client| wanted.told(client))?;
    let unheard = asked.as_ref().err().copied();
    let sessions = match asked {
        Ok(sessions) => sessions,
        Err(_) => wanted.on_disk(context, args, now)?,
    };
    let listing = Listing::new(sessions, args, now);
    let mut out = output::stdout();
    if context.json {
        writeln!(out, "{}", json!({"sessions": listing.sessions, "next": null}))?;
    } else {
        let read = report(&mut out, &listing, args.long, now)?;
        let alone = read.iter().filter(|session| agent_lives(session)).count() as u64;
        if let Some(unheard) = unheard.filter(|_| alone > 0) {
            let agents = plural(alone, "agent");
            let live = if alone == 1 { "lives on, and what it says" } else { "live on, and what they say" };
            let text = match unheard {
                Unheard::None => format!("no daemon answers; {agents} {live} is kept for the next one"),
                other => format!("{}; {agents} {live} is kept", other.words()),
            };
            writeln!(out, "{}", styled(DIM, text))?;
        }
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// The sessions that are listed, and how many there are.
struct Listing {
    sessions: Vec<Value>,
    all: usize,
    /// Not all of them were asked for.
    narrow: bool,
}

impl Listing {
    fn new(mut sessions: Vec<Value>, args: &Args, now: Timestamp) -> Listing {
        let all = sessions.len();
        sessions.retain(|session| is_listed(session, args, now));
        Listing { sessions, all, narrow: args.is_narrow() }
    }

    /// Says how many there are and what they are doing.
    fn counted(&self) -> String {
        let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
        let status = |session: &'_ Value| match session["health"]["state"].as_str() {
            Some("damaged") if session["last_seq"] == 0 => Some("damaged".to_owned()),
            Some("degraded") if session["last_seq"] == 0 => Some("unreadable".to_owned()),
            _ => session["status"].as_str().map(str::to_owned),
        };
        let known = self.sessions.iter().filter_map(status);
        known.for_each(|status| *statuses.entry(status).or_default() += 1);
        let each: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let all = styled(BOLD, plural(self.all as u64, "session"));
        if each.is_empty() { all } else { format!("{all}: {}", each.join(", ")) }
    }
}

/// Writes the table, and what is not in it.
fn report(
    out: &mut impl Write,
    listing: &Listing,
    long: bool,
    now: Timestamp,
) -> Result<Vec<SessionView>, Failure> {
    let read: Result<Vec<SessionView>, _> =
        listing.sessions.iter().cloned().map(serde_json::from_value).collect();
    let read = read.map_err(|error| Failure::failed("answer_unreadable", error))?;
    table::show(out, &read, long, now)?;
    if read.len() < listing.all {
        let idle = plural((listing.all - read.len()) as u64, "idle session");
        writeln!(out, "{}", styled(DIM, format_args!("{idle} not shown: {}", ours("ps -a"))))?;
    }
    if listing.all == 0 && listing.narrow {
        writeln!(out, "no such sessions: {} lists all", ours("ps -a"))?;
    } else if listing.all == 0 {
        writeln!(out, "no sessions: rekindle run \"fix the failing test\" makes one")?;
    }
    Ok(read)
}

/// Tells whether a session that was asked for is shown. Whoever asks for a status wants all that have it.
fn is_listed(session: &Value, args: &Args, now: Timestamp) -> bool {
    args.all || !args.status.is_empty() || is_of_interest(session, now)
}

/// Tells whether a session is known to be damaged, or cannot be loaded.
fn has_damage(session: &Value) -> bool {
    matches!(session["health"]["state"].as_str(), Some("damaged" | "degraded"))
}

/// Tells whether anything goes on in a session, happened of late, or has to be done by someone.
fn is_of_interest(session: &Value, now: Timestamp) -> bool {
    if has_damage(session) {
        return true;
    }
    let idle = session["status"] == "idle" && session["queued"].as_u64().unwrap_or(0) == 0;
    let updated = session["updated_at"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    !idle || updated.is_none_or(|at| now.millis_since(at) < RECENT_MILLIS)
}

/// Reads one status.
fn statuses(text: &str) -> Result<SessionStatus, String> {
    let all = SessionStatus::ALL;
    let found = all.into_iter().find(|status| status.as_str() == text);
    found.ok_or_else(|| format!("one of {}", all.map(|status| status.as_str()).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sessions_are_of_interest_for_a_day() {
        let session = |status: &str, queued: u64| json!({"status": status, "queued": queued, "updated_at": "1970-01-01T00:00:00.000Z"});
        let (soon, late) = (Timestamp::from_millis(1000), Timestamp::from_millis(90_000_000));
        assert!(is_of_interest(&session("idle", 0), soon) && !is_of_interest(&session("idle", 0), late));
        assert!(is_of_interest(&session("idle", 1), late) && is_of_interest(&session("waiting", 0), late));
        let mut damaged = session("idle", 0);
        damaged["health"] = json!({"state": "damaged"});
        assert!(is_of_interest(&damaged, late), "someone has to see to it");
    }
}

//! `rekindle ps`: the sessions, what each is doing and since when. Without a daemon the home itself is read.

mod bell;
mod session_filter;
mod watch;

use std::collections::BTreeMap;
use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::session_table::write_table;
use rekindle_display::status_text::{SHOWN_WORDS, agent_lives, is_unknown, label};
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::output::{BOLD, DIM, plural, styled};
use rekindle_wire::view::{HealthState, SessionView};
use serde_json::{Value, json};

use self::session_filter::{Listed, SessionFilter};
use super::{Context, Unheard};

/// Idle sessions are listed this long after anything happened in them, unless all are asked for.
const RECENT_MILLIS: u64 = 24 * 3_600_000;

/// List sessions: what each is doing, since when, where
///
/// Idle sessions are hidden a day after anything happened in them; -a lists all. Works without a daemon: it then checks which agents are
/// alive.
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
  idle                  nothing, perhaps after a run that failed
  damaged, unreadable   not even its first record can be read: rekindle doctor
  reading               its log is long, and the daemon still reads it")]
pub(crate) struct Args {
    /// All sessions
    #[arg(long, short)]
    all: bool,

    /// Only those in this directory or below
    #[arg(long)]
    here: bool,

    /// Only those with this status, by any word that the list shows; several, separated by commas
    #[arg(long, value_name = "STATUS", value_parser = status_word, value_delimiter = ',')]
    status: Vec<String>,

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

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let wanted = SessionFilter::new(args)?;
    if args.watch {
        return watch::watch(context, args, wanted);
    }
    let now = SystemClock.now();
    let asked = context.ask(|client| wanted.fetch(client))?;
    let unheard = asked.as_ref().err().copied();
    let sessions = match asked {
        Ok(sessions) => sessions,
        Err(_) => wanted.on_disk(context, args, now)?,
    };
    let listing = Listing::new(&sessions, args, now);
    context.print(&json!({"sessions": listing.json(), "next": null}), |out| {
        report(out, &listing, args.long, now)?;
        let alone = listing.sessions.iter().filter(|session| agent_lives(&session.view)).count() as u64;
        let Some(unheard) = unheard.filter(|_| alone > 0) else { return Ok(()) };
        let agents = plural(alone, "agent");
        let live =
            if alone == 1 { "keeps running, and its output" } else { "keep running, and their output" };
        let text = match unheard {
            Unheard::None => format!("no daemon answers; {agents} {live} is kept for the next one"),
            other => format!("{}; {agents} {live} is kept", other.text()),
        };
        Ok(writeln!(out, "{}", styled(DIM, text))?)
    })
}

/// The sessions that are listed, and how many there are.
struct Listing<'a> {
    sessions: Vec<&'a Listed>,
    all: usize,
    /// Not all of them were asked for.
    narrow: bool,
}

impl<'a> Listing<'a> {
    fn new(sessions: &'a [Listed], args: &Args, now: Timestamp) -> Listing<'a> {
        let listed = sessions.iter().filter(|session| is_listed(&session.view, args, now)).collect();
        let narrow = args.here || !args.status.is_empty() || args.agent.is_some() || args.search.is_some();
        Listing { sessions: listed, all: sessions.len(), narrow }
    }

    fn json(&self) -> Vec<&'a Value> {
        self.sessions.iter().map(|session| &session.json).collect()
    }

    /// Says how many there are and what they are doing.
    fn counted(&self) -> String {
        let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
        for Listed { view, .. } in &self.sessions {
            let status = if is_unknown(view) { label(view) } else { view.status.to_string() };
            *statuses.entry(status).or_default() += 1;
        }
        let each: Vec<String> = statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let all = styled(BOLD, plural(self.all as u64, "session"));
        if each.is_empty() { all } else { format!("{all}: {}", each.join(", ")) }
    }
}

/// Writes the table, and what is not in it.
fn report(out: &mut dyn Write, listing: &Listing<'_>, long: bool, now: Timestamp) -> Result<(), Failure> {
    let views: Vec<&SessionView> = listing.sessions.iter().map(|session| &session.view).collect();
    write_table(out, &views, long, now)?;
    if views.len() < listing.all {
        let idle = plural((listing.all - views.len()) as u64, "idle session");
        writeln!(out, "{}", styled(DIM, format_args!("{idle} not shown: {}", ours("ps -a"))))?;
    }
    if listing.all == 0 && listing.narrow {
        writeln!(out, "no such sessions: {} lists all", ours("ps -a"))?;
    } else if listing.all == 0 {
        writeln!(out, "no sessions: rekindle run \"fix the failing test\" makes one")?;
    }
    Ok(())
}

/// Tells whether a session that was asked for is shown. Whoever asks for a status wants all that have it.
fn is_listed(session: &SessionView, args: &Args, now: Timestamp) -> bool {
    args.all || !args.status.is_empty() || is_of_interest(session, now)
}

/// Tells whether anything goes on in a session, happened of late, or has to be done by someone.
fn is_of_interest(session: &SessionView, now: Timestamp) -> bool {
    session.health.state != HealthState::Ok
        || session.status != SessionStatus::Idle && !session.closed
        || session.queued > 0
        || now.millis_since(session.updated_at) < RECENT_MILLIS
}

/// Reads one word for a status.
fn status_word(text: &str) -> Result<String, String> {
    let statuses = SessionStatus::ALL.map(SessionStatus::as_str);
    let all = statuses.iter().chain(SHOWN_WORDS);
    match all.clone().find(|word| **word == text) {
        Some(word) => Ok((*word).to_owned()),
        None => Err(format!("expected one of {}", all.copied().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sessions_are_of_interest_for_a_day() {
        let session = |status: &str, queued: usize| {
            let session = rekindle_testkit::session_view::session(status, Value::Null, Value::Null);
            SessionView { queued, updated_at: Timestamp::from_millis(0), ..session }
        };
        let (soon, late) = (Timestamp::from_millis(1000), Timestamp::from_millis(90_000_000));
        assert!(is_of_interest(&session("idle", 0), soon) && !is_of_interest(&session("idle", 0), late));
        assert!(is_of_interest(&session("idle", 1), late) && is_of_interest(&session("waiting", 0), late));
        let mut damaged = session("idle", 0);
        damaged.health.state = HealthState::Damaged;
        assert!(is_of_interest(&damaged, late), "someone has to see to it");
    }
}

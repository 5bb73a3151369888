//! `rekindle ps`: the sessions, what each is doing and since when. Without a daemon the home itself is read.

mod canvas;
mod watch;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use rekindle_domain::id::SessionId;
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::time::{Clock, Timestamp};
use serde_json::{Value, json};

use super::{Context, Unheard};
use crate::client::{Client, List, wire};
use crate::clock::SystemClock;
use crate::evidence_text;
use crate::failure::{Exit, Failure};
use crate::offline_session::{Looker, health, is_below};
use crate::output::{self, BAD, BOLD, DIM, WARN, columns, cut, plural, styled, wrap};
use crate::sanitise;
use crate::session_arg::{here, short, short_len};
use crate::status_text::{agent_lives, is_unknown, label, last_run, style};

/// Idle sessions are listed this long after anything happened in them, unless all are asked for.
const RECENT_MILLIS: u64 = 24 * 3_600_000;

/// Where there is less room than this, a session's last words are left out.
const LEAST_WORDS: usize = 8;

/// Bytes of logs that are read for one list although caches have passed them, to find what has rotted: they cost about as
/// much as listing some thousands of sessions.
const READ_AT_ONCE: u64 = 32 << 20;

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
  damaged               not even its first record can be read: rekindle doctor")]
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
    let wanted = Wanted::new(args)?;
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
        let mut statuses: BTreeMap<&str, u64> = BTreeMap::new();
        let unknown = |session: &Value| has_damage(session) && session["last_seq"] == 0;
        let status = |session| if unknown(session) { Some("damaged") } else { session["status"].as_str() };
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
) -> Result<Vec<wire::Session>, Failure> {
    let read: Result<Vec<wire::Session>, _> =
        listing.sessions.iter().cloned().map(serde_json::from_value).collect();
    let read = read.map_err(|error| Failure::failed("answer_unreadable", error))?;
    show(out, &read, long, now)?;
    if read.len() < listing.all {
        let idle = plural((listing.all - read.len()) as u64, "idle session");
        writeln!(out, "{}", styled(DIM, format_args!("{idle} not shown: rekindle ps -a")))?;
    }
    if listing.all == 0 && listing.narrow {
        writeln!(out, "no such sessions: rekindle ps -a lists all")?;
    } else if listing.all == 0 {
        writeln!(out, "no sessions: rekindle run \"fix the failing test\" makes one")?;
    }
    Ok(read)
}

/// Tells whether a session that was asked for is shown. Whoever asks for a status wants all that have it.
fn is_listed(session: &Value, args: &Args, now: Timestamp) -> bool {
    args.all || !args.status.is_empty() || is_of_interest(session, now)
}

/// Tells whether the log of a session is known to be damaged.
fn has_damage(session: &Value) -> bool {
    session["health"]["state"] == "damaged"
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

/// Which sessions are to be listed.
struct Wanted {
    below: Option<String>,
    statuses: Vec<&'static str>,
    agent: Option<String>,
    words: Option<String>,
    /// How far logs were found whole although caches have passed that: whoever watches has it read once.
    whole: RefCell<HashMap<SessionId, u64>>,
}

impl Wanted {
    fn new(args: &Args) -> Result<Wanted, Failure> {
        Ok(Wanted {
            below: args.here.then(here).transpose()?,
            statuses: args.status.iter().map(|status| status.as_str()).collect(),
            agent: args.agent.clone(),
            words: args.search.clone(),
            whole: RefCell::default(),
        })
    }

    /// Asks the daemon, and puts first where anything happened last.
    fn told(&self, client: &Client) -> Result<Vec<Value>, Failure> {
        let statuses = self.statuses.join(",");
        let filters = [
            ("status", Some(statuses.as_str()).filter(|text| !text.is_empty())),
            ("agent", self.agent.as_deref()),
            ("cwd", self.below.as_deref()),
            ("q", self.words.as_deref()),
        ];
        let mut sessions: Vec<Value> = client.all(&List { name: "sessions", filters: &filters })?;
        let newest = |session: &Value| {
            let word = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
            std::cmp::Reverse((word("updated_at"), word("id")))
        };
        sessions.sort_by_cached_key(newest);
        Ok(sessions)
    }

    /// Reads the sessions from the home.
    ///
    /// Each is taken from its caches and what its log has behind them. What the caches have passed is read too, as
    /// `status` does, but only of sessions that are shown, the newest first, and only so many bytes in all: thousands of
    /// finished sessions must not be read from their beginnings. Damage that is not come to here is found by `status`, by
    /// `doctor` and by the daemon.
    fn on_disk(&self, context: &Context, args: &Args, now: Timestamp) -> Result<Vec<Value>, Failure> {
        // Without one nothing was ever asked of anyone here.
        let Some(home) = context.offline_if_any()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let surveyed = home.survey(|_, loaded| found.extend(loaded.ok()));
        surveyed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
        found.retain(|loaded| !loaded.state.deleted);
        // As with a daemon: where anything happened last comes first.
        found.sort_by_key(|loaded| std::cmp::Reverse((loaded.state.updated_at, loaded.state.id)));
        let looker = Looker::new(&home, now);
        let mut left = READ_AT_ONCE;
        let mut whole = self.whole.borrow_mut();
        let mut sessions = Vec::new();
        for mut loaded in found {
            let mut session = looker.session(&loaded);
            if !self.has(&session) {
                continue;
            }
            let (id, end) = (loaded.state.id, loaded.read_from);
            let unread = loaded.damage.is_none() && whole.get(&id) != Some(&end);
            if unread && end <= left && is_listed(&session, args, now) {
                left -= end;
                match home.look_behind(&mut loaded) {
                    Ok(()) if loaded.damage.is_none() => drop(whole.insert(id, end)),
                    Ok(()) => session["health"] = health(&loaded),
                    // What cannot be read now proves nothing.
                    Err(_) => {}
                }
            }
            sessions.push(session);
        }
        Ok(sessions)
    }

    /// Tells whether a session is wanted for what is shown of it.
    fn has(&self, session: &Value) -> bool {
        let word = |name: &str| session[name].as_str().unwrap_or_default();
        let title = word("title").to_lowercase();
        (self.statuses.is_empty() || self.statuses.contains(&word("status")))
            && self.below.as_ref().is_none_or(|below| is_below(word("working_dir"), below))
            && self.agent.as_ref().is_none_or(|agent| agent == word("agent"))
            && self.words.as_ref().is_none_or(|words| title.contains(&words.to_lowercase()))
    }
}

fn show(out: &mut impl Write, sessions: &[wire::Session], long: bool, now: Timestamp) -> Result<(), Failure> {
    let len = short_len(sessions.iter().map(|session| session.id.as_str()));
    let rows: Vec<[String; 5]> = sessions.iter().map(|session| row(session, len, now)).collect();
    let width = |index: usize| rows.iter().map(|row| columns(&row[index])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3), width(4)];
    for (session, row) in sessions.iter().zip(&rows) {
        let pad = |index: usize| " ".repeat(widths[index] - columns(&row[index]) + 2);
        let styles = [BOLD, style(session), DIM, output::PLAIN, DIM];
        let mut used = 0;
        let mut line = String::new();
        for index in 0..row.len() {
            line.push_str(&styled(styles[index], &row[index]));
            line.push_str(&pad(index));
            used += widths[index] + 2;
        }
        let words = session.last_words.as_deref().unwrap_or(&session.title);
        let room = output::width().saturating_sub(used);
        if room >= LEAST_WORDS {
            line.push_str(&cut(&sanitise::line(words), room));
        }
        writeln!(out, "{}", line.trim_end())?;
        if long && !is_unknown(session) {
            for known in evidence_text::sentences(&session.evidence, now) {
                writeln!(out, "{}", styled(DIM, wrap(&known, output::width(), "    ", "    ")))?;
            }
        }
        if let Some(last) = last_run(session) {
            let text = cut(&sanitise::line(&last), output::width().saturating_sub(4));
            writeln!(out, "    {}", styled(style(session), text))?;
        }
        if let Some(held) = &session.held {
            writeln!(out, "    {}", styled(WARN, sanitise::line(held)))?;
        }
        if let Some(health) = session.health.as_ref().filter(|health| health.state != "ok") {
            let detail = health.detail.as_deref().unwrap_or_default();
            writeln!(out, "    {}", styled(BAD, sanitise::line(&format!("{} {detail}", health.state))))?;
        }
    }
    Ok(())
}

fn row(session: &wire::Session, len: usize, now: Timestamp) -> [String; 5] {
    let mut status = label(session);
    if session.queued > 0 {
        status.push_str(&format!(" +{}", session.queued));
    }
    [
        short(&session.id, len).to_owned(),
        status,
        if is_unknown(session) { String::new() } else { age(session.since, now) },
        sanitise::line(&session.agent),
        directory(&sanitise::line(&session.working_dir), std::env::var("HOME").ok().as_deref()),
    ]
}

/// Writes how long something lasts, in one unit.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.millis_since(since) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn directory(path: &str, home: Option<&str>) -> String {
    let rest = home.filter(|home| !home.is_empty()).and_then(|home| path.strip_prefix(home));
    match rest {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_directories_are_short() {
        let at = Timestamp::from_millis;
        let ages = [0, 59_000, 60_000, 7_200_000, 259_200_000].map(|millis| age(at(0), at(millis)));
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "3d"]);
        assert_eq!(directory("/home/me/x", Some("/home/me")), "~/x");
        assert_eq!(directory("/home/mean", Some("/home/me")), "/home/mean");
        assert_eq!(directory("/home/me", Some("/home/me")), "~");
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a") && !is_below("/ab", "/a"));
    }

    #[test]
    fn without_a_daemon_sessions_are_chosen_as_with_one() {
        let session = json!({"status": "waiting", "agent": "claude", "title": "Fix the Flaky test"});
        let wanted = |statuses: &[&'static str], agent: Option<&str>, words: Option<&str>| {
            let (agent, words) = (agent.map(Into::into), words.map(Into::into));
            Wanted { below: None, statuses: statuses.to_vec(), agent, words, whole: RefCell::default() }
                .has(&session)
        };
        assert!(wanted(&[], None, None) && wanted(&["idle", "waiting"], Some("claude"), Some("flaky TEST")));
        assert!(!wanted(&["idle"], None, None) && !wanted(&[], Some("codex"), None));
        assert!(!wanted(&[], None, Some("flakier")));
    }

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

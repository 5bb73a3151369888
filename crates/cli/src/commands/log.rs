//! `rekindle log`: what happened in a session, from its log and what the write-ahead log has for it.

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::payloads::Payloads;
use rekindle_display::record_text::RecordPrinter;
use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{Line, peek_seq};
use rekindle_store::log::{Cursor, LogReader};
use rekindle_store::{History, LoadError, Want};
use rekindle_terminal::output;

use super::{Context, log_from_daemon};
use crate::session_arg::SessionArg;

/// Show what happened in a session, record by record
///
/// Works without a daemon and changes nothing. Messages are shown whole, everything else as one line each;
/// terminal control sequences are removed. With --json the records are printed exactly as
/// they stand in the log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle log 01khz0p6r8
  rekindle log sess_01khz0p6r8hcbaw1pk5ssrvwsr --last 20
  rekindle log -f
  rekindle log 01khz0p6r8 --json --from 100 | jq -r .kind")]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,
    /// Print text (the default)
    #[arg(long, conflicts_with = "json")]
    text: bool,
    /// Begin with this record
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// Show only the last N records
    #[arg(long, value_name = "N")]
    last: Option<u64>,
    /// Keep printing new records as they happen
    #[arg(long, short)]
    follow: bool,
}

/// Shows a session's whole log, and goes on with what happens if asked to.
pub(super) fn run_of(context: &Context, session: String, follow: bool) -> Result<Exit, Failure> {
    let session = SessionArg::named(Some(session));
    run(context, &Args { session, text: false, from: 1, last: None, follow })
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let live = if args.follow { Some(context.living_daemon()?) } else { context.elsewhere()? };
    if let Some(client) = live {
        let session = args.session.find_live(context, &client)?;
        let after = log_from_daemon::after(&client, &session, args.from, args.last)?;
        return if args.follow {
            log_from_daemon::follow(context, &client, session, after)
        } else {
            log_from_daemon::fetch(context, &client, &session, after)
        };
    }
    let home = context.offline()?;
    let session = args.session.find(&home)?;
    // A newer snapshot says nothing against the log: only how it ends is not known then.
    let (torn, damage) = match home.examine(session, Want::Status) {
        Ok(loaded) => (loaded.torn, loaded.damage),
        Err(LoadError::Newer { .. }) => (None, None),
        Err(error) => return Err(error.into()),
    };
    let history = home.history(session).map_err(|error| unreadable(session, error))?;
    if let Some(why) = &history.missing {
        anstream::eprintln!("note: what it was forked from cannot be read: {why}");
    }
    let end = torn.map_or(history.reader.end(), |torn| history.place(torn.begin()));
    let walk = Walk::new(session, history, end, args)?;
    let mut printer = RecordPrinter::new(context.json, Payloads::Here(home.blobs()));
    let walked = walk.each(|line| printer.print_line(line));
    printer.flush()?;
    walked?;
    if let Some(damage) = damage {
        return Err(Failure::damaged(session, damage.begin(), &damage.detail));
    }
    if let Some(torn) = torn {
        anstream::eprintln!(
            "note: the last {} are an incomplete record, as a crash in the middle of a write leaves it; the next use of the session removes it",
            output::plural(torn.len, "byte")
        );
    }
    Ok(Exit::Ok)
}

fn unreadable(session: SessionId, error: std::io::Error) -> Failure {
    let error = anyhow::Error::new(error).context(format!("cannot read the log of {session}"));
    Failure::failed("session_unreadable", error).hint("rekindle doctor says what can be done")
}

/// Goes through the records that are wanted, checking that each follows the one before.
struct Walk {
    session: SessionId,
    /// Of a fork together with what it goes on from.
    history: History,
    start: Cursor,
    end: Cursor,
    /// The record before the first that is shown.
    before: Option<(u64, Option<ChainHash>)>,
}

impl Walk {
    fn new(session: SessionId, history: History, end: Cursor, args: &Args) -> Result<Walk, Failure> {
        let fail = |error| unreadable(session, error);
        let reader = &history.reader;
        let mut from = args.from;
        if let Some(count) = args.last {
            let newest = reader.last(end, 1).map_err(fail)?;
            let newest = newest.first().and_then(|(_, line)| peek_seq(line)).unwrap_or(0);
            from = from.max(newest.saturating_sub(count).saturating_add(1));
        }
        let start = if from <= 1 { Cursor::START } else { find(reader, from).map_err(fail)?.min(end) };
        let before = reader.last(start, 1).map_err(fail)?;
        let before =
            before.first().filter(|_| start > Cursor::START).and_then(|(_, line)| Line::parse(line).ok());
        let before = before.map(|line| (line.seq, line.hash));
        Ok(Walk { session, history, start, end, before })
    }

    /// Hands each good record to `show`, up to the first that does not follow the one before it.
    fn each(&self, mut show: impl FnMut(&Line<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let reader = &self.history.reader;
        let mut lines = reader.forward(self.start);
        let mut last = self.before;
        loop {
            let raw = match lines.next() {
                Ok(Some(raw)) if raw.start < self.end => raw,
                Ok(_) => return Ok(()),
                Err(error) => return Err(unreadable(self.session, error)),
            };
            // What a crash had left was seen before: half a line at the very end is being written just now.
            if !raw.whole && raw.end >= reader.end() {
                return Ok(());
            }
            let bad = match Line::parse(raw.bytes) {
                _ if !raw.whole => "a line has no end".to_owned(),
                Err(error) => error.to_string(),
                Ok(line) => match follows(self.history.root, last, &line) {
                    Ok(()) => {
                        show(&line)?;
                        last = Some((line.seq, line.hash));
                        continue;
                    }
                    Err(why) => why,
                },
            };
            if raw.start < self.history.own() {
                // What it was forked from is damaged, and not the session: its own log says itself what it follows.
                anstream::eprintln!("note: what it was forked from is damaged at {}: {bad}", raw.start);
                (lines, last) = (reader.forward(self.history.own()), None);
                continue;
            }
            return Err(Failure::damaged(self.session, raw.start, &bad));
        }
    }
}

/// Finds where a record begins, or the first behind it where that one is missing.
fn find(reader: &LogReader, seq: u64) -> std::io::Result<Cursor> {
    if let Some(offset) = reader.find(seq)? {
        return Ok(offset);
    }
    let mut lines = reader.forward(Cursor::START);
    while let Some(line) = lines.next()? {
        if peek_seq(line.bytes).is_some_and(|found| found >= seq) {
            return Ok(line.start);
        }
    }
    Ok(reader.end())
}

fn follows(
    session: SessionId,
    last: Option<(u64, Option<ChainHash>)>,
    line: &Line<'_>,
) -> Result<(), String> {
    let last_hash = last.and_then(|(_, hash)| hash);
    match last {
        Some((seq, _)) if seq.checked_add(1) != Some(line.seq) => {
            Err(format!("found record {} where {} was expected", line.seq, seq.saturating_add(1)))
        }
        // The first record of a fork says itself what it follows.
        None if line.hash.is_some() && line.seq != 1 && line.forked_from().is_none() => {
            Err(format!("found record {} where 1 was expected", line.seq))
        }
        // Lines of older logs have no hash, and may stand only before those that have one.
        _ if line.hash.is_none() && last_hash.is_none() => Ok(()),
        _ if line.follows(session, last_hash) => Ok(()),
        _ => Err(format!("the hash of record {} does not match", line.seq)),
    }
}

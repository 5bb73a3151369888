//! `rekindle-dev append`: appends to many sessions at full speed and says what was acknowledged, until it is
//! killed. Whoever kills it compares what it said with what is left.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rekindle_client::clock::{SystemClock, id_millis, opener, random};
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::id::{BootId, SessionId};
use rekindle_seeded::Rng;
use rekindle_store::commit::{Append, Commits, Limits, Persist, Receipt};
use rekindle_store::layout::Layout;
use rekindle_store::{AppendError, Store};
use rekindle_testkit::made::Script;

use super::Context;

/// Append at full speed, printing `ack SESSION FIRST LAST HASH disk|process` for each answered append
///
/// Goes on with the sessions the home has, and makes new ones where they are too few.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// To how many sessions
    #[arg(long, default_value_t = 8)]
    sessions: usize,
    /// How durable each append is to be
    #[arg(long, value_enum, default_value_t = Durability::Mixed)]
    persist: Durability,
    /// Stop after so many seconds
    #[arg(long, conflicts_with = "records")]
    seconds: Option<u64>,
    /// Stop after so many records
    #[arg(long)]
    records: Option<u64>,
    /// How large a segment of the write-ahead log may be: smaller ones have more checkpoints
    #[arg(long, value_name = "BYTES")]
    segment_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Durability {
    /// On disk before it is answered
    Disk,
    /// Handed to the kernel before it is answered
    Process,
    /// As a daemon would: what the agent says quickly, everything else durably
    Mixed,
}

/// Appends of one session that are under way at a time.
const DEPTH: usize = 2;
/// A snapshot is taken every so many acknowledgements, and a checkpoint.
const SNAPSHOT_EVERY: u64 = 50;
const CHECKPOINT_EVERY: u64 = 2000;

/// An append and what became of it.
struct Ack {
    index: usize,
    persist: Persist,
    outcome: Result<Receipt, AppendError>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (store, boot) = match args.segment_bytes {
        Some(segment_bytes) => open_with(context, Limits { segment_bytes, ..Limits::default() })?,
        None => super::open(context, context.disk())?,
    };
    let sessions = sessions(&store, boot, args.sessions)?;
    let (sender, receiver) = channel();
    let mut writer = Writer { store: &store, sessions, persist: args.persist, sender, under_way: 0 };
    let until = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let outcome = writer.run(&receiver, until, args.records.unwrap_or(u64::MAX));
    drop(writer);
    drop(store);
    outcome.map(|()| Exit::Ok)
}

/// Opens the home as its owner, with other bounds than the usual.
fn open_with(context: &Context, limits: Limits) -> Result<(Store, BootId), Failure> {
    let opener = opener()?;
    let layout = Layout::new(&context.home);
    let store = Store::open_with(context.disk(), layout, opener, Arc::new(SystemClock), limits)?;
    Ok((store, opener.boot_id))
}

/// Opens the sessions of the home that can be written to, and makes the rest.
fn sessions(store: &Store, boot: BootId, count: usize) -> Result<Vec<(SessionId, Script)>, Failure> {
    let mut known = Vec::new();
    let listed = store.survey(|session, loaded| {
        let usable = loaded.is_ok_and(|loaded| {
            loaded.damage.is_none()
                && !loaded.state.deleted
                && !loaded.state.closed
                && loaded.state.is_created()
        });
        if usable {
            known.push(session);
        }
    });
    listed.map_err(|error| Failure::failed("sessions_unreadable", error))?;
    known.sort_unstable();
    let mut sessions = Vec::with_capacity(count);
    for session in known {
        if sessions.len() == count {
            break;
        }
        // The list cache may know a session that cannot be used all the same.
        match store.open_session(session) {
            Ok(current) => {
                let rng = Rng::new(random()? as u64);
                sessions.push((session, Script::from_state(&current.state, boot, id_millis(), rng)));
            }
            Err(error) => anstream::eprintln!("passed over {session}: {error}"),
        }
    }
    while sessions.len() < count {
        let session = SessionId::mint(id_millis(), random()?);
        store.create(session).map_err(|error| Failure::failed("session_exists", error))?;
        sessions.push((session, Script::new(session, boot, id_millis(), Rng::new(random()? as u64))));
    }
    Ok(sessions)
}

struct Writer<'a> {
    store: &'a Store,
    sessions: Vec<(SessionId, Script)>,
    persist: Durability,
    sender: Sender<Ack>,
    under_way: usize,
}

impl Writer<'_> {
    fn run(&mut self, acks: &Receiver<Ack>, until: Option<Instant>, most: u64) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let (mut count, mut records) = (0_u64, 0_u64);
        for _ in 0..DEPTH {
            (0..self.sessions.len()).for_each(|index| self.submit(index));
        }
        while self.under_way > 0 {
            // We hold a sender ourselves: this ends by the count alone.
            let Ok(ack) = acks.recv() else { break };
            self.under_way -= 1;
            let session = self.sessions[ack.index].0;
            match ack.outcome {
                Ok(Receipt { first_seq, last_seq, last_hash, .. }) => {
                    let persist = if ack.persist == Persist::Disk { "disk" } else { "process" };
                    writeln!(out, "ack {session} {first_seq} {last_seq} {last_hash} {persist}")?;
                    out.flush()?;
                    count += 1;
                    records += 1 + last_seq - first_seq;
                }
                Err(error) => {
                    anstream::eprintln!("refused {session}: {error}");
                    continue;
                }
            }
            if records >= most || until.is_some_and(|until| Instant::now() >= until) {
                continue;
            }
            self.submit(ack.index);
            if count.is_multiple_of(SNAPSHOT_EVERY) {
                self.store.snapshot(session)?;
            }
            if count.is_multiple_of(CHECKPOINT_EVERY) {
                let done = self.store.committer().checkpoint();
                done.map_err(|error| Failure::failed("checkpoint_failed", error))?;
            }
        }
        Ok(())
    }

    fn submit(&mut self, index: usize) {
        let (session, script) = &mut self.sessions[index];
        let step = script.step();
        let persist = match self.persist {
            Durability::Disk => Persist::Disk,
            Durability::Process => Persist::Process,
            Durability::Mixed if step.durable => Persist::Disk,
            Durability::Mixed => Persist::Process,
        };
        let append = Append { persist, ..Append::durable(*session, step.records) };
        let sender = self.sender.clone();
        self.under_way += 1;
        self.store.committer().submit_with(append, move |outcome| {
            let outcome = outcome.map(|receipts| receipts.first);
            let _ = sender.send(Ack { index, persist, outcome });
        });
    }
}

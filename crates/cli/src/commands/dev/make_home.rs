//! `rekindle dev make-home`: a home of any size with sessions as they really look, made fast.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rekindle_domain::event::Raw;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_seeded::Rng;
use rekindle_store::Store;
use rekindle_store::commit::{Append, Commits, Current};
use rekindle_store::disk::{Disk, OpenMode, RealDisk, write_all_at};
use serde_json::json;

use super::script::{Script, Step};
use super::unsynced::Unsynced;
use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::output::{self, plural};

/// Make a home with sessions in it, or add some to one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many sessions
    #[arg(long, default_value_t = 20)]
    sessions: u64,
    /// About how many records each
    #[arg(long, default_value_t = 40)]
    records: u64,
    /// The seed of everything but the times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave no session unfinished or interrupted
    #[arg(long)]
    finished: bool,
}

/// When the first session's id was minted; the others follow by the minute.
const FIRST_MILLIS: u64 = 1_771_668_000_000;

/// About so many sessions have a payload in a blob: enough to check, and each costs a few syncs.
const WITH_BLOB: u64 = 20;
/// One session in so many has no snapshot.
const BARE_EVERY: u64 = 10;

/// How a session is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Finished,
    Interrupted,
    Unfinished,
    Waiting,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (store, boot) = super::open(context, Arc::new(Unsynced))?;
    let sessions = fill(&store, boot, args)?;
    write_caches(&store, &sessions)?;
    let place = store.layout().home().to_owned();
    drop(store);
    let mut out = output::stdout();
    if context.json {
        writeln!(out, "{}", json!({"home": place.to_string_lossy(), "sessions": sessions.len()}))?;
    } else {
        writeln!(out, "{} in {}", plural(sessions.len() as u64, "session"), place.display())?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Appends everything, many sessions at a time under way.
fn fill(store: &Store, boot: BootId, args: &Args) -> Result<Vec<SessionId>, Failure> {
    let mut rng = Rng::new(args.seed);
    let failed = Arc::new(AtomicU64::new(0));
    let mut sessions = Vec::new();
    for number in 0..args.sessions {
        let session = SessionId::mint(FIRST_MILLIS + number * 60_000, rng.bits());
        store.create(session).map_err(|error| Failure::failed("session_exists", error))?;
        let mut script = Script::new(session, boot, Rng::new(rng.next_u64()));
        let left = match number % 8 {
            _ if args.finished => Left::Finished,
            3 => Left::Interrupted,
            5 => Left::Unfinished,
            6 => Left::Waiting,
            _ => Left::Finished,
        };
        if number.is_multiple_of(args.sessions.div_ceil(WITH_BLOB).max(WITH_BLOB)) {
            submit(store, session, say_much(store, &mut script, number)?, &failed);
        }
        for step in steps(&mut script, args.records, left) {
            submit(store, session, step, &failed);
        }
        sessions.push(session);
    }
    store.committer().sync().map_err(|error| Failure::failed("append_failed", error))?;
    match failed.load(Ordering::Relaxed) {
        0 => Ok(sessions),
        count => Err(Failure::failed("append_failed", anyhow::anyhow!("{count} appends were refused"))),
    }
}

fn submit(store: &Store, session: SessionId, step: Step, failed: &Arc<AtomicU64>) {
    let failed = failed.clone();
    store.committer().submit_with(Append::quick(session, step.records), move |outcome| {
        failed.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
    });
}

/// Begins a session with a message that is too long for the log.
fn say_much(store: &Store, script: &mut Script, number: u64) -> Result<Step, Failure> {
    let fail = |error: anyhow::Error| Failure::failed("blob", error);
    let text = format!("A message that is too long for the log, number {number}. ").repeat(6000);
    let bytes = serde_json::to_vec(&text).map_err(|error| fail(error.into()))?;
    let reference = store.blobs().put(&bytes).map_err(|error| fail(error.into()))?;
    let content = Raw::from_value(&reference).map_err(|error| fail(error.into()))?;
    let Step { mut records, durable } = script.next();
    records.extend(script.say_with(content).records);
    Ok(Step { records, durable })
}

fn steps(script: &mut Script, records: u64, left: Left) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut count = 0;
    let mut add = |step: Step| {
        count += step.records.len() as u64;
        steps.push(step);
        count
    };
    // The last records are for the end.
    while add(script.next()) + 3 < records {}
    match left {
        Left::Unfinished => {}
        Left::Waiting => {
            while !script.is_prompted() {
                add(script.next());
            }
            add(script.wait());
        }
        Left::Interrupted => drop(add(script.interrupt())),
        Left::Finished => {
            while let Some(step) = script.finish() {
                add(step);
            }
        }
    }
    steps
}

/// Writes snapshots, token indexes and the list cache, as the store would but without syncing each.
fn write_caches(store: &Store, sessions: &[SessionId]) -> Result<(), Failure> {
    let fail = |error| Failure::failed("cache", anyhow::Error::new(error).context("cannot write a cache"));
    let mut states = Vec::with_capacity(sessions.len());
    for (number, session) in sessions.iter().enumerate() {
        let Some(Current { state, tokens, .. }) = store.committer().current(*session) else { continue };
        if !(number as u64 + 1).is_multiple_of(BARE_EVERY) {
            if state.token_records > 0 {
                write(&store.layout().tokens(*session), &*tokens).map_err(fail)?;
            }
            write(&store.layout().snapshot(*session), &*state).map_err(fail)?;
        }
        states.push(state);
    }
    store.write_index(states.iter().map(|state| &**state)).map_err(fail)
}

fn write(path: &Path, cache: &impl serde::Serialize) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(cache).map_err(std::io::Error::other)?;
    let file = RealDisk.open(path, OpenMode::Replace)?;
    write_all_at(&*file, &bytes, 0)
}

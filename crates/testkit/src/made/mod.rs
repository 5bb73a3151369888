//! Made-up homes: of any size, with sessions as they really look, made fast. What happens in a session is in `script`.

mod script;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use rekindle_domain::event::Raw;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_seeded::Rng;
use rekindle_store::Store;
use rekindle_store::commit::{Append, Commits, Current};
use rekindle_store::disk::{Disk, OpenMode, RealDisk, write_all_at};

pub use script::{Script, Step};

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// How many sessions.
    pub sessions: u64,
    /// About how many records each.
    pub records: u64,
    /// The seed of everything but the times.
    pub seed: u64,
    /// No session is left unfinished or interrupted.
    pub finished: bool,
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

/// Puts sessions into a home, caches included; returns them. It is fastest on a disk that does not sync: [`Unsynced`](crate::tapped::Unsynced). Ids begin
/// with `millis`, but for those of the sessions.
pub fn fill(store: &Store, boot: BootId, millis: u64, wanted: &Wanted) -> anyhow::Result<Vec<SessionId>> {
    let sessions = append(store, boot, millis, wanted)?;
    write_caches(store, &sessions).context("cannot write a cache")?;
    Ok(sessions)
}

/// Appends everything, many sessions at a time under way.
fn append(store: &Store, boot: BootId, millis: u64, wanted: &Wanted) -> anyhow::Result<Vec<SessionId>> {
    let mut rng = Rng::new(wanted.seed);
    let failed = Arc::new(AtomicU64::new(0));
    let mut sessions = Vec::new();
    for number in 0..wanted.sessions {
        let session = SessionId::mint(FIRST_MILLIS + number * 60_000, rng.bits());
        store.create(session).context("a session cannot be made")?;
        let mut script = Script::new(session, boot, millis, Rng::new(rng.next_u64()));
        let left = match number % 8 {
            _ if wanted.finished => Left::Finished,
            3 => Left::Interrupted,
            5 => Left::Unfinished,
            6 => Left::Waiting,
            _ => Left::Finished,
        };
        if number.is_multiple_of(wanted.sessions.div_ceil(WITH_BLOB).max(WITH_BLOB)) {
            submit(store, session, say_much(store, &mut script, number)?, &failed);
        }
        for step in steps(&mut script, wanted.records, left) {
            submit(store, session, step, &failed);
        }
        sessions.push(session);
    }
    store.committer().sync().context("appends cannot be synced")?;
    let failed = failed.load(Ordering::Relaxed);
    ensure!(failed == 0, "{failed} appends were refused");
    Ok(sessions)
}

fn submit(store: &Store, session: SessionId, step: Step, failed: &Arc<AtomicU64>) {
    let failed = failed.clone();
    store.committer().submit_with(Append::quick(session, step.records), move |outcome| {
        failed.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
    });
}

/// Begins a session with a message that is too long for the log.
fn say_much(store: &Store, script: &mut Script, number: u64) -> anyhow::Result<Step> {
    let text = format!("A message that is too long for the log, number {number}. ").repeat(6000);
    let bytes = serde_json::to_vec(&text)?;
    let reference = store.blobs().put(&bytes).context("a blob cannot be put")?;
    let content = Raw::from_value(&reference)?;
    let Step { mut records, durable } = script.step();
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
    while add(script.step()) + 3 < records {}
    match left {
        Left::Unfinished => {}
        Left::Waiting => {
            while !script.is_prompted() {
                add(script.step());
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
fn write_caches(store: &Store, sessions: &[SessionId]) -> std::io::Result<()> {
    let mut states = Vec::with_capacity(sessions.len());
    for (number, session) in sessions.iter().enumerate() {
        let Some(Current { state, tokens, .. }) = store.current(*session) else { continue };
        if !(number as u64 + 1).is_multiple_of(BARE_EVERY) {
            if state.token_records > 0 {
                write(&store.layout().tokens(*session), &*tokens)?;
            }
            write(&store.layout().snapshot(*session), &*state)?;
        }
        states.push(state);
    }
    store.write_index(states.iter().map(|state| &**state), false)
}

fn write(path: &Path, cache: &impl serde::Serialize) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(cache).map_err(std::io::Error::other)?;
    let file = RealDisk.open(path, OpenMode::Replace)?;
    write_all_at(&*file, &bytes, 0)
}

/// Returns `rekindle-dev`, which stands beside a program of the product. It is an example of the package `rekindle`, which cargo
/// builds with all tests of it, but not with a single `--test` target.
pub fn dev_program(product: &str) -> PathBuf {
    let program = Path::new(product).with_file_name("examples").join("rekindle-dev");
    assert!(program.is_file(), "build it first: cargo build -p rekindle --example rekindle-dev");
    program
}

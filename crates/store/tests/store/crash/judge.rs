//! Holds a disk after a crash against what the workload was told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::event::Event;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_domain::session::SessionState;
use rekindle_store::blobs::BlobRef;
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::{Completion, LoadError, Store, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use super::ledger::{Attempt, Entry, Sure, attempts};
use crate::common::{marked, open};

/// Opens a disk after a crash, perhaps crashing again in the middle of that, and judges it.
pub(crate) fn judge(disk: &SimDisk, entries: &[Entry], power: bool, rng: &mut Rng) -> Result<(), String> {
    let clock = Arc::new(SimClock::default());
    let mut disk = disk.fork();
    let mut power = power;
    let again = rng.chance(1, 4);
    if again {
        let cut = rng.chance(3, 4);
        disk = crash_while_opening(&disk, &clock, cut, rng);
        power |= cut;
    }
    let store = open(&disk, &clock).map_err(|error| format!("cannot open: {error:?}"))?;
    no_damage(&store)?;
    let expected = attempts(entries, power);
    let logs = read_logs(&store, &disk)?;
    compare(&expected, &logs, entries)?;
    together(&expected, &logs, entries)?;
    the_gone_were_deleted(&expected, &logs, entries, (!again).then_some(&store), &disk)?;
    caches_change_nothing(&store, &disk, &clock, &logs)?;
    if rng.chance(1, 4) {
        appends_go_on(&store, &disk, &clock, logs.keys().next(), rng)?;
    }
    Ok(())
}

fn crash_while_opening(disk: &SimDisk, clock: &Arc<SimClock>, cut: bool, rng: &mut Rng) -> SimDisk {
    let images = Arc::new(Mutex::new(Vec::new()));
    let (seen, handle) = (images.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(handle.fork());
    }));
    let opened = open(disk, clock);
    disk.clear_observer();
    drop(opened);
    let images = images.lock().unwrap_or_else(PoisonError::into_inner);
    let image = if images.is_empty() { disk } else { rng.pick(&images) };
    if cut { image.power_cut(rng) } else { image.process_kill(rng) }
}

fn no_damage(store: &Store<Inline>) -> Result<(), String> {
    let recovered = store.recovered();
    if !recovered.wal_damage.is_empty() {
        return Err(format!("the write-ahead log is called damaged: {:?}", recovered.wal_damage));
    }
    for (session, completion) in &recovered.streams {
        if let Completion::Damaged(damage) = completion {
            return Err(format!("{session} is called damaged: {damage:?}"));
        }
    }
    Ok(())
}

struct Log {
    markers: Vec<u64>,
    deleted: bool,
    /// As the list has it.
    listed: SessionState,
}

fn read_logs(store: &Store<Inline>, disk: &SimDisk) -> Result<BTreeMap<SessionId, Log>, String> {
    let mut logs = BTreeMap::new();
    let mut failures = Vec::new();
    let foreign = store.survey(|session, loaded| match loaded {
        Ok(loaded) if loaded.damage.is_none() && loaded.torn.is_none() && loaded.oddities.is_empty() => {
            let (deleted, listed) = (loaded.state.deleted, loaded.state);
            logs.insert(session, Log { markers: Vec::new(), deleted, listed });
        }
        other => failures.push(format!("{session}: {other:?}")),
    });
    let foreign = foreign.map_err(|error| error.to_string())?;
    if !failures.is_empty() || !foreign.is_empty() {
        return Err(format!("unreadable: {failures:?}, foreign: {foreign:?}"));
    }
    for (session, log) in &mut logs {
        let bytes = disk.read_file(store.layout().log(*session)).ok_or("a listed log is gone")?;
        log.markers = markers(store, *session, &bytes)?;
    }
    Ok(logs)
}

/// Reads the markers of a log, checking numbers, chain, lists and blobs on the way.
fn markers(store: &Store<Inline>, session: SessionId, bytes: &[u8]) -> Result<Vec<u64>, String> {
    let mut markers = Vec::new();
    let (mut seq, mut hash, mut more) = (0, None, false);
    for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
        let bytes = bytes.strip_suffix(b"\n").ok_or(format!("{session} ends in half a line"))?;
        let line = Line::parse(bytes).map_err(|error| format!("{session} after {seq}: {error}"))?;
        seq += 1;
        if line.seq != seq || !line.follows(session, hash) {
            return Err(format!("{session}: record {} does not follow", line.seq));
        }
        (hash, more) = (line.hash, line.more);
        let event = line.event().map_err(|error| error.to_string())?;
        if let Event::AgentNotice(notice) = event {
            let marker = notice.what.strip_prefix('m').and_then(|digits| digits.parse().ok());
            markers.push(marker.ok_or("a record without a marker")?);
            if let Some(raw) = notice.raw {
                let blob: BlobRef = serde_json::from_str(raw.as_json()).map_err(|error| error.to_string())?;
                store.blobs().get(&blob.blob).map_err(|error| format!("{session}: {error}"))?;
            }
        }
    }
    if more { Err(format!("{session} ends in half a list")) } else { Ok(markers) }
}

fn compare(expected: &[Attempt], logs: &BTreeMap<SessionId, Log>, entries: &[Entry]) -> Result<(), String> {
    let mut by_session: BTreeMap<SessionId, Vec<&Attempt>> = BTreeMap::new();
    for attempt in expected {
        by_session.entry(attempt.session).or_default().push(attempt);
    }
    for session in logs.keys() {
        if !by_session.contains_key(session) {
            return Err(format!("{session} came from nowhere"));
        }
    }
    for (session, attempts) in by_session {
        let started =
            entries.iter().any(|entry| matches!(entry, Entry::Removing { session: s } if *s == session));
        let removed =
            entries.iter().any(|entry| matches!(entry, Entry::Removed { session: s } if *s == session));
        match logs.get(&session) {
            Some(_) if removed => return Err(format!("{session} was removed and is back")),
            Some(log) => {
                follow(&attempts, log)
                    .map_err(|why| format!("{session}: {why}; told {attempts:?}; found {:?}", log.markers))?;
            }
            // A deletion that reached the disk is finished at the next start.
            None if started
                || attempts.iter().any(|attempt| attempt.deletes && attempt.sure != Sure::NotThere) => {}
            None => {
                if let Some(lost) = attempts.iter().find(|attempt| attempt.sure == Sure::There) {
                    return Err(format!("{session} is gone, with {lost:?}"));
                }
            }
        }
    }
    Ok(())
}

/// What was appended to several sessions at once is in all of them, or in none; in one that was deleted since it is not missed.
fn together(expected: &[Attempt], logs: &BTreeMap<SessionId, Log>, entries: &[Entry]) -> Result<(), String> {
    for entry in entries {
        let Entry::Together { attempts } = entry else { continue };
        let parts = attempts.iter().filter_map(|attempt| expected.get(*attempt));
        let there: Vec<bool> = parts
            .filter_map(|part| {
                let log = logs.get(&part.session)?;
                Some(log.markers.windows(part.markers.len()).any(|markers| markers == part.markers))
            })
            .collect();
        if there.contains(&true) && there.contains(&false) {
            return Err(format!(
                "of one append some parts are there and some are not: {attempts:?} {there:?}"
            ));
        }
    }
    Ok(())
}

/// A session may be gone only because its deletion is on disk: its removal began, or opening finished it. Then
/// nothing of it is left. `opened` is the store if it was opened once, so that it can tell what it removed.
fn the_gone_were_deleted(
    expected: &[Attempt],
    logs: &BTreeMap<SessionId, Log>,
    entries: &[Entry],
    opened: Option<&Store<Inline>>,
    disk: &SimDisk,
) -> Result<(), String> {
    let gone = expected.iter().filter(|attempt| attempt.deletes && !logs.contains_key(&attempt.session));
    for Attempt { session, .. } in gone {
        let name = format!("/{session}.");
        let paths = disk.paths().into_iter().map(|path| path.to_string_lossy().into_owned());
        if let Some(path) = paths.into_iter().find(|path| path.contains(&name)) {
            return Err(format!("{session} is gone, but not {path}"));
        }
        let started =
            entries.iter().any(|entry| matches!(entry, Entry::Removing { session: s } if s == session));
        let removed = |store: &Store<Inline>| {
            store.recovered().streams.iter().any(|(id, done)| *id == *session && *done == Completion::Removed)
        };
        if !started && opened.is_some_and(|store| !removed(store)) {
            return Err(format!("{session} is gone, and nobody removed it"));
        }
    }
    Ok(())
}

/// Checks one log against the appends of its session, in order.
fn follow(attempts: &[&Attempt], log: &Log) -> Result<(), String> {
    let mut rest = &log.markers[..];
    let mut ended = false;
    let mut deleted = false;
    for attempt in attempts {
        if attempt.deletes {
            if attempt.sure == Sure::There && !log.deleted {
                return Err("an acknowledged deletion is undone".into());
            }
            deleted |= attempt.sure != Sure::NotThere;
            continue;
        }
        let there = rest.starts_with(&attempt.markers);
        match attempt.sure {
            Sure::NotThere if there => return Err(format!("refused {:?} is there", attempt.markers)),
            Sure::There if !there => return Err(format!("acknowledged {:?} is missing", attempt.markers)),
            Sure::There if ended => {
                return Err(format!("{:?} is there without what came before", attempt.markers));
            }
            Sure::Tail | Sure::Either if there && ended => {
                return Err(format!("{:?} is there without what came before", attempt.markers));
            }
            Sure::Tail if !there => ended = true,
            _ => {}
        }
        if there {
            rest = &rest[attempt.markers.len()..];
        }
    }
    if log.deleted && !deleted {
        return Err("it is deleted, but nobody asked for that".into());
    }
    if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?} repeated, torn or out of order")) }
}

/// I2: snapshots, token indexes and the list may go; what is read stays the same.
fn caches_change_nothing(
    store: &Store<Inline>,
    disk: &SimDisk,
    clock: &Arc<SimClock>,
    logs: &BTreeMap<SessionId, Log>,
) -> Result<(), String> {
    let bare = disk.fork();
    for path in bare.paths() {
        let name = path.to_string_lossy();
        if name.starts_with("/home/sessions") && !name.ends_with(".messages.jsonl") {
            bare.remove(&path);
        }
    }
    let bare = open(&bare, clock).map_err(|error| format!("cannot open without caches: {error:?}"))?;
    for (session, log) in logs {
        let with = store.load(*session, Want::Everything).map_err(|error: LoadError| error.to_string())?;
        let without = bare.load(*session, Want::Everything).map_err(|error| error.to_string())?;
        if with.state != without.state || with.tokens != without.tokens {
            return Err(format!("{session}: caches disagree: {:?} and {:?}", with.state, without.state));
        }
        if log.listed != without.state {
            return Err(format!("{session}: the list says {:?}, not {:?}", log.listed, without.state));
        }
    }
    Ok(())
}

fn appends_go_on(
    store: &Store<Inline>,
    disk: &SimDisk,
    clock: &Arc<SimClock>,
    session: Option<&SessionId>,
    rng: &mut Rng,
) -> Result<(), String> {
    let Some(session) = session else { return Ok(()) };
    let current = store.open_session(*session).map_err(|error| error.to_string())?;
    if current.state.deleted {
        return Ok(());
    }
    let append = Append::durable(*session, vec![marked(u64::MAX, 5, None)]);
    let receipt = store.append(append).map_err(|error| format!("cannot append after recovery: {error}"))?;
    if rng.chance(1, 2) {
        store.committer().checkpoint().map_err(|error| format!("no checkpoint after recovery: {error}"))?;
    }
    let again = open(&disk.power_cut(rng), clock).map_err(|error| format!("cannot open again: {error:?}"))?;
    no_damage(&again)?;
    let loaded = again.load(*session, Want::Status).map_err(|error| error.to_string())?;
    if loaded.state.last_seq != receipt.last_seq {
        return Err(format!(
            "{session} is at {} after an append at {}",
            loaded.state.last_seq, receipt.last_seq
        ));
    }
    Ok(())
}

//! Harm to everything but session logs: caches, the home's description, the write-ahead log, blobs, names and
//! permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rekindle_store::layout::{Layout, SessionFile, segment_number, session_file};
use serde_json::{Value, json};

use super::{Done, Target, names, read, write};

fn done(path: PathBuf, byte: Option<u64>, what: String) -> anyhow::Result<Done> {
    Ok(Done { path, byte, line: None, what })
}

pub(super) fn delete_caches(target: &mut Target) -> anyhow::Result<Done> {
    let directory = target.layout.sessions();
    let mut count = 0;
    for name in names(&directory)? {
        if matches!(
            session_file(&name),
            SessionFile::Snapshot(_) | SessionFile::Tokens(_) | SessionFile::Index
        ) {
            fs::remove_file(directory.join(name))?;
            count += 1;
        }
    }
    done(directory, None, format!("removed {count} caches"))
}

/// Reads a session's snapshot or token index.
fn cache(path: &Path) -> anyhow::Result<Value> {
    serde_json::from_slice(&read(path)?).with_context(|| format!("{} is no JSON", path.display()))
}

fn has_snapshot(layout: &Layout, session: rekindle_domain::id::SessionId) -> bool {
    layout.snapshot(session).is_file()
}

pub(super) fn corrupt_snapshot(target: &mut Target) -> anyhow::Result<Done> {
    let session = target.pick(has_snapshot)?;
    let path = target.layout.snapshot(session);
    let bytes = read(&path)?;
    let half = bytes.len() / 2;
    write(&path, &bytes[..half])?;
    done(path, Some(half as u64), format!("cut the snapshot at byte {half} of {}", bytes.len()))
}

pub(super) fn newer_snapshot(target: &mut Target) -> anyhow::Result<Done> {
    let session = target.pick(has_snapshot)?;
    let path = target.layout.snapshot(session);
    let mut snapshot = cache(&path)?;
    snapshot["version"] = json!(99);
    write(&path, snapshot.to_string().as_bytes())?;
    done(path, None, "the snapshot is of version 99".into())
}

pub(super) fn newer_home(target: &mut Target) -> anyhow::Result<Done> {
    let path = target.layout.home_file();
    write(&path, br#"{"format":99}"#)?;
    done(path, None, "the home is of format 99".into())
}

/// Where a segment's frames are. The bytes are described in the on-disk format.
fn frames(bytes: &[u8]) -> Vec<(usize, usize)> {
    const HEADER: usize = 44;
    const HEAD: usize = 16;
    let mut frames = Vec::new();
    let mut at = HEADER;
    while bytes.get(at..at + 2) == Some(&[0xf7, 0xe6]) {
        let Some(len) = number(bytes, at + 4) else { break };
        let end = at + HEAD + len;
        if end > bytes.len() {
            break;
        }
        frames.push((at, end));
        at = end;
    }
    frames
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes) as usize)
}

fn newest_segment(layout: &Layout) -> anyhow::Result<PathBuf> {
    let newest = names(&layout.wal())?.iter().filter_map(|name| segment_number(name)).max();
    Ok(layout.segment(newest.context("there is no write-ahead log")?))
}

pub(super) fn wal_flip(target: &mut Target) -> anyhow::Result<Done> {
    let path = newest_segment(&target.layout)?;
    let mut bytes = read(&path)?;
    let frames = frames(&bytes);
    // Only what a later frame vouches for was on disk for sure; the rest would pass for a torn end.
    let synced = frames.last().and_then(|(start, _)| number(&bytes, start + 8)).unwrap_or(0);
    let sure: Vec<_> =
        frames.iter().filter(|(_, end)| *end <= synced).take(frames.len().saturating_sub(1)).collect();
    let (place, at) = match sure.get(target.rng.index(sure.len())) {
        Some((start, end)) => (*start, (*start + *end) / 2),
        None => (0, 20),
    };
    bytes[at] ^= 0x01;
    write(&path, &bytes)?;
    let what = format!("byte {at}, in what begins at byte {place}, is {:#04x} now", bytes[at]);
    done(path, Some(place as u64), what)
}

pub(super) fn wal_tear(target: &mut Target) -> anyhow::Result<Done> {
    let path = newest_segment(&target.layout)?;
    let bytes = read(&path)?;
    let (start, end) = frames(&bytes).last().copied().context("the write-ahead log has no frame")?;
    let cut = (start + end) / 2;
    write(&path, &bytes[..cut])?;
    done(path, Some(start as u64), format!("cut at byte {cut}, in the frame that begins at byte {start}"))
}

pub(super) fn rubbish_files(target: &mut Target) -> anyhow::Result<Done> {
    let layout = &target.layout;
    let rubbish = [
        layout.home().join("notes.txt"),
        layout.home().join("home.json.tmp"),
        layout.sessions().join("sess_old.bak"),
        layout.sessions().join("sess_123.json.tmp"),
        layout.sessions().join("sess_.messages.jsonl"),
        layout.wal().join("core"),
        layout.blobs().join("README"),
    ];
    for path in &rubbish {
        write(path, b"rubbish\n")?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    let names: Vec<String> = rubbish.iter().map(|path| path.display().to_string()).collect();
    done(layout.home().to_owned(), None, format!("wrote {}", names.join(", ")))
}

pub(super) fn bad_modes(target: &mut Target) -> anyhow::Result<Done> {
    let session = target.pick(|_, _| true)?;
    let (log, directory) = (target.layout.log(session), target.layout.sessions());
    fs::set_permissions(&log, fs::Permissions::from_mode(0o644))?;
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
    done(log, None, format!("made it 0644, and {} 0755", directory.display()))
}

pub(super) fn missing_blob(target: &mut Target) -> anyhow::Result<Done> {
    let root = target.layout.blobs();
    let mut blobs = Vec::new();
    for shard in names(&root)? {
        let shard = root.join(shard);
        if shard.is_dir() {
            blobs.extend(names(&shard)?.into_iter().map(|name| shard.join(name)));
        }
    }
    let index = target.rng.index(blobs.len());
    let path = blobs.get(index).context("the home has no blob")?.clone();
    fs::remove_file(&path)?;
    done(path, None, "removed the blob".into())
}

pub(super) fn stale_tokens(target: &mut Target) -> anyhow::Result<Done> {
    let used = |path: &Path| -> Option<(Value, String)> {
        let index = cache(path).ok()?;
        let tokens = index["tokens"].as_object()?;
        let (id, _) = tokens.iter().find(|(_, token)| token["state"]["state"] != json!("active"))?;
        let id = id.clone();
        Some((index, id))
    };
    let session = target.pick(|layout, session| used(&layout.tokens(session)).is_some())?;
    let path = target.layout.tokens(session);
    let (mut index, id) = used(&path).context("no used token")?;
    index["tokens"][&id]["state"] = json!({"state": "active"});
    write(&path, index.to_string().as_bytes())?;
    done(path, None, format!("{id} is active again"))
}

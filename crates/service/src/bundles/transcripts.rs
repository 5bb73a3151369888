//! Transcripts: what an agent wrote down of a session itself, found where the table of known agents says, and put there elsewhere. Only
//! there, and never over a file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rekindle_agent::known::{AgentDirectories, KnownAgent, TranscriptPlace, by_id, is_plain_id};
use rekindle_domain::bundle::BundledTranscript;
use rekindle_domain::session::SessionState;
use rekindle_store::disk::{Disk, EntryKind, OpenMode, if_exists};

use super::BundleError;

/// Most paths that are looked at: years of sessions, in any number of directories.
const MOST_PATHS: usize = 100_000;

/// How much is read at a time.
const CHUNK: usize = 1 << 16;

/// A transcript that was found.
pub(super) struct Found {
    /// What the table of contents says of it.
    pub(super) bundled: BundledTranscript,
    /// Its file.
    pub(super) file: PathBuf,
    /// How much of it counts: its agent may be writing the last line.
    pub(super) size: u64,
}

/// Returns the agent of a session, where it keeps transcripts and the id that it knows the session by.
fn known(state: &SessionState) -> Result<(&'static KnownAgent, TranscriptPlace, &str), String> {
    let agent = match (&state.provider.command, &state.provider.agent) {
        (None, Some(agent)) => by_id(agent),
        _ => None,
    };
    let agent =
        agent.ok_or("its agent is a command, and it is not known where that keeps its transcripts")?;
    let place = agent
        .transcript
        .ok_or_else(|| format!("it is not known where {} keeps its transcripts", agent.title))?;
    let cursor = state.agent.as_ref().and_then(|agent| agent.cursor.as_deref());
    let id = cursor.filter(|id| is_plain_id(id)).ok_or("its agent has no session of its own yet")?;
    Ok((agent, place, id))
}

/// Finds the transcript of a session, or says why there is none.
pub(super) fn find(
    disk: &dyn Disk,
    directories: &AgentDirectories,
    state: &SessionState,
) -> Result<Result<Found, String>, BundleError> {
    let (agent, place, id) = match known(state) {
        Ok(known) => known,
        Err(why) => return Ok(Err(why)),
    };
    let Some(directory) = directories.find(&place) else {
        return Ok(Err(format!("it is not known where {} keeps its files", agent.title)));
    };
    let unusable = |source| BundleError::Io { path: directory.clone(), source };
    let Some(path) = newest(disk, &directory, &place, id).map_err(unusable)? else {
        return Ok(Err(format!("{} has no transcript of {id} in {}", agent.title, directory.display())));
    };
    let file = directory.join(&path);
    let unread = |source| BundleError::Io { path: file.clone(), source };
    let size = whole_lines(disk, &file).map_err(unread)?;
    Ok(Ok(Found { bundled: BundledTranscript { agent: agent.id.into(), path }, size, file }))
}

/// Finds the newest file that fits, by its path below the agent's directory.
fn newest(disk: &dyn Disk, root: &Path, place: &TranscriptPlace, id: &str) -> io::Result<Option<String>> {
    let (mut open, mut looked) = (vec![String::new()], 0);
    let last = place.segments.len().saturating_sub(1);
    for (depth, segment) in place.segments.iter().enumerate() {
        let mut next = Vec::new();
        let wanted = if depth == last { EntryKind::File } else { EntryKind::Dir };
        for path in open {
            for entry in if_exists(disk.list(&root.join(&path)))?.unwrap_or_default() {
                looked += 1;
                if looked > MOST_PATHS {
                    return Err(io::Error::other("there are too many files to search"));
                }
                if entry.kind == wanted && segment.fits(&entry.name, id) {
                    let above = if path.is_empty() { "" } else { "/" };
                    next.push(format!("{path}{above}{}", entry.name));
                }
            }
        }
        open = next;
    }
    let dated = open.into_iter().map(|path| Ok((disk.stat(&root.join(&path))?.modified, path)));
    let dated = dated.collect::<io::Result<Vec<_>>>()?;
    Ok(dated.into_iter().max().map(|(_, path)| path))
}

/// Returns how many bytes of a file are whole lines.
fn whole_lines(disk: &dyn Disk, path: &Path) -> io::Result<u64> {
    let file = disk.open(path, OpenMode::Read)?;
    let (mut end, mut buffer) = (file.len_at_open()?, vec![0; CHUNK]);
    while end > 0 {
        let begin = end.saturating_sub(CHUNK as u64);
        let piece = &mut buffer[..(end - begin) as usize];
        rekindle_store::disk::read_exact_at(&*file, piece, begin)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Returns where the transcript of a session goes that comes from elsewhere, or why it goes nowhere.
pub(super) fn destination(
    directories: &AgentDirectories,
    state: &SessionState,
    bundled: &BundledTranscript,
    working_dir: &str,
) -> Result<PathBuf, String> {
    let (agent, place, id) = known(state)?;
    if agent.id != bundled.agent {
        return Err("it is from a different agent than the session's".into());
    }
    if !place.fits(&bundled.path, id) {
        return Err(format!("{} keeps no transcript under such a name", agent.title));
    }
    let moved = place.moved(&bundled.path, id, (&state.working_dir, working_dir));
    let path = moved.ok_or("it is not known where its agent looks for it in this directory")?;
    let directory = directories.find(&place);
    Ok(directory.ok_or_else(|| format!("it is not known where {} keeps its files", agent.title))?.join(path))
}

/// Tells whether a place is free, or has these very bytes already.
pub(super) fn is_free_for(place: &Path, bytes: &mut dyn Read) -> io::Result<bool> {
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(found) if !found.is_file() => Ok(false),
        Ok(_) => is_same(&mut File::open(place)?, bytes),
    }
}

fn is_same(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let mut buffers = [vec![0; CHUNK], vec![0; CHUNK]];
    loop {
        let [a, b] = &mut buffers;
        let (read, also) = (fill(one, a)?, fill(other, b)?);
        if a[..read] != b[..also] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(bytes: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match bytes.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Puts a transcript to its place, durably and whole or not at all. What is there stays: the same bytes are fine, others an error.
pub(super) fn put(place: &Path, open: &dyn Fn() -> io::Result<Box<dyn Read>>) -> io::Result<()> {
    let directory = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Conversations are nobody else's business.
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let temporary = place.with_extension(format!("{}.tmp", std::process::id()));
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        io::copy(&mut *open()?, &mut file)?;
        file.flush()?;
        file.sync_all()?;
        // Unlike a rename this never replaces what somebody put there meanwhile.
        match fs::hard_link(&temporary, place) {
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && is_free_for(place, &mut *open()?)? => {}
            linked => linked?,
        }
        File::open(directory)?.sync_all()
    })();
    let removed = fs::remove_file(&temporary);
    written.and(removed)
}

//! Import of sessions that another program left in files: read with suspicion, made into logs of ours with their own times. Nothing is
//! changed or removed where they come from, and a second import of the same finds what the first made.

mod history;
mod orbitmesh;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::event::Provider;
use rekindle_domain::id::SessionId;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::commit::Commits;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_store::{OpenError, Opener, Store};
use serde::Serialize;

use self::history::{Foreign, records};
use crate::drive::live::keep_large;
use crate::error::chain;

/// What is to be imported, and how.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The directory of sessions that say nothing of theirs.
    pub working_dir: Option<String>,
    /// Who answers from now on, instead of whom the source names.
    pub provider: Option<Provider>,
    /// Say what would be imported, and import nothing.
    pub dry_run: bool,
}

/// A session that was imported, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct ImportedSession {
    /// The session here.
    pub session_id: SessionId,
    /// Its file there.
    #[serde(serialize_with = "crate::upkeep::lossy")]
    pub source: PathBuf,
    /// Its title.
    pub title: String,
    /// Its directory.
    pub working_dir: String,
    /// Messages of people and agents.
    pub messages: usize,
    /// When it began.
    pub created_at: Timestamp,
}

/// Something that was not imported, and why.
#[derive(Debug, Clone, Serialize)]
pub struct NotImported {
    /// The file.
    #[serde(serialize_with = "crate::upkeep::lossy")]
    pub source: PathBuf,
    /// The line, where it is about one: what comes before and after it is imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Why not.
    pub why: String,
}

/// What came of an import.
#[derive(Debug, Default, Serialize)]
pub struct Imported {
    /// Sessions that were imported, or would be.
    pub imported: Vec<ImportedSession>,
    /// Sessions that are here already.
    pub known: Vec<ImportedSession>,
    /// What could not be read or made into a session.
    pub skipped: Vec<NotImported>,
}

/// Imports the sessions that an OrbitMesh left in a directory. The home must have no other owner meanwhile.
pub fn import_orbitmesh(
    disk: &SharedDisk,
    home: &Path,
    opener: Opener,
    clock: &Arc<dyn Clock>,
    from: &Path,
    options: &ImportOptions,
) -> Result<Imported, OpenError> {
    let (found, skipped) = orbitmesh::read(from);
    let mut outcome = Imported { skipped, ..Imported::default() };
    let target = match options.dry_run {
        true => Target::Nowhere(Layout::new(home), disk.clone()),
        false => Target::open(disk, home, opener, clock)?,
    };
    for foreign in found {
        let source = foreign.source.clone();
        match import_one(&target, foreign, options, clock.now(), &mut outcome.skipped) {
            Ok((session, true)) => outcome.imported.push(session),
            Ok((session, false)) => outcome.known.push(session),
            Err(why) => outcome.skipped.push(NotImported { source, line: None, why }),
        }
    }
    Ok(outcome)
}

/// Where sessions go.
enum Target {
    Home(Box<Store>),
    /// Nothing is written.
    Nowhere(Layout, SharedDisk),
}

impl Target {
    fn open(
        disk: &SharedDisk,
        home: &Path,
        opener: Opener,
        clock: &Arc<dyn Clock>,
    ) -> Result<Target, OpenError> {
        let store = Store::open(disk.clone(), home, opener, clock.clone())?;
        // So that the write-ahead log mentions nobody whose id is used again; without it the next start only does more.
        if let Err(error) = store.committer().checkpoint() {
            tracing::warn!("no checkpoint: {}", chain(&error));
        }
        Ok(Target::Home(Box::new(store)))
    }
}

fn import_one(
    target: &Target,
    foreign: Foreign,
    options: &ImportOptions,
    now: Timestamp,
    damaged: &mut Vec<NotImported>,
) -> Result<(ImportedSession, bool), String> {
    damaged.extend(foreign.damaged.iter().cloned());
    if foreign.entries.is_empty() && foreign.title.is_none() {
        return Err("it contains nothing that can be read".into());
    }
    let working_dir = options.working_dir.clone().or_else(|| foreign.working_dir.clone());
    let Some(working_dir) = working_dir else {
        return Err("it does not name its directory: name one with --cwd DIR".into());
    };
    let created_at = foreign.began().unwrap_or(now);
    let session = ImportedSession {
        session_id: foreign.id(created_at),
        source: foreign.source.clone(),
        title: foreign.title(),
        working_dir: working_dir.clone(),
        messages: foreign.messages(),
        created_at,
    };
    let provider = options.provider.clone().unwrap_or_else(|| foreign.provider.clone());
    let is_new = match target {
        Target::Nowhere(layout, disk) => disk.stat(&layout.log(session.session_id)).is_err(),
        Target::Home(store) => {
            let (times, mut drafts): (Vec<_>, Vec<_>) =
                records(&foreign, &session, provider).into_iter().unzip();
            keep_large(&**store, &mut drafts).map_err(|error| chain(&error))?;
            let records: Vec<_> = times.into_iter().zip(drafts).collect();
            store.import_session(session.session_id, &records).map_err(|error| chain(&error))?
        }
    };
    Ok((session, is_new))
}

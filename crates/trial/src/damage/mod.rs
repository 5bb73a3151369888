//! Harm to a home, one named kind at a time: what a crash, a disk or a hasty hand can do. Says what was done and where, so that
//! whatever looks at the home can be held against it.

mod files;
mod logs;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_seeded::Rng;
use rekindle_store::layout::{Layout, SessionFile, session_file};

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Half a record behind a log's end
    TornTail,
    /// One byte of a record in the middle of a log is another
    FlippedByte,
    /// A record in the middle of a log is gone
    MissingRecord,
    /// A record in the middle of a log stands there twice
    DuplicateRecord,
    /// A log ends in a record of a list whose end is missing
    HalfList,
    /// A log ends before the place its snapshot was made at
    CutBelowSnapshot,
    /// Every snapshot, every token index and the list cache are gone
    DeleteCaches,
    /// A snapshot is cut in the middle
    CorruptSnapshot,
    /// A snapshot is of a newer version
    NewerSnapshot,
    /// The home is of a newer version
    NewerHome,
    /// One byte of the write-ahead log is another
    WalFlip,
    /// The write-ahead log ends in the middle of a frame
    WalTear,
    /// Foreign and temporary files in every directory
    RubbishFiles,
    /// A log and a directory that others may read
    BadModes,
    /// A blob is gone
    MissingBlob,
    /// A used token is active again in its index
    StaleTokens,
}

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// To which file.
    pub path: PathBuf,
    /// From which byte on.
    pub byte: Option<u64>,
    /// In which line.
    pub line: Option<u64>,
    /// In words.
    pub what: String,
}

/// Does harm of a kind to a home, or to one session of it, by chance if there is a choice.
pub fn harm(home: &Path, kind: Kind, session: Option<SessionId>, seed: u64) -> anyhow::Result<Done> {
    Target { layout: Layout::new(home), session, rng: Rng::new(seed) }.damage(kind)
}

/// The home to be damaged, and the choices.
struct Target {
    layout: Layout,
    session: Option<SessionId>,
    rng: Rng,
}

impl Target {
    fn damage(&mut self, kind: Kind) -> anyhow::Result<Done> {
        match kind {
            Kind::TornTail => logs::torn_tail(self),
            Kind::FlippedByte => logs::flipped_byte(self),
            Kind::MissingRecord => logs::missing_record(self),
            Kind::DuplicateRecord => logs::duplicate_record(self),
            Kind::HalfList => logs::half_list(self),
            Kind::CutBelowSnapshot => logs::cut_below_snapshot(self),
            Kind::DeleteCaches => files::delete_caches(self),
            Kind::CorruptSnapshot => files::corrupt_snapshot(self),
            Kind::NewerSnapshot => files::newer_snapshot(self),
            Kind::NewerHome => files::newer_home(self),
            Kind::WalFlip => files::wal_flip(self),
            Kind::WalTear => files::wal_tear(self),
            Kind::RubbishFiles => files::rubbish_files(self),
            Kind::BadModes => files::bad_modes(self),
            Kind::MissingBlob => files::missing_blob(self),
            Kind::StaleTokens => files::stale_tokens(self),
        }
    }

    /// Chooses a session that fits, or takes the named one if it does.
    fn pick(&mut self, fits: impl Fn(&Layout, SessionId) -> bool) -> anyhow::Result<SessionId> {
        let mut sessions: Vec<SessionId> = match self.session {
            Some(session) => vec![session],
            None => names(&self.layout.sessions())?
                .iter()
                .filter_map(|name| match session_file(name) {
                    SessionFile::Log(id) => Some(id),
                    _ => None,
                })
                .collect(),
        };
        sessions.retain(|session| fits(&self.layout, *session));
        sessions.sort_unstable();
        let index = self.rng.index(sessions.len());
        sessions.get(index).copied().context("no session here is fit for that")
    }
}

/// Lists the names in a directory, sorted.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes in place, so that permissions stay.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

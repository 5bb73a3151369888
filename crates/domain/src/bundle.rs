//! Bundles: sessions in one file, to be carried away. What the table of contents says, which names its members may have, and how
//! much there may be of them: a bundle comes from anywhere, and everything about it is checked before anything is written.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::blob_id::BlobId;
use crate::chain::ChainHash;
use crate::id::{RunName, SessionId, StepKey};
use crate::kept_snapshot::SnapshotName;
use crate::time::Timestamp;

/// The newest format that this code knows: bundles with results that runs of pipelines share have it.
pub const BUNDLE_FORMAT: u32 = 3;

/// The format of bundles with runs of pipelines.
const FORMAT_OF_RUNS: u32 = 2;

/// The format of bundles with sessions alone, which earlier versions take in too.
const FORMAT_OF_SESSIONS: u32 = 1;

/// The name of the table of contents, the first member.
pub const CONTENTS: &str = "bundle.json";

/// Largest table of contents: a million members.
pub const MAX_CONTENTS: u64 = 256 << 20;

/// Most members of a bundle: those of a workspace with a million files, twice over.
pub const MAX_MEMBERS: usize = 2_000_000;

/// Most bytes of all members together.
pub const MAX_BYTES: u64 = 1 << 40;

/// Most bytes of trees: those of a workspace with a million files, and of many checkpoints of it. Whoever reads a bundle holds them.
pub const MAX_TREES: u64 = 512 << 20;

/// Most sessions of a bundle: as many as anybody would name on a command line.
pub const MAX_SESSIONS: usize = 10_000;

/// Most shared results of a bundle: those of ten steps of each run that it may have.
pub const MAX_RESULTS: usize = 100_000;

/// Length of `,"checksum":"` with 64 digits, and `"}`.
const CHECKSUM_SUFFIX: usize = 13 + 64 + 2;

/// What a member of a bundle is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberName {
    /// The history that a session was forked from.
    Base(SessionId),
    /// A session's own log.
    Log(SessionId),
    /// A kept snapshot: its session, its name, and the ending that says how it is compressed.
    Snapshot(SessionId, SnapshotName, SnapshotEnding),
    /// What the session's agent wrote down of it itself.
    Transcript(SessionId),
    /// The ledger of a run of a pipeline.
    Ledger(RunName),
    /// The result of a step that runs share.
    CachedResult(StepKey),
    /// A file's content, a tree, or what is too large for a log.
    Blob(BlobId),
}

/// How the file of a kept snapshot ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnapshotEnding {
    /// `.json`
    Plain,
    /// `.json.zst`
    Zstd,
    /// `.json.gz`
    Gzip,
}

impl SnapshotEnding {
    const ALL: [SnapshotEnding; 3] = [SnapshotEnding::Zstd, SnapshotEnding::Gzip, SnapshotEnding::Plain];

    fn as_str(self) -> &'static str {
        match self {
            SnapshotEnding::Plain => ".json",
            SnapshotEnding::Zstd => ".json.zst",
            SnapshotEnding::Gzip => ".json.gz",
        }
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberName::Base(session) => write!(f, "sessions/{session}.base.jsonl"),
            MemberName::Log(session) => write!(f, "sessions/{session}.jsonl"),
            MemberName::Snapshot(session, name, ending) => {
                write!(f, "sessions/{session}.snapshots/{name}{}", ending.as_str())
            }
            MemberName::Transcript(session) => write!(f, "transcripts/{session}.jsonl"),
            MemberName::Ledger(run) => write!(f, "runs/{run}.ndjson"),
            MemberName::CachedResult(key) => write!(f, "cache/{}", key.file_name()),
            MemberName::Blob(blob) => write!(f, "blobs/{blob}"),
        }
    }
}

/// A name that no member of a bundle may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a member of a bundle")]
pub struct BadMemberName(String);

impl FromStr for MemberName {
    type Err = BadMemberName;

    fn from_str(text: &str) -> Result<MemberName, BadMemberName> {
        let name = parse(text);
        // Written in one way only: nothing that only looks like a member is one.
        name.filter(|name| name.to_string() == text).ok_or_else(|| {
            let shown: String = text.chars().take(200).collect();
            BadMemberName(shown)
        })
    }
}

fn parse(text: &str) -> Option<MemberName> {
    let (folder, name) = text.split_once('/')?;
    match (folder, name.split_once('/')) {
        ("blobs", None) => Some(MemberName::Blob(name.parse().ok()?)),
        ("runs", None) => Some(MemberName::Ledger(name.strip_suffix(".ndjson")?.parse().ok()?)),
        ("cache", None) => Some(MemberName::CachedResult(StepKey::of_file_name(name)?)),
        ("transcripts", None) => Some(MemberName::Transcript(name.strip_suffix(".jsonl")?.parse().ok()?)),
        ("sessions", None) => {
            let stem = name.strip_suffix(".jsonl")?;
            Some(match stem.strip_suffix(".base") {
                Some(session) => MemberName::Base(session.parse().ok()?),
                None => MemberName::Log(stem.parse().ok()?),
            })
        }
        ("sessions", Some((folder, file))) => {
            let session = folder.strip_suffix(".snapshots")?.parse().ok()?;
            let mut endings = SnapshotEnding::ALL.into_iter();
            let (name, ending) =
                endings.find_map(|ending| Some((file.strip_suffix(ending.as_str())?, ending)))?;
            Some(MemberName::Snapshot(session, name.parse().ok()?, ending))
        }
        _ => None,
    }
}

impl Serialize for MemberName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<MemberName, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// One member, as the table of contents has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// What it is.
    pub name: MemberName,
    /// Its bytes.
    pub size: u64,
    /// Their hash.
    pub hash: BlobId,
}

/// One session, as the table of contents has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledSession {
    /// The session.
    pub session_id: SessionId,
    /// What it was called, for people.
    pub title: String,
    /// Where its agent worked.
    pub working_dir: String,
    /// The last record of its log that is in the bundle.
    pub seq: u64,
    /// That record's hash.
    pub h: Option<ChainHash>,
    /// The files of its working directory, if they are in the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<BlobId>,
    /// Trees that its checkpoints and kept snapshots name, if they are in the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<BlobId>,
    /// Whose transcript of it is in the bundle, and where that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<BundledTranscript>,
}

/// A transcript, as the table of contents has it: what an agent wrote down of a session itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledTranscript {
    /// The agent, by its name in the table of known agents.
    pub agent: String,
    /// Where it was, below the directory that the agent keeps such files in.
    pub path: String,
}

/// One run of a pipeline, as the table of contents has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledRun {
    /// The run.
    pub run_id: RunName,
    /// The goal of its task, for people.
    pub goal: String,
    /// Where its steps worked.
    pub working_dir: String,
    /// The last record of its ledger that is in the bundle.
    pub seq: u64,
    /// That record's hash.
    pub h: Option<ChainHash>,
    /// What its directory is expected to contain while nobody works there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<BlobId>,
    /// Trees that its ledger and the shared results of its steps name, if they are in the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<BlobId>,
}

/// The table of contents of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The format, first so that a reader can stop there.
    pub format: u32,
    /// The version that made it.
    pub made_by: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// The machine it comes from, as people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The sessions.
    pub sessions: Vec<BundledSession>,
    /// The runs of pipelines. The sessions of their steps are among the sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<BundledRun>,
    /// What follows, in this order.
    pub members: Vec<Member>,
}

/// Why a table of contents is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadContents {
    /// It is not what was written.
    #[error("bundle.json is damaged, or was changed: {0}")]
    Damaged(String),
    /// A newer version made it.
    #[error(
        "the bundle has format {found}, this Rekindle knows {BUNDLE_FORMAT}; use a newer Rekindle for it"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// There is too much in it.
    #[error(
        "the bundle names more than {MAX_MEMBERS} members, {MAX_SESSIONS} sessions or runs, {MAX_RESULTS} shared results, or {MAX_BYTES} bytes"
    )]
    TooLarge,
    /// A member is named twice.
    #[error("the bundle names {0} twice")]
    Twice(MemberName),
    /// A run has no ledger, or a ledger no run.
    #[error("the bundle does not match its list for {0}: its ledger is missing, or not listed")]
    UnmatchedRun(RunName),
    /// A session has no log, or a log no session.
    #[error("the bundle does not match its list for {0}: its log is missing, or not listed")]
    Unmatched(SessionId),
    /// Something is announced that is not there, or there and not announced.
    #[error("the bundle does not match its list for {0}")]
    Unannounced(MemberName),
    /// A content is not named by its hash.
    #[error("{0} does not match its name")]
    Misnamed(MemberName),
}

impl Contents {
    /// Returns the table as it is written: one JSON object whose last field is a checksum of everything before it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.pop();
        let sum = BlobId::of(&bytes);
        bytes.extend_from_slice(format!(",\"checksum\":\"{sum}\"}}").as_bytes());
        Ok(bytes)
    }

    /// Reads a table, with suspicion.
    pub fn read(bytes: &[u8]) -> Result<Contents, BadContents> {
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        let damaged = |detail: String| BadContents::Damaged(detail);
        // What a newer version means by the rest is not ours to judge.
        if let Ok(Versioned { format }) = serde_json::from_slice(bytes)
            && format > BUNDLE_FORMAT
        {
            return Err(BadContents::Newer { found: format });
        }
        let body = bytes.len().checked_sub(CHECKSUM_SUFFIX).map(|at| bytes.split_at(at));
        let (body, suffix) = body.ok_or_else(|| damaged("it is too short".into()))?;
        if suffix != format!(",\"checksum\":\"{}\"}}", BlobId::of(body)).as_bytes() {
            return Err(damaged("its checksum does not match its contents".into()));
        }
        let contents: Contents = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        contents.check()?;
        Ok(contents)
    }

    /// Returns the format that a bundle has with so many runs and shared results: what earlier versions can take in they are not kept
    /// from.
    pub fn format_with(runs: usize, results: usize) -> u32 {
        match (runs, results) {
            (0, 0) => FORMAT_OF_SESSIONS,
            (_, 0) => FORMAT_OF_RUNS,
            _ => BUNDLE_FORMAT,
        }
    }

    /// Returns the steps whose shared results are among the members.
    pub fn cached_results(&self) -> impl Iterator<Item = StepKey> {
        self.members.iter().filter_map(|member| match member.name {
            MemberName::CachedResult(key) => Some(key),
            _ => None,
        })
    }

    /// Checks that each run is announced once, has its ledger, and has the trees that it says.
    fn check_runs(&self, names: &BTreeSet<&MemberName>) -> Result<(), BadContents> {
        let mut announced = BTreeSet::new();
        for run in &self.runs {
            if !announced.insert(run.run_id) || !names.contains(&MemberName::Ledger(run.run_id)) {
                return Err(BadContents::UnmatchedRun(run.run_id));
            }
            let trees = run.tree.iter().chain(&run.trees).map(|tree| MemberName::Blob(*tree));
            if let Some(missing) = trees.into_iter().find(|tree| !names.contains(tree)) {
                return Err(BadContents::Unannounced(missing));
            }
        }
        let unannounced = names.iter().find_map(|name| match name {
            MemberName::Ledger(run) if !announced.contains(run) => Some(*run),
            _ => None,
        });
        unannounced.map_or(Ok(()), |run| Err(BadContents::UnmatchedRun(run)))
    }

    /// Checks that the table makes sense, whatever follows it.
    pub fn check(&self) -> Result<(), BadContents> {
        if self.format > BUNDLE_FORMAT {
            return Err(BadContents::Newer { found: self.format });
        }
        let bytes = self.members.iter().try_fold(0_u64, |sum, member| sum.checked_add(member.size));
        let too_many = self.members.len() > MAX_MEMBERS
            || self.sessions.len() > MAX_SESSIONS
            || self.runs.len() > MAX_SESSIONS
            || self.cached_results().count() > MAX_RESULTS;
        if too_many || bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
            return Err(BadContents::TooLarge);
        }
        let mut names = BTreeSet::new();
        for member in &self.members {
            if !names.insert(&member.name) {
                return Err(BadContents::Twice(member.name.clone()));
            }
            if matches!(&member.name, MemberName::Blob(blob) if *blob != member.hash) {
                return Err(BadContents::Misnamed(member.name.clone()));
            }
        }
        self.check_runs(&names)?;
        let announced: BTreeSet<SessionId> = self.sessions.iter().map(|session| session.session_id).collect();
        for session in &announced {
            if !names.contains(&MemberName::Log(*session)) {
                return Err(BadContents::Unmatched(*session));
            }
        }
        for session in &self.sessions {
            let transcript = MemberName::Transcript(session.session_id);
            if names.contains(&transcript) != session.transcript.is_some() {
                return Err(BadContents::Unannounced(transcript));
            }
            let trees = session.tree.iter().chain(&session.checkpoints).map(|tree| MemberName::Blob(*tree));
            if let Some(missing) = trees.into_iter().find(|tree| !names.contains(tree)) {
                return Err(BadContents::Unannounced(missing));
            }
        }
        let of = |name: &MemberName| match name {
            MemberName::Blob(_) | MemberName::Ledger(_) | MemberName::CachedResult(_) => None,
            MemberName::Base(session)
            | MemberName::Log(session)
            | MemberName::Snapshot(session, ..)
            | MemberName::Transcript(session) => Some(*session),
        };
        match names.iter().filter_map(|name| of(name)).find(|session| !announced.contains(session)) {
            Some(session) => Err(BadContents::Unmatched(session)),
            None if announced.len() < self.sessions.len() => {
                Err(BadContents::Unmatched(self.sessions[0].session_id))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

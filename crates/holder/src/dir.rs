//! A holder's directory: every file named once, and what the small ones say. Who writes which is in their docs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::file_ops;
use crate::identity::Identity;
use crate::wire::{Phase, Secret};

/// The paths in a holder's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderDir {
    path: PathBuf,
}

macro_rules! files {
    ($($(#[$doc:meta])* $name:ident = $file:literal;)*) => {
        impl HolderDir {
            $($(#[$doc])* pub fn $name(&self) -> PathBuf { self.path.join($file) })*
        }
    };
}

files! {
    /// What the holder is for; the supervisor writes it once.
    launch = "launch.json";
    /// What both sides know and nobody says; the supervisor writes it once.
    secret = "secret";
    /// Held with `flock` as long as the holder lives: the only proof of life and of death.
    lock = "lock";
    /// A hint for people and lists, never authority; the holder writes it over.
    status = "status.json";
    /// The epoch that commands, as a copy of what the journal has; the holder writes it over.
    epoch = "epoch";
    /// The journal's segments; the holder appends.
    journal = "journal";
    /// How it ended; the holder writes it once. Its presence is the definitive end.
    exit = "exit.json";
    /// Room for control records when the disk is full.
    reserve = "reserve";
    /// What the holder has to say for itself, bounded.
    log = "holder.log";
}

impl HolderDir {
    /// Names a holder's directory.
    pub fn new(path: impl Into<PathBuf>) -> HolderDir {
        HolderDir { path: path.into() }
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its name: the holder's id.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// One of the two files that the agent's standard error alternates between.
    pub fn stderr(&self, index: usize) -> PathBuf {
        self.path.join(format!("stderr.{}", index % 2))
    }

    /// Reads the secret.
    pub fn read_secret(&self) -> io::Result<Secret> {
        let bytes = std::fs::read(self.secret())?;
        let bytes = bytes.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "bad secret"))?;
        Ok(Secret::new(bytes))
    }

    /// Reads one of the JSON files.
    pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
        let bytes = std::fs::read(path)?;
        serde_json::from_slice(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Replaces a file whole; with `durable`, it and its name are on disk when this returns.
    pub fn replace(&self, path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let temporary = path.with_extension("tmp");
        let mut file = file_ops::create(&temporary)?;
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        std::fs::rename(&temporary, path)?;
        if durable {
            file_ops::sync_dir(&self.path)?;
        }
        Ok(())
    }
}

/// The version of the files in a holder's directory.
pub const FORMAT: u32 = 1;

/// What a holder is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The version of these files.
    pub format: u32,
    /// The holder.
    pub holder_id: String,
    /// The session it works for.
    pub session_id: String,
    /// Which attempt of that session.
    pub attempt: u32,
    /// Which agent, by its name in the table of known ones.
    pub agent: Option<String>,
    /// How its lines are to be read.
    pub profile: String,
    /// The agent's command.
    pub argv: Vec<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// A hash of session, agent and directory: what must be the same for an adoption to be right.
    pub fingerprint: String,
    /// Names of the agent's environment variables; the values travel in `START` and are on no disk.
    pub env_names: Vec<String>,
    /// The agent's umask; without one it has the holder's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The socket, short and in the user's runtime directory.
    pub socket: PathBuf,
    /// The kernel's boot it was made in.
    pub machine_boot: String,
    /// The SHA-256 of the holder's executable.
    pub executable: String,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
}

/// Bounds of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Journal that nobody acknowledged; beyond it the agent is paused by its pipe.
    pub unacked_bytes: u64,
    /// Room the disk must keep; below it likewise.
    pub free_bytes: u64,
    /// Size of a journal segment.
    pub segment_bytes: u64,
    /// Longest line.
    pub line_bytes: u64,
    /// Size of each of the two files of standard error.
    pub stderr_bytes: u64,
    /// How long to wait for a `START`.
    pub start_ms: u64,
    /// How long an idle agent is kept without anyone attached; 0 is for ever.
    pub idle_ms: u64,
    /// How long any other agent is.
    pub detached_ms: u64,
    /// How long each step of the way to an agent's end may take.
    pub grace_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        const HOUR: u64 = 3_600_000;
        Limits {
            unacked_bytes: 4 << 30,
            free_bytes: 2 << 30,
            segment_bytes: crate::journal::SEGMENT_BYTES,
            line_bytes: crate::journal::MAX_LINE,
            stderr_bytes: 4 << 20,
            start_ms: 30_000,
            idle_ms: 6 * HOUR,
            detached_ms: 7 * 24 * HOUR,
            grace_ms: 5_000,
        }
    }
}

/// What the lock file says of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockNote {
    /// The holder.
    pub holder_id: String,
    /// Its process.
    pub process: Identity,
    /// Device and inode of the lock file itself: in a copied home they differ.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
}

/// The epoch that commands, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochNote {
    /// The epoch.
    pub epoch: u64,
    /// Which supervisor.
    pub instance: String,
}

/// A hint for people and lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusNote {
    /// Its phase.
    pub phase: Phase,
    /// The holder's process.
    pub holder: Identity,
    /// The agent's.
    pub agent: Option<Identity>,
    /// The control group of the agent, where one could be made.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// Where to reach it.
    pub socket: PathBuf,
    /// Lowest and highest version of the protocol.
    pub versions: (u16, u16),
    /// Feature bits.
    pub features: u32,
    /// The epoch that commands.
    pub epoch: u64,
    /// The last record of the journal, when this was written.
    pub head: u64,
    /// The last acknowledged one.
    pub acked: u64,
    /// The last accepted input.
    pub accepted: u64,
    /// Since when nobody is attached, as the journal writes times.
    pub detached_since: Option<String>,
    /// What is wrong, if anything.
    pub trouble: Option<String>,
}

/// Why a holder ended its agent, or saw it end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// The agent ended by itself.
    AgentExit,
    /// It could not be started.
    StartFailed,
    /// A supervisor asked for it.
    StopRequested,
    /// The holder was told to end by a signal.
    HolderSigterm,
    /// Nobody came back in time.
    Unattended,
    /// It was idle, and a supervisor let it go.
    Retired,
    /// Its directory was taken away.
    DirectoryGone,
    /// No `START` came.
    NeverStarted,
}

impl ExitReason {
    /// Returns the word that files have for it.
    pub fn word(self) -> String {
        let word = serde_json::to_value(self).ok();
        word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitNote {
    /// The agent's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why.
    pub reason: ExitReason,
    /// Who asked, where someone did.
    pub actor: Option<String>,
    /// What they said.
    pub detail: Option<String>,
    /// The last record of the journal.
    pub last_seq: u64,
    /// Everything the agent wrote is in the journal.
    pub drained: bool,
    /// Processes of the agent's tree that were still there and could not be ended.
    pub left: Vec<Identity>,
    /// Processor time of everything that was collected, in milliseconds.
    pub cpu_ms: u64,
    /// The end of its standard error, as text.
    pub stderr_tail: String,
    /// When, as the journal writes times.
    pub at: String,
}

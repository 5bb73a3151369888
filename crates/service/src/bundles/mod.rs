//! Bundles: sessions and runs of pipelines in one file, carried from one home to another.
//!
//! A bundle is a tar archive, compressed with zstd, whose first member is the table of contents; behind it stands a hash of all of
//! its bytes. `archive` has the bytes of that, `export` writes one, `read` reads one with suspicion, `verify_trees` looks whether what
//! its trees name is there, `import` makes sessions of it, `transcripts` knows where agents keep their own files. All of it may pass
//! through a seal (`sealed`).

mod archive;
pub mod export;
pub mod import;
mod read;
pub mod sealed;
#[cfg(test)]
mod tests;
mod transcripts;
mod verify_trees;

use std::io;
use std::path::PathBuf;

use rekindle_domain::bundle::{BadContents, MemberName};
use rekindle_domain::id::{RunName, SessionId};
use rekindle_store::blobs::BlobError;
use rekindle_store::home::HomeError;
use rekindle_store::kept_snapshots::SnapshotError;
use rekindle_store::offline::OfflineError;
use rekindle_store::staging::StagedError;
use rekindle_store::{ImportStagedError, LoadError, OpenError, PathError, StagedRunError};
use rekindle_workspace::tree::WalkError;

pub use self::read::BundleFile;
use crate::workspaces::WorkspaceError;

/// Why a bundle was not made, or not taken in.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It is no bundle.
    #[error("this is not a bundle: {0}")]
    NotABundle(&'static str),
    /// It is sealed with another passphrase.
    #[error("the passphrase does not open the bundle")]
    WrongPassphrase,
    /// Its table of contents makes no sense.
    #[error(transparent)]
    Contents(#[from] BadContents),
    /// A member is not what the table says.
    #[error("{name} in the bundle is damaged, or was changed: {why}")]
    Member {
        /// The member.
        name: MemberName,
        /// What is wrong with it.
        why: String,
    },
    /// It is damaged where no member is.
    #[error("the bundle is damaged, or was changed: {0}")]
    Damaged(String),
    /// The tree of a working directory in it cannot be used.
    #[error("the files of {session} in the bundle cannot be used: {why}")]
    Files {
        /// Whose files.
        session: SessionId,
        /// Why not.
        why: String,
    },
    /// What it says of a session is not what its log says.
    #[error("bundle.json does not match the log of {0}")]
    Misdescribed(SessionId),
    /// The same of a run.
    #[error("bundle.json does not match the ledger of {0}")]
    MisdescribedRun(RunName),
    /// The trees of a run in it cannot be used.
    #[error("the files of {run} in the bundle cannot be used: {why}")]
    FilesOfRun {
        /// Whose files.
        run: RunName,
        /// Why not.
        why: String,
    },
    /// A run goes by a configuration that makes no sense.
    #[error("the configuration of {run} is not valid: {why}")]
    RunConfig {
        /// The run.
        run: RunName,
        /// What is wrong with it.
        why: String,
    },
    /// There is a run of this name.
    #[error("{0} already exists here")]
    RunExists(RunName),
    /// A session of a run is here, and is another one.
    #[error(
        "{session} already exists here with a different history than in the bundle, which has a run that it belongs to"
    )]
    OtherSession {
        /// The session.
        session: SessionId,
    },
    /// A run cannot be exported.
    #[error("{run} cannot be exported: {why}")]
    RunNotExportable {
        /// The run.
        run: RunName,
        /// Why not.
        why: String,
    },
    /// A staged run cannot be used.
    #[error(transparent)]
    StagedRun(#[from] StagedRunError),
    /// A session's agent is a command that is not known here.
    #[error("{session} runs a command that is not a known agent: {command}")]
    UnknownCommand {
        /// The session.
        session: SessionId,
        /// The command.
        command: String,
    },
    /// A session cannot be exported.
    #[error("{session} cannot be exported: {why}")]
    NotExportable {
        /// The session.
        session: SessionId,
        /// Why not.
        why: String,
    },
    /// The bundle cannot be read, or not be written.
    #[error("the bundle cannot be {doing}")]
    File {
        /// `read` or `written`.
        doing: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Somebody else imports a bundle.
    #[error("another process is importing a bundle into this home")]
    Busy,
    /// No such bundle is staged.
    #[error("no bundle is staged as {0}")]
    NotStaged(String),
    /// A session cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A staged session cannot be used.
    #[error(transparent)]
    Staged(#[from] StagedError),
    /// A session cannot be given its place.
    #[error(transparent)]
    ImportStaged(#[from] ImportStagedError),
    /// A kept snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The blob store cannot keep or give an object.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// A tree cannot be read.
    #[error(transparent)]
    Tree(#[from] WalkError),
    /// A directory cannot be captured, or not be restored.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The home cannot be looked at.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// The home cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A file of the home cannot be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Another file cannot be used.
    #[error("cannot use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl BundleError {
    /// Returns the code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            BundleError::NotABundle(_) => "not_a_bundle",
            BundleError::WrongPassphrase => "wrong_passphrase",
            BundleError::Contents(BadContents::Newer { .. }) => "bundle_newer",
            BundleError::Contents(BadContents::TooLarge) => "bundle_too_large",
            BundleError::Contents(_)
            | BundleError::Member { .. }
            | BundleError::Damaged(_)
            | BundleError::Files { .. }
            | BundleError::Misdescribed(_)
            | BundleError::MisdescribedRun(_)
            | BundleError::FilesOfRun { .. }
            | BundleError::RunConfig { .. }
            | BundleError::StagedRun(StagedRunError::Damaged { .. })
            | BundleError::Staged(StagedError::Damaged { .. } | StagedError::History { .. }) => {
                "bundle_damaged"
            }
            BundleError::UnknownCommand { .. } => "command_not_trusted",
            BundleError::NotExportable { .. } | BundleError::RunNotExportable { .. } => "not_exportable",
            BundleError::RunExists(_) | BundleError::ImportStaged(ImportStagedError::RunExists(_)) => {
                "run_exists"
            }
            BundleError::OtherSession { .. } => "session_exists",
            BundleError::File { .. } => "bundle_unusable",
            BundleError::Busy => "import_busy",
            BundleError::NotStaged(_)
            | BundleError::ImportStaged(
                ImportStagedError::NotStaged(_) | ImportStagedError::RunNotStaged(_),
            ) => "import_unknown",
            BundleError::ImportStaged(ImportStagedError::Exists(_)) => "session_exists",
            BundleError::Load(LoadError::NotFound(_)) => "session_not_found",
            BundleError::Load(_) => "session_unreadable",
            BundleError::Workspace(error) => error.code(),
            BundleError::Staged(_)
            | BundleError::StagedRun(_)
            | BundleError::ImportStaged(_)
            | BundleError::Snapshot(_)
            | BundleError::Blobs(_)
            | BundleError::Tree(_)
            | BundleError::Offline(_)
            | BundleError::Open(_)
            | BundleError::Home(_)
            | BundleError::Path(_)
            | BundleError::Io { .. } => "home_unusable",
        }
    }

    fn unread(source: io::Error) -> BundleError {
        match source.kind() {
            // A sealed one says so of a piece that is not genuine, or missing.
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                BundleError::Damaged(source.to_string())
            }
            _ => BundleError::File { doing: "read", source },
        }
    }

    fn unwritten(source: io::Error) -> BundleError {
        BundleError::File { doing: "written", source }
    }
}

/// How far the reading or writing of a bundle has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, for people.
    pub doing: &'static str,
    /// Bytes that are done.
    pub done: u64,
    /// Of how many.
    pub total: u64,
}

/// Told of progress.
pub type Watcher<'a> = &'a mut dyn FnMut(Progress);

//! Every kind of finding: its stable name, how bad it is, and what it says. The whole list in one table.

use serde::{Serialize, Serializer};

/// How bad a finding is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something is lost, or cannot be used until someone acts.
    Error,
    /// Nothing is lost, but it is not as it should be.
    Warning,
    /// Good to know; Rekindle deals with it by itself.
    Note,
}

impl Severity {
    /// Returns the word used everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $severity:ident;)*) => {
        /// The kind of a finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every kind there is.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// Returns the stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// Returns how bad it is.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// A directory with sessions in it has no `home.json`.
    HomeFileMissing = "home_file_missing", Error;
    /// `home.json` cannot be read or understood.
    HomeFileUnreadable = "home_file_unreadable", Error;
    /// A process owns the home at this moment.
    HomeInUse = "home_in_use", Note;
    /// The home is a copy of another.
    HomeCopied = "home_copied", Note;
    /// The list of access tokens cannot be read.
    AccessUnreadable = "access_unreadable", Error;
    /// The list of trusted project files cannot be read.
    TrustUnreadable = "trust_unreadable", Error;
    /// One of the home's directories is missing.
    DirectoryMissing = "directory_missing", Warning;
    /// One of the home's directories cannot be listed.
    DirectoryUnreadable = "directory_unreadable", Error;
    /// A file or directory has other permissions than 0600 or 0700.
    WrongMode = "wrong_mode", Warning;
    /// A name that is none of Rekindle's.
    ForeignName = "foreign_name", Note;
    /// A file that a crash left half-written.
    TemporaryFile = "temporary_file", Note;
    /// The import of a bundle was cut short.
    ImportLeft = "import_left", Note;
    /// The write-ahead log cannot be read.
    WalUnreadable = "wal_unreadable", Error;
    /// A stretch of the write-ahead log was on disk and is not valid any more.
    WalDamaged = "wal_damaged", Error;
    /// The write-ahead log ends in bytes that never became a frame.
    WalTorn = "wal_torn", Note;
    /// A damaged segment was kept when the home was last opened.
    WalKept = "wal_kept", Warning;
    /// The next start puts records into a log that only the write-ahead log has.
    LogRefill = "log_refill", Note;
    /// The next start heals a damaged stretch of a log from the write-ahead log.
    LogHeal = "log_heal", Warning;
    /// A log cannot be opened or read.
    LogUnreadable = "log_unreadable", Error;
    /// A session made daemons crash, and is left alone.
    SessionQuarantined = "session_quarantined", Error;
    /// A daemon crashed while it worked on a session.
    CrashReported = "crash_reported", Warning;
    /// A log has a place that cannot be right.
    LogDamaged = "log_damaged", Error;
    /// A log is missing though something beside it says there was one.
    LogMissing = "log_missing", Error;
    /// The ledger of a run is there as it was written and compressed.
    LedgerTwice = "ledger_twice", Note;
    /// A run of a pipeline has no summary.
    RunSummaryMissing = "run_summary_missing", Note;
    /// The summary of a run says otherwise than its ledger.
    RunSummaryDiffers = "run_summary_differs", Warning;
    /// A run names sessions that are not there.
    RunSessionMissing = "run_session_missing", Note;
    /// The files that a run would go on with are not there.
    RunFilesMissing = "run_files_missing", Warning;
    /// A log has no record.
    LogEmpty = "log_empty", Note;
    /// A log ends in bytes that never became a record.
    LogTorn = "log_torn", Note;
    /// A log ends in records of a list whose end is missing.
    LogHalfList = "log_half_list", Note;
    /// A note says that records are missing from a log.
    DamageNoted = "damage_noted", Error;
    /// A log ends before the place its snapshot was made at.
    LogShorterThanSnapshot = "log_shorter_than_snapshot", Error;
    /// The list cache knows a longer log.
    LogShorterThanList = "log_shorter_than_list", Error;
    /// A log has another record than the one its snapshot was made at.
    LogDiffersFromSnapshot = "log_differs_from_snapshot", Error;
    /// A record's payload does not decode.
    RecordUnreadable = "record_unreadable", Error;
    /// A record cannot follow what came before it.
    RecordOdd = "record_odd", Warning;
    /// A newer version wrote the snapshot.
    SnapshotNewer = "snapshot_newer", Error;
    /// A snapshot cannot be read.
    SnapshotUnreadable = "snapshot_unreadable", Warning;
    /// A snapshot of the earlier layout has what the log does not have yet.
    SnapshotLegacy = "snapshot_legacy", Note;
    /// A snapshot is not what the log says.
    SnapshotDiffers = "snapshot_differs", Warning;
    /// Sessions without a snapshot.
    SnapshotMissing = "snapshot_missing", Note;
    /// A log ends before the record that a kept snapshot was taken at, or has another one there.
    LogDiffersFromKept = "log_differs_from_kept", Error;
    /// A newer version wrote a kept snapshot.
    KeptSnapshotNewer = "kept_snapshot_newer", Warning;
    /// A kept snapshot cannot be read, or is not what was written.
    KeptSnapshotDamaged = "kept_snapshot_damaged", Warning;
    /// A result of a step that runs share cannot be used.
    CachedResultDamaged = "cached_result_damaged", Note;
    /// A newer version wrote the token index.
    TokensNewer = "tokens_newer", Error;
    /// A token index cannot be read.
    TokensUnreadable = "tokens_unreadable", Warning;
    /// A token index is not what the log says.
    TokensDiffer = "tokens_differ", Warning;
    /// The list cache is missing.
    IndexMissing = "index_missing", Note;
    /// The list cache cannot be read.
    IndexUnreadable = "index_unreadable", Warning;
    /// The list cache says something else of a session than its log.
    IndexDiffers = "index_differs", Warning;
    /// The list cache knows sessions as they were before, or that are gone.
    IndexBehind = "index_behind", Note;
    /// The database of tasks says something else than the logs.
    TaskRowsDiffer = "task_rows_differ", Warning;
    /// The database of tasks cannot be read.
    TaskRowsUnreadable = "task_rows_unreadable", Warning;
    /// A session was being set aside when that was cut short.
    AsideUnfinished = "aside_unfinished", Warning;
    /// A cache whose session has no log.
    StrayCache = "stray_cache", Warning;
    /// The history that a fork goes on from is not there.
    HistoryMissing = "history_missing", Error;
    /// The history that a fork goes on from is damaged.
    HistoryDamaged = "history_damaged", Error;
    /// A session is deleted and its files are still there.
    DeletionUnfinished = "deletion_unfinished", Note;
    /// A record names a blob that is not there.
    BlobMissing = "blob_missing", Error;
    /// A blob's bytes are not what its name says.
    BlobDamaged = "blob_damaged", Error;
    /// Objects of a pack are lost.
    PackDamaged = "pack_damaged", Error;
    /// The index of a pack is wrong; it is made again from the pack.
    PackIndexDamaged = "pack_index_damaged", Warning;
    /// The index of a pack is missing; it is made again from the pack.
    PackIndexMissing = "pack_index_missing", Note;
    /// The files of a checkpoint, or some of them, are not there, and nobody let them go.
    CheckpointDamaged = "checkpoint_damaged", Error;
    /// Checkpoints whose files are not kept any more, or stayed in another home.
    CheckpointExpired = "checkpoint_expired", Note;
    /// The worktree of a session that was removed is still there, for nothing.
    WorktreeLeft = "worktree_left", Note;
    /// The worktree of a session that was removed has work that is nowhere else.
    WorktreeUnsaved = "worktree_unsaved", Warning;
    /// A restore of a directory has not come to its end.
    RestoreLeft = "restore_left", Warning;
    /// Blobs that no record names.
    BlobUnnamed = "blob_unnamed", Note;
    /// A daemon died and left the description of where it listened.
    DaemonLeft = "daemon_left", Note;
    /// A holder lives, and its session is known.
    HolderLives = "holder_lives", Note;
    /// A holder lives that no session here knows.
    HolderOrphan = "holder_orphan", Warning;
    /// A holder lives whose session is here and cannot be used.
    HolderQuarantined = "holder_quarantined", Warning;
    /// The directory of a holder is a copy, or was made for another home: its processes are not this home's.
    HolderCopied = "holder_copied", Note;
    /// Someone is at work in the directory of a dead holder.
    HolderBusy = "holder_busy", Note;
    /// A holder is dead, and its journal is not wholly in its session's log yet.
    HolderUnharvested = "holder_unharvested", Note;
    /// A holder is dead, and there is no session whose log its journal could go to.
    HolderUnclaimed = "holder_unclaimed", Warning;
    /// A holder is dead, and its journal is in its session's log.
    HolderIngested = "holder_ingested", Note;
    /// A holder's directory was begun and never used.
    HolderHalfMade = "holder_half_made", Note;
    /// A journal that is not wholly in a log yet is damaged.
    HolderJournalDamaged = "holder_journal_damaged", Error;
    /// A holder is of a version that is not known here.
    HolderNewer = "holder_newer", Warning;
    /// What a holder's directory says cannot be read.
    HolderUnreadable = "holder_unreadable", Warning;
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

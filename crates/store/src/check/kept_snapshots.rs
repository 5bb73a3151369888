//! Kept snapshots beside the log: each can be read, and the record it was taken at is the one that the log has there.

use rekindle_domain::id::SessionId;
use rekindle_domain::kept_snapshot::KeptSnapshot;
use rekindle_domain::line::Line;

use super::HomeView;
use super::code::Code;
use super::finding::Finding;
use super::home::unknown;
use super::wal::RESTORE;
use crate::disk::SharedDisk;
use crate::kept_snapshots::{KeptSnapshots, SnapshotError, SnapshotFile};
use crate::layout::{Layout, TEMPORARY_SUFFIX};
use crate::log::Stop;

/// The kept snapshots of a session as found, oldest first: read before its log, which then has every record they tell of.
pub(super) struct KeptFiles {
    session: SessionId,
    files: Vec<(SnapshotFile, Result<KeptSnapshot, SnapshotError>)>,
    unlisted: Option<SnapshotError>,
    /// What crashes left of writing some.
    leftovers: Vec<Finding>,
    /// How many of them the walk through the log has passed.
    passed: usize,
    misfits: Vec<Finding>,
}

impl KeptFiles {
    pub(super) fn read(disk: &SharedDisk, layout: &Layout, session: SessionId) -> KeptFiles {
        let kept = KeptSnapshots::new(disk.clone(), layout.clone());
        let (files, unlisted) = match kept.list(session) {
            Ok(files) => (files, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let read = |file: SnapshotFile| {
            let read = kept.read(session, file.name);
            // Removed since it was listed: it was one too many.
            (!matches!(read, Err(SnapshotError::NotFound { .. }))).then_some((file, read))
        };
        let files = files.into_iter().filter_map(read).collect();
        let directory = layout.history(session);
        let leftovers = disk.list(&directory).unwrap_or_default();
        let leftovers = leftovers.iter().filter(|entry| entry.name.ends_with(TEMPORARY_SUFFIX));
        let leftovers = leftovers.map(|entry| unknown(&directory, entry).of(session)).collect();
        KeptFiles { session, files, unlisted, leftovers, passed: 0, misfits: Vec::new() }
    }

    /// Compares a record of the log with those snapshots that were taken at it.
    pub(super) fn record(&mut self, view: &HomeView, line: &Line<'_>) {
        while let Some((file, read)) = self.files.get(self.passed)
            && file.name.seq <= line.seq
        {
            if let Ok(snapshot) = read
                && (snapshot.seq < line.seq || snapshot.h != line.hash)
            {
                let what = format!(
                    "Record {} of the log is not the one that snapshot {} was taken at.",
                    snapshot.seq, file.name
                );
                let path = view.home.log(self.session);
                let finding = Finding::new(Code::LogDiffersFromKept, path, what, RESTORE);
                self.misfits.push(finding.of(self.session).seq(snapshot.seq));
            }
            self.passed += 1;
        }
    }

    /// Says what is wrong, once the log was read as far as it is good.
    pub(super) fn problems(self, view: &HomeView, stop: &Stop, last_seq: u64) -> Vec<Finding> {
        let KeptFiles { session, files, unlisted, leftovers, passed, mut misfits } = self;
        misfits.extend(leftovers);
        if let Some(error) = unlisted {
            let path = view.home.history(session);
            let what = format!("The kept snapshots cannot be listed: {}.", with_causes(&error));
            let remedy = format!("Make it a readable directory: chmod 700 {}", path.display());
            misfits.push(Finding::new(Code::DirectoryUnreadable, path, what, remedy).of(session));
        }
        for (index, (file, read)) in files.into_iter().enumerate() {
            match read {
                Err(error) => misfits.push(unusable(session, file, &error)),
                // Behind damage nothing can be compared, and the damage says it all.
                Ok(_) if index < passed || matches!(stop, Stop::Damaged(_)) => {}
                Ok(snapshot) => {
                    let what = format!(
                        "The log is undamaged up to record {last_seq}, but snapshot {} was taken at record {}.",
                        file.name, snapshot.seq
                    );
                    let path = view.home.log(session);
                    let finding = Finding::new(Code::LogDiffersFromKept, path, what, RESTORE);
                    misfits.push(finding.of(session).seq(last_seq));
                }
            }
        }
        misfits
    }
}

/// Says of a snapshot that cannot be used why, and that it is left as it is.
fn unusable(session: SessionId, file: SnapshotFile, error: &SnapshotError) -> Finding {
    let what = format!("Snapshot {} cannot be used: {}.", file.name, with_causes(error));
    let (code, remedy) = match error {
        SnapshotError::Version { .. } => {
            let remedy = "Use a newer Rekindle for it; it was not changed, and the session is not affected.";
            (Code::KeptSnapshotNewer, remedy)
        }
        SnapshotError::Corrupted { .. } | SnapshotError::Io(_) | SnapshotError::NotFound { .. } => {
            let remedy = "Restore the file from a backup if there is one. The log has every record up to it, so the session \
                 itself has lost nothing.";
            (Code::KeptSnapshotDamaged, remedy)
        }
    };
    Finding::new(code, file.path, what, remedy).of(session).seq(file.name.seq)
}

fn with_causes(error: &SnapshotError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

//! Putting a home right: what is provably safe is done, what it takes away is kept, and then everything is looked at again.
//! Each step follows from what is found at that moment, so a repair that was cut short is finished by the next one, and
//! one of a home that is whole does nothing.

mod orphan;
mod set_aside;
mod work;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::time::Clock;
use rekindle_store::check::{Code, Finding, Holding, Report, Severity, Watcher};
use rekindle_store::disk::SharedDisk;
use rekindle_store::home::{self, HomeError};
use rekindle_store::layout::Layout;
use rekindle_store::offline::OfflineError;
use rekindle_store::repairs::Repairs;
use serde::Serialize;

use self::set_aside::SetAside;
use self::work::Repair;
use super::doctor::examine;
use super::task_row_findings::TaskRows;
use crate::task_rows::DatabaseSettings;
use crate::test_knobs::crash_point;

/// What one repair uncovers the next one mends; more rounds than this mend nothing.
const ROUNDS: usize = 4;

/// Options of a repair.
#[derive(Debug, Clone, Default)]
pub struct RepairOptions {
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Damaged sessions to be set aside.
    pub set_aside: Vec<SessionId>,
    /// The good beginning of their logs is to be their log again.
    pub keep_prefix: bool,
    /// A person said that agents which no session knows may be ended.
    pub end_orphans: bool,
    /// Where the rows of tasks are, if they are to be looked at.
    pub task_rows: Option<DatabaseSettings>,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The home cannot be looked at.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// It is in use, or cannot be locked.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// Something that was done, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    /// What: `permissions`, `moved`, `recovered`, `cut`, `rewritten`, `set_aside`, `prefix_kept` or `ended`.
    pub action: &'static str,
    /// For which finding.
    pub code: &'static str,
    /// Of which session.
    pub session: Option<SessionId>,
    /// To what.
    #[serde(serialize_with = "super::lossy")]
    pub path: PathBuf,
    /// What was the matter.
    pub what: String,
    /// Where it is now, or a copy of what was changed.
    pub kept: Option<String>,
    /// Why it did not succeed.
    pub error: Option<String>,
}

/// What became of a home.
#[derive(Debug)]
pub struct Repaired {
    /// How it was.
    pub before: Report,
    /// How it is; none if nothing was to be changed.
    pub after: Option<Report>,
    /// What was done, or would be.
    pub done: Vec<Done>,
    /// Where things are kept that were taken away or changed.
    pub kept_in: Option<PathBuf>,
}

impl Repaired {
    /// Returns how the home is now.
    pub fn now(&self) -> &Report {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Tells whether nothing is lost or unusable, and everything that was tried succeeded.
    pub fn is_whole(&self) -> bool {
        self.now().is_healthy() && self.done.iter().all(|done| done.error.is_none())
    }
}

/// Puts a home right as far as that is provably safe.
pub fn repair(
    disk: &SharedDisk,
    home: &Path,
    asked: &RepairOptions,
    clock: &Arc<dyn Clock>,
    watcher: Watcher<'_>,
) -> Result<Repaired, RepairError> {
    let layout = Layout::new(home);
    if let Some(owner) = home::owner(&**disk, &layout).filter(|_| !asked.dry_run) {
        return Err(HomeError::Locked { path: home.to_owned(), owner: Box::new(owner) }.into());
    }
    let task_rows = asked.task_rows.as_ref().map(|settings| TaskRows { settings, now: clock.now() });
    let before = examine(disk, home, Holding::Nothing, task_rows, watcher)?;
    let planned = plan(&before, asked, &HashSet::new());
    let sessions = SetAside { disk, layout: &layout, keep_prefix: asked.keep_prefix };
    let set_aside: Vec<Done> =
        asked.set_aside.iter().filter_map(|session| sessions.plan(*session, &before)).collect();
    if asked.dry_run || planned.is_empty() && set_aside.is_empty() {
        let done = planned.iter().map(|(mend, finding)| Done::of(*mend, finding)).chain(set_aside).collect();
        return Ok(Repaired { before, after: None, done, kept_in: None });
    }
    let lock = home::lock_for_upkeep(&**disk, &layout, std::process::id())?;
    let kept = Repairs::new(disk.clone(), layout.clone(), clock.now(), crash_point);
    let mut work =
        Repair { disk, home, layout: &layout, asked, clock, lock: Some(lock), kept, done: Vec::new() };
    crash_point("repair.locked");
    let mut tried = HashSet::new();
    for _ in 0..ROUNDS {
        let report = examine(disk, home, Holding::Lock, task_rows, watcher)?;
        let mends = plan(&report, asked, &tried);
        if mends.is_empty() {
            break;
        }
        tried.extend(mends.iter().map(|(mend, finding)| (*mend, finding.path.clone())));
        work.carry_out(&mends)?;
    }
    if !asked.set_aside.is_empty() {
        let report = examine(disk, home, Holding::Lock, task_rows, watcher)?;
        for session in &asked.set_aside {
            work.set_aside(*session, &sessions, &report)?;
        }
    }
    let after = examine(disk, home, Holding::Lock, task_rows, watcher)?;
    let kept_in = work.kept.dir().map(Path::to_owned);
    Ok(Repaired { before, after: Some(after), done: work.done, kept_in })
}

/// Returns what is to be done, in order, each thing once.
fn plan<'a>(
    report: &'a Report,
    asked: &RepairOptions,
    tried: &HashSet<(RepairAction, PathBuf)>,
) -> Vec<(RepairAction, &'a Finding)> {
    let suspects = suspects(&report.findings);
    let mut seen = HashSet::new();
    let mends = report.findings.iter().filter_map(|finding| Some((mend(finding, &suspects)?, finding)));
    let mut mends: Vec<(RepairAction, &Finding)> = mends
        .filter(|(mend, _)| *mend != RepairAction::EndOrphan || asked.end_orphans || asked.dry_run)
        .filter(|(mend, finding)| {
            let key = (*mend, finding.path.clone());
            !tried.contains(&key) && seen.insert(key)
        })
        .collect();
    mends.sort_by_key(|(mend, _)| *mend);
    mends
}

impl Done {
    pub(super) fn of(mend: RepairAction, finding: &Finding) -> Done {
        let action = match mend {
            RepairAction::Permissions => "permissions",
            RepairAction::TakeAway | RepairAction::TakeAwayHolder => "moved",
            RepairAction::FinishAside => "set_aside",
            RepairAction::Recover => "recovered",
            RepairAction::Cut => "cut",
            RepairAction::WriteTaskRows => "rewritten",
            RepairAction::EndOrphan => "ended",
        };
        let Finding { code, session, path, what, .. } = finding.clone();
        Done { action, code: code.as_str(), session, path, what, kept: None, error: None }
    }
}

/// An action that puts a finding right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RepairAction {
    /// Permissions as everything of ours has them.
    Permissions,
    /// It is moved away: a cache that is rebuilt, or a leftover that nobody reads.
    TakeAway,
    /// The same for what was begun for a holder, under its lock.
    TakeAwayHolder,
    /// A set-aside that was cut short goes on.
    FinishAside,
    /// What every start does: logs are completed from the write-ahead log, deletions finished.
    Recover,
    /// What every use of a session does: bytes at the end that never became records are cut off, and that is recorded.
    Cut,
    /// The rows of tasks are written anew from the logs.
    WriteTaskRows,
    /// An agent that no session knows is ended, if a person says so.
    EndOrphan,
}

/// Returns what puts a finding right; none if nothing does for certain. Of a session in which something is wrong that
/// cannot be put right everything stays as it is, as evidence.
pub fn mend(finding: &Finding, suspects: &HashSet<SessionId>) -> Option<RepairAction> {
    let sound = finding.session.is_none_or(|session| !suspects.contains(&session));
    let mend = match finding.code {
        Code::WrongMode => RepairAction::Permissions,
        Code::TemporaryFile
        | Code::IndexUnreadable
        | Code::IndexDiffers
        | Code::PackIndexDamaged
        | Code::RunSummaryDiffers
        | Code::DaemonLeft => RepairAction::TakeAway,
        Code::SnapshotUnreadable | Code::SnapshotDiffers | Code::TokensUnreadable | Code::TokensDiffer
            if sound =>
        {
            RepairAction::TakeAway
        }
        Code::LogTorn | Code::LogHalfList if sound => RepairAction::Cut,
        Code::LogRefill
        | Code::LogHeal
        | Code::WalTorn
        | Code::WalDamaged
        | Code::DeletionUnfinished
        | Code::DirectoryMissing => RepairAction::Recover,
        Code::AsideUnfinished => RepairAction::FinishAside,
        Code::HolderHalfMade => RepairAction::TakeAwayHolder,
        Code::HolderOrphan => RepairAction::EndOrphan,
        Code::TaskRowsDiffer => RepairAction::WriteTaskRows,
        _ => return None,
    };
    Some(mend)
}

/// Returns the sessions of which something is lost or cannot be used.
fn suspects(findings: &[Finding]) -> HashSet<SessionId> {
    let bad = findings.iter().filter(|finding| finding.severity == Severity::Error);
    bad.filter_map(|finding| finding.session).collect()
}

/// Tells whether a finding says that a session's log is not what it was: what may be set aside.
pub(super) fn is_damage(finding: &Finding) -> bool {
    matches!(
        finding.code,
        Code::LogDamaged
            | Code::LogUnreadable
            | Code::LogMissing
            | Code::DamageNoted
            | Code::LogShorterThanSnapshot
            | Code::LogDiffersFromSnapshot
            | Code::LogDiffersFromKept
            | Code::RecordUnreadable
            | Code::StrayCache
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // I12: nothing that is lost is called repaired, and no evidence of it is taken away.
    #[test]
    fn no_loss_is_mended_and_the_caches_of_a_damaged_session_stay() {
        let session: SessionId = "sess_1".parse().expect("an id");
        let finding = |code| Finding::new(code, "/x", "", "").of(session);
        let (none, bad) = (HashSet::new(), HashSet::from([session]));
        for code in Code::ALL {
            // The write-ahead log is kept when it is damaged, and a start says what that cost each session.
            if code.severity() == Severity::Error && *code != Code::WalDamaged {
                assert_eq!(mend(&finding(*code), &none), None, "{code:?}");
            }
        }
        for code in [Code::SnapshotDiffers, Code::TokensDiffer, Code::LogTorn] {
            assert!(mend(&finding(code), &none).is_some(), "{code:?}");
            assert_eq!(mend(&finding(code), &bad), None, "{code:?}");
        }
        assert_eq!(mend(&finding(Code::WrongMode), &bad), Some(RepairAction::Permissions));
        assert_eq!(mend(&finding(Code::PackIndexDamaged), &none), Some(RepairAction::TakeAway));
        assert_eq!(mend(&finding(Code::HolderUnharvested), &none), None);
        assert_eq!(mend(&finding(Code::HolderCopied), &none), None);
        assert_eq!(suspects(&[finding(Code::LogDamaged), finding(Code::LogTorn)]), bad);
    }
}

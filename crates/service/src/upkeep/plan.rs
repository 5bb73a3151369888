//! The plan of a repair: which findings can be put right by proof, and how. Pure; the rest is for a person, and its remedy
//! says what.

use std::collections::HashSet;

use rekindle_domain::id::SessionId;
use rekindle_store::check::{Code, Finding, Severity};

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
    /// An agent that no session knows is ended, if a person says so.
    EndOrphan,
}

/// Returns what puts a finding right; none if nothing does for certain. Of a session in which something is wrong that
/// cannot be put right everything stays as it is, as evidence.
pub fn mend(finding: &Finding, suspects: &HashSet<SessionId>) -> Option<RepairAction> {
    let sound = finding.session.is_none_or(|session| !suspects.contains(&session));
    let mend = match finding.code {
        Code::WrongMode => RepairAction::Permissions,
        Code::TemporaryFile | Code::IndexUnreadable | Code::IndexDiffers | Code::DaemonLeft => {
            RepairAction::TakeAway
        }
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
        _ => return None,
    };
    Some(mend)
}

/// Returns the sessions of which something is lost or cannot be used.
pub(super) fn suspects(findings: &[Finding]) -> HashSet<SessionId> {
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
        assert_eq!(mend(&finding(Code::HolderUnharvested), &none), None);
        assert_eq!(mend(&finding(Code::HolderCopied), &none), None);
        assert_eq!(suspects(&[finding(Code::LogDamaged), finding(Code::LogTorn)]), bad);
    }
}

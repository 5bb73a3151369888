//! What to do about a finding, with the command that does it: the check itself knows of no commands.

use rekindle_store::check::{Code, Finding};

use crate::hints::ours;

/// Returns what to do about a finding.
pub(super) fn remedy(finding: &Finding) -> String {
    let session = finding.session.map_or("SESSION".into(), |session| session.to_string());
    let command = match finding.code {
        Code::LogDamaged
        | Code::LogShorterThanSnapshot
        | Code::LogShorterThanList
        | Code::LogDiffersFromSnapshot
        | Code::LogDiffersFromKept => {
            format!("doctor --repair --set-aside {session}, with --keep-prefix to go on from what is good")
        }
        Code::AsideUnfinished
        | Code::HolderOrphan
        | Code::HolderQuarantined
        | Code::HolderHalfMade
        | Code::TaskRowsDiffer => "doctor --repair".into(),
        Code::SessionQuarantined => format!("doctor --release {session}"),
        Code::HolderUnclaimed => "gc --orphans-older-than 1d".into(),
        Code::HolderIngested | Code::WorktreeLeft => "gc".into(),
        Code::AccessUnreadable => "token create".into(),
        _ => return finding.remedy.clone(),
    };
    format!("{}: {}", finding.remedy.trim_end_matches('.'), ours(command))
}

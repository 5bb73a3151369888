//! What to do about a finding, with the command that does it: the check itself knows of no commands.

use rekindle_store::check::{Code, Finding};

use crate::hints::ours;

/// What a remedy begins with that a person has no part in.
const NOTHING: &str = "Nothing to do";

/// Returns what a person is told below a finding: what to do, or what becomes of it by itself. That there is nothing to do is what its
/// severity says.
pub(super) fn advice(finding: &Finding) -> String {
    let remedy = remedy(finding);
    let rest = remedy.strip_prefix(NOTHING);
    let rest = rest.and_then(|rest| [": ", "; ", ", but "].iter().find_map(|mark| rest.strip_prefix(mark)));
    let Some(rest) = rest else { return remedy };
    let mut chars = rest.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", chars.as_str())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_nothing_to_do_is_left_out() {
        for (remedy, expected) in [
            ("Nothing to do: the next start completes the log.", "The next start completes the log."),
            ("Nothing to do; a repair removes it.", "A repair removes it."),
            ("Nothing to do, but check the disk: x.", "Check the disk: x."),
            ("Nothing to do if it is still running.", "Nothing to do if it is still running."),
            ("Restore it.", "Restore it."),
        ] {
            let finding = Finding::new(Code::LogRefill, "log", "A crash was survived.", remedy);
            assert_eq!(advice(&finding), expected);
        }
    }
}

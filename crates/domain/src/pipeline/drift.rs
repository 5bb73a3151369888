//! Drift of the files of a run: whose change a file is that is not as its step began with it. What was changed after the agent was
//! proven dead was changed by somebody else; where nobody knows when it died, it may have been anybody.

use crate::event::PathList;
use crate::path_name::PathName;
use crate::time::Timestamp;

/// Paths of a list that are named.
const NAMED: usize = 200;

/// A file that is not as a cut step began with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedFile {
    /// Its path.
    pub path: PathName,
    /// When it was changed last: its ctime, which nobody can set; of one that is not there, that of the directory that it was in.
    /// None if that cannot be told.
    pub changed_at: Option<Timestamp>,
}

/// The files of a cut step that its agent cannot be shown to have changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignChanges {
    /// Those that were changed after its agent was proven dead.
    pub after_cut: PathList,
    /// Those that may have been changed by it or by anybody.
    pub unknown_author: PathList,
}

/// A life of the machine: from one start of it to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLife<'a> {
    /// Its id.
    pub boot: &'a str,
    /// When it began.
    pub began: Timestamp,
}

/// Returns a moment at which an agent was proven dead. Its holder saw that; or else the machine was started again since it was at work,
/// and nothing of an earlier life of the machine has changed a file after that.
pub fn proven_death(
    seen: Option<Timestamp>,
    worked_in: Option<&str>,
    now: Option<MachineLife<'_>>,
) -> Option<Timestamp> {
    let rebooted = worked_in.zip(now).filter(|(worked_in, now)| *worked_in != now.boot);
    seen.or(rebooted.map(|(_, now)| now.began))
}

/// Returns which files somebody else changed, or may have changed. The moment at which an agent was proven dead is later than its
/// last write, so what it did itself is never taken for somebody else's.
pub fn foreign_changes(files: &[DriftedFile], died_at: Option<Timestamp>) -> ForeignChanges {
    let mut changes = ForeignChanges::default();
    for file in files {
        let list = match (file.changed_at, died_at) {
            (Some(changed), Some(died)) if changed <= died => continue,
            (Some(_), Some(_)) => &mut changes.after_cut,
            (None, _) | (_, None) => &mut changes.unknown_author,
        };
        list.total += 1;
        if list.first.len() < NAMED {
            list.first.push(file.path.clone());
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, changed_at: Option<i64>) -> DriftedFile {
        let path = PathName::from(name.as_bytes());
        DriftedFile { path, changed_at: changed_at.map(Timestamp::from_millis) }
    }

    fn names(list: &PathList) -> Vec<&str> {
        list.first.iter().filter_map(|path| path.path.as_deref()).collect()
    }

    #[test]
    fn what_was_changed_after_the_death_of_the_agent_is_somebody_elses() {
        let files = [
            file("before", Some(999)),
            file("then", Some(1_000)),
            file("after", Some(1_001)),
            file("gone", None),
        ];
        let changes = foreign_changes(&files, Some(Timestamp::from_millis(1_000)));
        assert_eq!(
            (names(&changes.after_cut), names(&changes.unknown_author)),
            (vec!["after"], vec!["gone"])
        );
        // Nobody knows when it died.
        let changes = foreign_changes(&files, None);
        assert_eq!((changes.after_cut.total, changes.unknown_author.total), (0, 4));
        assert_eq!(foreign_changes(&[], None), ForeignChanges::default());
    }

    #[test]
    fn an_agent_is_proven_dead_by_its_holder_or_by_another_start_of_the_machine() {
        let at = Timestamp::from_millis;
        let now = Some(MachineLife { boot: "this", began: at(500) });
        for (seen, worked_in, now, expected) in [
            (Some(at(7)), Some("this"), now, Some(at(7))),
            (Some(at(7)), Some("before"), now, Some(at(7))),
            (None, Some("before"), now, Some(at(500))),
            // Anything may have ended it, at any time.
            (None, Some("this"), now, None),
            (None, None, now, None),
            (None, Some("before"), None, None),
        ] {
            assert_eq!(proven_death(seen, worked_in, now), expected, "{seen:?} {worked_in:?}");
        }
    }

    #[test]
    fn a_list_is_counted_whole_and_named_in_part() {
        let files: Vec<DriftedFile> = (0..NAMED + 5).map(|n| file(&n.to_string(), None)).collect();
        let changes = foreign_changes(&files, None);
        assert_eq!((changes.unknown_author.total, changes.unknown_author.first.len()), (205, 200));
    }
}

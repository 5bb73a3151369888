//! Files that are put back while their session goes on: nothing begins meanwhile, and its agent is told of it with the next prompt.

use serde::{Deserialize, Serialize};

use super::SessionState;
use crate::event::{ChangedFile, Restoring, SessionFilesRestored, SessionFilesRestoring};

/// Files that an agent is told of: whoever has to look at more is better told to look at all of them.
const MAX_TOLD: usize = 20;

/// Files that were put back, of which the session's agent does not know yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFiles {
    /// How many.
    pub total: u64,
    /// The first of them.
    pub first: Vec<ChangedFile>,
}

impl RestoredFiles {
    /// Adds what was restored; of a file that was restored twice the last time counts.
    fn add(&mut self, restored: &SessionFilesRestored<'_>) {
        let before = self.first.len();
        self.first.retain(|known| restored.files.iter().all(|file| file.path != known.path));
        let twice = (before - self.first.len()) as u64;
        self.total = self.total.saturating_add(restored.changed).saturating_sub(twice);
        let room = MAX_TOLD.saturating_sub(self.first.len());
        self.first.extend(restored.files.iter().take(room).cloned());
    }
}

impl SessionState {
    /// Takes in that files are to be restored while the session goes on otherwise as it was.
    pub(super) fn begin_to_restore_files(
        &mut self,
        seq: u64,
        wanted: &SessionFilesRestoring<'_>,
    ) -> Result<(), String> {
        self.refuse_if_closed()?;
        if self.restoring.is_some() {
            return Err("its files are being restored already".into());
        }
        if let Some(open) = self.open_run() {
            return Err(format!("{} has not ended", open.run_id));
        }
        let restoring = Restoring::new(wanted.tree);
        self.restoring = Some(Restoring { run_id: Some(wanted.run_id), seq: Some(seq), ..restoring });
        Ok(())
    }

    /// Takes in what came of a restore. The agent of a session that began with it has not seen the files otherwise.
    pub(super) fn note_restored_files(&mut self, restored: &SessionFilesRestored<'_>) -> Result<(), String> {
        let restoring = self.restoring.take().ok_or("no files are being restored")?;
        if restoring.run_id.is_some() && restored.changed > 0 {
            self.restored_files.get_or_insert_default().add(restored);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::session::tests::log::Log;
    use crate::session::tests::script::{at, draft};
    use crate::session::{RestoredFiles, SessionState};

    const TREE: &str = "tree=\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"";
    const ENDED: &str = "session.created; message.user; run.started; run.completed";
    const NEXT: &str = "message.user msg=2; run.started run=2";

    fn restoring() -> String {
        format!("session.files_restoring {TREE}")
    }

    /// Returns the record that these files were restored, of which there are so many.
    fn restored(changed: usize, paths: &[&str]) -> String {
        let files: Vec<String> =
            paths.iter().map(|path| format!(r#"{{"path":"{path}","change":"modified"}}"#)).collect();
        format!("session.files_restored {TREE} changed={changed} files=[{}]", files.join(","))
    }

    fn state(appends: &[&str]) -> SessionState {
        Log::of(appends).replay.state
    }

    /// Returns what the agent is to be told: how many files, and which.
    fn told(appends: &[&str]) -> Option<(u64, Vec<String>)> {
        let RestoredFiles { total, first } = *state(appends).restored_files?;
        Some((total, first.into_iter().filter_map(|file| file.path.path).collect()))
    }

    #[test]
    fn files_are_put_back_between_two_runs_of_an_open_session_one_restore_at_a_time() {
        let (restoring, restored) = (restoring(), restored(0, &[]));
        for (appends, refused) in [
            (&[ENDED][..], ""),
            (&[ENDED, &restoring, &restored], ""),
            (&[ENDED, NEXT], "has not ended"),
            (&[ENDED, "session.closed"], "closed"),
            (&[ENDED, &restoring], "already"),
        ] {
            let before = state(appends);
            let mut after = before.clone();
            match after.apply(before.last_seq + 1, at(100), &draft(&restoring).event) {
                Ok(()) => assert_eq!("", refused, "{appends:?}"),
                Err(why) => assert!(!refused.is_empty() && why.why.contains(refused), "{appends:?}: {why}"),
            }
        }
        let mut meanwhile = state(&[ENDED, &restoring]);
        assert!(meanwhile.is_unfinished());
        assert!(meanwhile.apply(9, at(100), &draft("run.started run=2").event).is_err(), "nothing begins");
    }

    // I12: until a turn has ended that began with it, the agent is told of it.
    #[test]
    fn the_agent_is_told_until_a_turn_has_ended() {
        let (restoring, restored) = (restoring(), restored(2, &["a", "b"]));
        let known = Some((2, vec!["a".to_owned(), "b".to_owned()]));
        let then = |more: &[&str]| told(&[&[ENDED, &restoring, &restored], more].concat());
        assert_eq!(told(&[ENDED, &restoring]), None);
        assert_eq!(then(&[]), known);
        assert_eq!(then(&[NEXT]), known);
        for cut in ["run.interrupted run=2", "run.failed run=2 error=e", "run.cancelled run=2"] {
            assert_eq!(then(&[NEXT, cut]), known, "{cut}");
        }
        assert_eq!(then(&[NEXT, "run.completed run=2"]), None);
    }

    #[test]
    fn what_is_told_is_bounded_and_names_each_file_once() {
        let (restoring, first, again) = (restoring(), restored(2, &["a", "b"]), restored(2, &["b", "c"]));
        let both = told(&[ENDED, &restoring, &first, &restoring, &again]).expect("told");
        assert_eq!(both, (3, ["a", "b", "c"].map(String::from).to_vec()));
        let names: Vec<String> = (0..30).map(|number| format!("f{number}")).collect();
        let many = restored(500, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let (total, first) = told(&[ENDED, &restoring, &many]).expect("told");
        assert_eq!((total, first.len()), (500, super::MAX_TOLD));
        let none = format!("session.files_restored {TREE} error=\"gone\"");
        assert_eq!(told(&[ENDED, &restoring, &none]), None);
    }
}

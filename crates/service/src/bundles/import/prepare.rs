//! A staged session is prepared: its log is checked from the first record to the last, and made safe.

use std::io;
use std::path::PathBuf;

use rekindle_agent::known::by_id;
use rekindle_domain::bundle::{BundledSession, BundledTranscript};
use rekindle_domain::compose::import as compose;
use rekindle_domain::event::Provider;
use rekindle_domain::fork::{Wishes, fork};
use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::disk::if_exists;
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_store::staging::{self, StagedSession};

use super::super::{BundleError, transcripts};
use super::{Import, ImportedSession, Staged, StagedFile, transcript_path};
use crate::ids::{millis, random};

impl Staged {
    /// Checks each staged log, and makes its session safe.
    pub(super) fn prepare_sessions(&mut self, asked: &Import) -> Result<(), BundleError> {
        let offline = Offline::open(self.disk.clone(), self.layout.home())?;
        for bundled in self.contents.sessions.clone() {
            if self.is_known_of_run(&offline, &bundled)? {
                self.known.push(bundled.session_id);
                continue;
            }
            let session = self.prepare_session(&offline, &bundled, asked)?;
            self.sessions.push(session);
        }
        Ok(())
    }

    fn prepare_session(
        &self,
        offline: &Offline,
        bundled: &BundledSession,
        asked: &Import,
    ) -> Result<ImportedSession, BundleError> {
        let was = bundled.session_id;
        let mut staged = StagedSession::open(self.disk.clone(), &self.directory(), was)?;
        let taken = offline.has_any(was);
        let taken = taken.map_err(|source| BundleError::Io { path: self.layout.log(was), source })?;
        let state = staged.state();
        if (state.last_seq, state.last_hash) != (bundled.seq, bundled.h) {
            return Err(BundleError::Misdescribed(was));
        }
        let (agent, is_command) = agent_of(&state.provider);
        if is_command && !asked.trust_command {
            return Err(BundleError::UnknownCommand { session: was, command: agent });
        }
        let mut notes: Vec<String> = Vec::new();
        notes.extend(
            staged
                .missing()
                .map(|why| format!("the session that it was forked from is not in the bundle: {why}")),
        );
        let (lost_run, dropped_prompts) = (state.open_run().is_some(), state.queue.len());
        let (title, records) = (state.title.clone(), state.last_seq);
        let working_dir = asked.working_dir.clone().unwrap_or_else(|| state.working_dir.clone());
        let transcript = match &bundled.transcript {
            Some(_) if taken => {
                notes.push(
                    "its agent's own transcript is left out: it belongs to the session with this id that already exists here"
                        .into(),
                );
                None
            }
            Some(bundled) => match self.place_transcript(state, bundled, &working_dir, asked)? {
                Ok(place) => Some(place),
                Err(why) => {
                    notes.push(format!("its agent's own transcript is left out: {why}"));
                    None
                }
            },
            None => None,
        };
        let from = compose::Import {
            machine: self.contents.machine.as_deref(),
            made_at: Some(self.contents.made_at),
            working_dir: asked.working_dir.as_deref(),
            tree: bundled.tree,
            transcript: transcript.is_some(),
        };
        let records_of_import = compose::import(state, &staged.tokens(), from);
        staged.append(&records_of_import, asked.now)?;
        let mut id = was;
        if taken {
            let random = random().map_err(|error| BundleError::unread(io::Error::other(error)))?;
            id = SessionId::mint(millis(asked.now), random);
            notes.push(format!(
                "{was} already exists here: this is a new session that continues from what was imported"
            ));
            // They are of the session that is here already, by their name and by what they say.
            let kept = Layout::new(self.directory()).history(was);
            if if_exists(self.disk.list(&kept)).is_ok_and(|found| found.is_some()) {
                notes.push("its kept snapshots belong to the other id and are left out".into());
                let removed = staging::remove(&*self.disk, &kept);
                removed.map_err(|source| BundleError::Io { path: kept, source })?;
            }
            staged.into_base_of(id, |state, from| fork(state, from, Wishes::default()), asked.now)?;
        }
        let tree = bundled.tree;
        Ok(ImportedSession {
            id,
            was,
            title,
            working_dir,
            agent,
            is_command,
            records,
            lost_run,
            dropped_prompts,
            tree,
            checkpoints: bundled.checkpoints.len(),
            transcript,
            notes,
        })
    }

    /// Returns where the transcript of a session goes, or why it goes nowhere.
    fn place_transcript(
        &self,
        state: &SessionState,
        bundled: &BundledTranscript,
        working_dir: &str,
        asked: &Import,
    ) -> Result<Result<PathBuf, String>, BundleError> {
        let place = match transcripts::destination(&asked.agent_directories, state, bundled, working_dir) {
            Ok(place) => place,
            Err(why) => return Ok(Err(why)),
        };
        let staged = transcript_path(&self.directory(), state.id);
        let unread = |source| BundleError::Io { path: staged.clone(), source };
        let mut bytes = StagedFile::open(&self.disk, &staged).map_err(unread)?;
        Ok(match transcripts::is_free_for(&place, &mut bytes) {
            Ok(true) => Ok(place),
            Ok(false) => Err(format!("another file is in the way: {}", place.display())),
            Err(error) => Err(format!("{} cannot be read: {error}", place.display())),
        })
    }
}

/// Returns who answers in a session, and whether that is a command that is not known here.
fn agent_of(provider: &Provider) -> (String, bool) {
    match (&provider.command, &provider.agent) {
        (None, Some(agent)) if by_id(agent).is_some() => (agent.clone(), false),
        (None, Some(agent)) => (agent.clone(), true),
        (Some(command), _) => (command.join(" "), true),
        (None, None) => ("nobody".into(), false),
    }
}

//! Runs of pipelines on their way into a bundle: their ledgers, the sessions of their steps, and every tree that a ledger names: without
//! these a run could not go on elsewhere.

use std::collections::HashSet;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{BundledRun, Member, MemberName};
use rekindle_domain::event::Event;
use rekindle_domain::id::{PipelineId, RunName, SessionId};
use rekindle_store::LoadError;
use rekindle_store::blob_references::references_in;
use rekindle_store::blobs::BlobError;
use rekindle_workspace::tree::MAGIC;

use super::super::BundleError;
use super::super::archive::Hashing;
use super::Trees;
use super::gather::{Gathered, Looked, Source};
use super::trees::Objects;
use crate::error::chain;
use crate::log_search::for_each_line;

impl Gathered<'_> {
    /// Adds a run at the record that is its last at this moment, and the sessions of its steps.
    pub(super) fn add_run(&mut self, id: PipelineId, trees: &Trees) -> Result<(), BundleError> {
        let Some(run) = RunName::of(id) else { return Ok(()) };
        let refused = |why: String| BundleError::RunNotExportable { run, why };
        let loaded = self.offline.pipeline(id)?;
        if let Some(damage) = &loaded.damage {
            return Err(refused(format!("its ledger is damaged {damage}")));
        }
        let state = &loaded.state;
        let Some(started) = state.started.as_deref() else {
            return Err(refused("its ledger is missing".into()));
        };
        let unread = |source| BundleError::Io { path: self.offline.layout().ledger(id), source };
        let ledger = self.offline.ledger_reader(id).map_err(unread)?;
        let mut sessions: Vec<SessionId> = Vec::new();
        let visit = |line: &rekindle_domain::line::Line<'_>| {
            if let Ok(Event::StepBegan(began)) = line.event()
                && !sessions.contains(&began.session_id)
            {
                sessions.push(began.session_id);
            }
        };
        for_each_line(&ledger, visit).map_err(unread)?;
        let number = self.ledgers.len();
        self.ledgers.push((ledger, loaded.end, HashSet::new()));
        let source = Source::Ledger(number);
        let mut named = HashSet::new();
        if let Some(stretch) = self.stretch(&source) {
            let mut hashing = Hashing::new(stretch);
            let read = references_in(&mut hashing, &mut named);
            let (size, hash) = (hashing.count, hashing.id());
            read.map_err(unread)?;
            self.members.push((Member { name: MemberName::Ledger(run), size, hash }, source));
        }
        self.find_results(run, state, &mut named);
        self.ledgers[number].2 = named;
        self.runs.push(BundledRun {
            run_id: run,
            goal: started.task.goal.clone(),
            working_dir: started.working_dir.clone(),
            seq: state.position().last_seq,
            h: state.position().last_hash,
            tree: state.expected_tree(),
            trees: Vec::new(),
        });
        for session in sessions {
            if self.sessions.iter().any(|known| known.session_id == session) {
                continue;
            }
            match self.add_session(session, trees) {
                Ok(()) => {}
                // What is finished does not need it any more, and what is not begins again.
                Err(BundleError::Load(LoadError::NotFound(_))) => {
                    self.notes.push(format!("{session} of {run} was removed, and is not in the bundle"));
                }
                Err(BundleError::NotExportable { session, why }) => {
                    self.notes.push(format!("{session} of {run} is not in the bundle: {why}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds the trees that ledgers and shared results name, with everything in them, and whatever else they name.
    pub(super) fn add_trees_of_runs(&mut self, objects: &mut Objects) -> Result<(), BundleError> {
        for number in 0..self.runs.len() {
            let mut named: Vec<BlobId> = self.ledgers[number].2.iter().copied().collect();
            named.sort_unstable();
            let (run, expected) = (self.runs[number].run_id, self.runs[number].tree);
            let mut trees = Vec::new();
            for id in named {
                if objects.is_tree(&id) == Some(true) {
                    trees.push(id);
                    continue;
                }
                let mut looked = Looked::default();
                match self.blobs.copy_to(&id, &mut looked) {
                    // Any 64 digits may be a name: keys are, and hashes of files.
                    Err(BlobError::Missing(_)) => {}
                    Err(error) => return Err(error.into()),
                    Ok(_) if looked.beginning.starts_with(MAGIC) => match objects.add_tree(id) {
                        Ok(()) => trees.push(id),
                        Err(error) => {
                            self.notes.push(format!(
                                "the files {id} of {run} are not in the bundle: {}",
                                chain(&error)
                            ));
                        }
                    },
                    Ok(size) => objects.add(id, size),
                }
            }
            if expected.is_some_and(|expected| !trees.contains(&expected)) {
                self.notes.push(format!(
                    "the files that {run} continues with are no longer kept: it can be resumed with the files as they are, by --on-drift accept"
                ));
                self.runs[number].tree = None;
            }
            self.runs[number].trees = trees;
        }
        Ok(())
    }
}

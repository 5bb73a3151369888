//! What a workload asked for and was told, in order: the only thing the judge may hold a disk against.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::id::SessionId;
use rekindle_store::commit::Persist;

/// One thing that happened between the workload and the store.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// An append was handed over.
    Asked { attempt: usize, session: SessionId, markers: Vec<u64>, deletes: bool },
    /// These were handed over as one.
    Together { attempts: Vec<usize> },
    /// It was answered.
    Answered { attempt: usize, answer: Answer },
    /// Everything before is on disk.
    Synced,
    /// Removal of a session's files began.
    Removing { session: SessionId },
    /// It succeeded.
    Removed { session: SessionId },
}

/// What the store said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted(Persist),
    Refused,
    Unknown,
}

/// The shared record; cheap to remember a point of, by its length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<Entry>>>);

impl Ledger {
    pub(crate) fn push(&self, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn first(&self, len: usize) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[..len].to_vec()
    }
}

/// How sure it is that an attempt is in the log after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sure {
    /// It must be there.
    There,
    /// It may have been lost, with everything after it in the session.
    Tail,
    /// It may be there or not.
    Either,
    /// It must not be there.
    NotThere,
}

/// One append as the judge sees it.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) session: SessionId,
    pub(crate) markers: Vec<u64>,
    pub(crate) deletes: bool,
    pub(crate) sure: Sure,
}

/// Works out what must be there. `power` tells a power cut from the death of the process.
pub(crate) fn attempts(entries: &[Entry], power: bool) -> Vec<Attempt> {
    // Everything the kernel had when a later sync succeeded is on disk: there is one log of logs.
    let last_sync = entries.iter().rposition(|entry| {
        matches!(entry, Entry::Synced | Entry::Answered { answer: Answer::Accepted(Persist::Disk), .. })
    });
    let mut attempts: Vec<Attempt> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Asked { attempt, session, markers, deletes } => {
                assert_eq!(*attempt, attempts.len());
                attempts.push(Attempt {
                    session: *session,
                    markers: markers.clone(),
                    deletes: *deletes,
                    sure: Sure::Either,
                });
            }
            Entry::Answered { attempt, answer } => {
                attempts[*attempt].sure = match answer {
                    Answer::Accepted(Persist::Disk) => Sure::There,
                    Answer::Accepted(Persist::Process) if !power => Sure::There,
                    Answer::Accepted(Persist::Process) if last_sync.is_some_and(|at| index < at) => {
                        Sure::There
                    }
                    Answer::Accepted(Persist::Process) => Sure::Tail,
                    Answer::Refused => Sure::NotThere,
                    Answer::Unknown => Sure::Either,
                };
            }
            Entry::Together { .. } | Entry::Synced | Entry::Removing { .. } | Entry::Removed { .. } => {}
        }
    }
    attempts
}

//! Random work on a store over a simulated disk: appends to many sessions, alone, in groups and to several at once, quick and
//! durable; checkpoints, syncs, snapshots, list caches, deletions, blobs. One seed, one workload.

use rekindle_domain::event::{Raw, SessionDeleted};
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_store::commit::{Append, Commits, Inline, Persist};
use rekindle_store::{AppendError, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;

use crate::common::{created, marked};

use super::ledger::{Answer, Entry, Ledger};

pub(crate) struct Workload<'a> {
    store: &'a Store<Inline>,
    ledger: &'a Ledger,
    rng: Rng,
    sessions: Vec<SessionId>,
    attempts: usize,
    markers: u64,
    clock: &'a SimClock,
}

impl<'a> Workload<'a> {
    pub(crate) fn new(
        store: &'a Store<Inline>,
        ledger: &'a Ledger,
        clock: &'a SimClock,
        rng: Rng,
    ) -> Workload<'a> {
        Workload { store, ledger, rng, sessions: Vec::new(), attempts: 0, markers: 0, clock }
    }

    /// Does a number of random steps; failures of the disk are recorded and survived.
    pub(crate) fn run(&mut self, steps: usize) {
        self.create();
        for _ in 0..steps {
            self.clock.advance(self.rng.below(2_000) as i64 - 200);
            match self.rng.below(100) {
                0..=9 => self.create(),
                10..=49 => self.append_one(),
                50..=61 => self.append_group(),
                62..=69 => self.append_together(),
                70..=74 => drop(self.store.committer().checkpoint()),
                75..=79 => self.sync(),
                80..=86 => self.snapshot(),
                87..=90 => self.delete(),
                91..=94 => self.blob(),
                95..=96 => self.reopen(),
                97..=98 => self.store.committer().tick(),
                _ => self.index(),
            }
        }
    }

    fn pick(&mut self) -> Option<SessionId> {
        (!self.sessions.is_empty()).then(|| *self.rng.pick(&self.sessions))
    }

    fn ask(
        &mut self,
        session: SessionId,
        records: Vec<Draft>,
        markers: Vec<u64>,
        persist: Persist,
    ) -> Append {
        let deletes = records.iter().any(|draft| draft.event.name() == "session.deleted");
        self.ledger.push(Entry::Asked { attempt: self.attempts, session, markers, deletes });
        self.attempts += 1;
        Append { persist, ..Append::durable(session, records) }
    }

    fn answer<T>(&self, attempt: usize, persist: Persist, outcome: &Result<T, AppendError>) -> bool {
        let answer = match outcome {
            Ok(_) => Answer::Accepted(persist),
            Err(AppendError::OutcomeUnknown(_) | AppendError::Closed) => Answer::Unknown,
            Err(_) => Answer::Refused,
        };
        self.ledger.push(Entry::Answered { attempt, answer });
        outcome.is_ok()
    }

    fn commit(&mut self, append: Append) -> bool {
        let (attempt, persist) = (self.attempts - 1, append.persist);
        let outcome = self.store.append(append);
        self.answer(attempt, persist, &outcome)
    }

    fn create(&mut self) {
        let session = SessionId::mint(self.attempts as u64, self.rng.next_u64().into());
        if self.store.create(session).is_err() {
            return;
        }
        let marker = self.marker();
        let append =
            self.ask(session, vec![created(), marked(marker, 10, None)], vec![marker], Persist::Disk);
        if self.commit(append) {
            self.sessions.push(session);
        }
    }

    fn marker(&mut self) -> u64 {
        self.markers += 1;
        self.markers
    }

    fn list(&mut self) -> (Vec<Draft>, Vec<u64>) {
        let markers: Vec<u64> = (0..=self.rng.below(3)).map(|_| self.marker()).collect();
        let size = *self.rng.pick(&[0, 20, 200, 700]);
        (markers.iter().map(|marker| marked(*marker, size, None)).collect(), markers)
    }

    fn persist(&mut self) -> Persist {
        if self.rng.chance(1, 2) { Persist::Disk } else { Persist::Process }
    }

    fn append_one(&mut self) {
        let Some(session) = self.pick() else { return };
        let (records, markers) = self.list();
        let persist = self.persist();
        let append = self.ask(session, records, markers, persist);
        self.commit(append);
    }

    fn append_group(&mut self) {
        let first = self.attempts;
        let mut appends = Vec::new();
        for _ in 0..=self.rng.below(6) {
            let Some(session) = self.pick() else { return };
            let (records, markers) = self.list();
            let persist = self.persist();
            appends.push(self.ask(session, records, markers, persist));
        }
        let persists: Vec<_> = appends.iter().map(|append| append.persist).collect();
        let outcomes = self.store.committer().append_all(appends);
        for (index, (outcome, persist)) in outcomes.iter().zip(persists).enumerate() {
            self.answer(first + index, persist, outcome);
        }
    }

    /// Appends to several sessions, all or none; one of them may come twice, and one may not be there.
    fn append_together(&mut self) {
        let Some(session) = self.pick() else { return };
        let first = self.attempts;
        let (records, markers) = self.list();
        let persist = self.persist();
        let mut append = self.ask(session, records, markers, persist);
        for _ in 0..=self.rng.below(3) {
            let Some(other) = self.pick() else { return };
            let other = if self.rng.chance(1, 8) { SessionId::mint(0, 1) } else { other };
            let (records, markers) = self.list();
            let part = self.ask(other, records, markers, persist);
            append = append.and(part.stream, part.records);
        }
        let attempts: Vec<usize> = (first..self.attempts).collect();
        self.ledger.push(Entry::Together { attempts: attempts.clone() });
        let outcome = self.store.append_together(append);
        for attempt in attempts {
            self.answer(attempt, persist, &outcome);
        }
    }

    fn sync(&mut self) {
        if self.store.committer().sync().is_ok() {
            self.ledger.push(Entry::Synced);
        }
    }

    fn snapshot(&mut self) {
        if let Some(session) = self.pick() {
            let _ = self.store.snapshot(session);
        }
    }

    fn delete(&mut self) {
        let Some(session) = self.pick() else { return };
        let persist = self.persist();
        let append = self.ask(session, vec![SessionDeleted::default().into()], Vec::new(), persist);
        if !self.commit(append) {
            return;
        }
        self.sessions.retain(|other| *other != session);
        if self.rng.chance(3, 4) {
            self.ledger.push(Entry::Removing { session });
            if self.store.remove(session).is_ok() {
                self.ledger.push(Entry::Removed { session });
            }
        }
    }

    fn blob(&mut self) {
        let Some(session) = self.pick() else { return };
        let marker = self.marker();
        let Ok(blob) = self.store.blobs().put(format!("payload {marker}").repeat(50).as_bytes()) else {
            return;
        };
        let raw = Raw::from_value(&blob).expect("a reference is JSON");
        let append = self.ask(session, vec![marked(marker, 0, Some(raw))], vec![marker], Persist::Disk);
        self.commit(append);
    }

    fn reopen(&mut self) {
        let Some(session) = self.pick() else { return };
        self.store.close_session(session);
        if self.store.open_session(session).is_err() {
            // It cannot be read just now; others can.
            self.sessions.retain(|other| *other != session);
        }
    }

    fn index(&mut self) {
        let mut states = Vec::new();
        let listed = self.store.survey(|_, loaded| states.extend(loaded.ok().map(|loaded| loaded.state)));
        if listed.is_ok() {
            let _ = self.store.write_index(states.iter(), false);
        }
    }
}

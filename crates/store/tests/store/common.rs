//! What the tests of the store share: a small store over a simulated disk, and records to put into it.

use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::event::{AgentNotice, Event, Provider, Raw, SessionCreated};
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::{Draft, Line};
use rekindle_store::commit::{Append, Inline, Limits};
use rekindle_store::layout::Layout;
use rekindle_store::{OpenError, Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

/// Small bounds, so that a short workload crosses all of them.
pub(crate) const LIMITS: Limits = Limits {
    segment_bytes: 6_000,
    open_logs: 6,
    syncs_in_pause: 1,
    group_bytes: 2_000,
    reserve_bytes: 4_096,
    appends_for_two: 3,
};

pub(crate) fn open(disk: &SimDisk, clock: &Arc<SimClock>) -> Result<Store<Inline>, OpenError> {
    open_with(disk, clock, LIMITS)
}

fn open_with(disk: &SimDisk, clock: &Arc<SimClock>, limits: Limits) -> Result<Store<Inline>, OpenError> {
    let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
    Store::open_inline(Arc::new(disk.clone()), Layout::new("/home"), opener, clock.clone(), limits)
}

pub(crate) fn created() -> Draft {
    let provider = Provider { profile: "acp".into(), ..Provider::default() };
    SessionCreated {
        parent: None,
        title: "t".into(),
        working_dir: "/w".into(),
        provider,
        options: Default::default(),
        env_names: Vec::new(),
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    }
    .into()
}

/// A record that can be told from all others.
pub(crate) fn marked(marker: u64, size: usize, blob: Option<Raw<'static>>) -> Draft {
    let text = Some("x".repeat(size).into());
    AgentNotice { run_id: None, what: format!("m{marker}").into(), text, raw: blob }.into()
}

/// A disk with an open home and some sessions of a few records each.
pub(crate) struct Home {
    pub(crate) disk: SimDisk,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) store: Store<Inline>,
    pub(crate) sessions: Vec<SessionId>,
}

impl Home {
    pub(crate) fn with_sessions(count: u64, records: u64) -> Home {
        Home::with_limits(LIMITS, count, records)
    }

    pub(crate) fn with_limits(limits: Limits, count: u64, records: u64) -> Home {
        let disk = SimDisk::new(7);
        let clock = Arc::new(SimClock::default());
        let store = open_with(&disk, &clock, limits).expect("an empty home opens");
        let sessions: Vec<_> = (0..count).map(|n| SessionId::mint(n + 1, n.into())).collect();
        for session in &sessions {
            store.create(*session).expect("a new session");
            store.append(Append::durable(*session, vec![created()])).expect("the first record");
            for marker in 0..records {
                let append = Append::durable(*session, vec![marked(marker, 30, None)]);
                store.append(append).expect("a record");
            }
        }
        Home { disk, clock, store, sessions }
    }

    pub(crate) fn append(
        &self,
        marker: u64,
    ) -> Result<rekindle_store::commit::Receipt, rekindle_store::AppendError> {
        self.store.append(Append::durable(self.sessions[0], vec![marked(marker, 30, None)]))
    }

    /// Lets go of the store and opens the same disk.
    pub(crate) fn reopen_same(self) -> Home {
        let disk = self.disk.fork();
        self.reopen(disk)
    }

    /// Lets go of the store and opens what is on a disk.
    pub(crate) fn reopen(self, disk: SimDisk) -> Home {
        let Home { store, clock, sessions, .. } = self;
        drop(store);
        let store = open(&disk, &clock).expect("the home opens again");
        Home { disk, clock, store, sessions }
    }
}

/// Returns the markers in a session's log as it stands on a disk.
pub(crate) fn markers(disk: &SimDisk, session: SessionId) -> Vec<u64> {
    let path = format!("/home/sessions/{session}.messages.jsonl");
    let bytes = disk.read_file(path).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| Line::parse(line).ok());
    let events = lines.filter_map(|line| {
        line.event().ok().map(|event| match event {
            Event::AgentNotice(notice) => {
                notice.what.strip_prefix('m').and_then(|digits| digits.parse().ok())
            }
            _ => None,
        })
    });
    events.flatten().collect()
}

/// Returns what a disk was before each of the operations that something does.
pub(crate) fn pictures(disk: &SimDisk, act: impl FnOnce()) -> Vec<(String, SimDisk)> {
    let pictures = Arc::new(Mutex::new(Vec::new()));
    let (seen, handle) = (pictures.clone(), disk.clone());
    disk.set_observer(Box::new(move |op| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push((op.to_string(), handle.fork()));
    }));
    act();
    disk.clear_observer();
    std::mem::take(&mut *pictures.lock().unwrap_or_else(PoisonError::into_inner))
}

//! Homes of many finished sessions: how they are built, and the raw program that reads of each what any
//! start must read: the snapshot and the end of the log.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::Append;

use crate::context::progress;
use crate::home::{self, Filler};
use crate::records;

/// Records of a turn; the last turn of a session is behind its snapshot.
const TURN: usize = 10;

/// How much the raw program reads from the end of each log.
const TAIL: usize = 8 << 10;

/// A home on disk, and its list cache put aside.
pub(super) struct Sweep {
    pub(super) home: PathBuf,
    index: Vec<u8>,
}

impl Sweep {
    /// Builds a home of sessions that each have so many turns.
    pub(super) fn build(home: PathBuf, sessions: usize, turns: u64) -> anyhow::Result<Sweep> {
        progress(&format!("preparing a home of {sessions} sessions of {} records", turns * TURN as u64));
        let store = home::open(&home)?;
        let filler = Filler::new(&store);
        for n in 0..sessions {
            let session = home::session_id(n);
            store.create(session)?;
            filler.submit(Append::quick(session, records::beginning()));
            for number in 0..turns {
                if number + 1 == turns {
                    store.snapshot(session)?;
                }
                filler.submit(Append::quick(session, records::turn(number, TURN)));
            }
            store.close_session(session);
        }
        filler.finish()?;
        let mut states: Vec<SessionState> = Vec::new();
        store.survey(|_, loaded| states.extend(loaded.map(|loaded| loaded.state)))?;
        store.write_index(states.iter(), false)?;
        let path = store.layout().index();
        let index = fs::read(&path).context("cannot read the list cache")?;
        fs::remove_file(path)?;
        Ok(Sweep { home, index })
    }

    fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// Puts the list cache there, or takes it away.
    pub(super) fn set_index(&self, present: bool) -> anyhow::Result<()> {
        let path = self.sessions().join("index.json");
        match (present, path.exists()) {
            (true, false) => fs::write(path, &self.index).context("cannot write the list cache"),
            (false, true) => fs::remove_file(path).context("cannot remove the list cache"),
            (true, true) | (false, false) => Ok(()),
        }
    }

    /// Returns every file of every session.
    pub(super) fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.sessions())?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }

    /// Reads each snapshot and the end of each log, on two threads; returns how many sessions there are.
    pub(super) fn read_raw(&self) -> anyhow::Result<usize> {
        let files = self.files()?;
        let logs: Vec<&PathBuf> =
            files.iter().filter(|path| path.to_string_lossy().ends_with(".messages.jsonl")).collect();
        let next = AtomicUsize::new(0);
        let work = || -> anyhow::Result<()> {
            while let Some(log) = logs.get(next.fetch_add(1, Ordering::Relaxed)) {
                read_one(log)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(work);
            work()?;
            other.join().expect("a reader does not panic")
        })?;
        Ok(logs.len())
    }
}

fn read_one(log: &Path) -> anyhow::Result<()> {
    let snapshot = log.to_string_lossy().replace(".messages.jsonl", ".json");
    let snapshot = fs::read(&snapshot).with_context(|| format!("cannot read {snapshot}"))?;
    let file = File::open(log).with_context(|| format!("cannot open {}", log.display()))?;
    let len = file.metadata()?.len();
    let mut tail = vec![0; TAIL.min(len as usize)];
    let from = len - tail.len() as u64;
    file.read_exact_at(&mut tail, from)?;
    std::hint::black_box((snapshot, tail));
    Ok(())
}

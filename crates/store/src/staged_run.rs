//! Staged runs of pipelines: what a bundle brought of one, below `imports/`, checked from the first record of its ledger to the last
//! and made ready there before it gets its place.

use std::io;
use std::path::Path;

use rekindle_domain::chain::Link;
use rekindle_domain::id::{RunName, StreamId};
use rekindle_domain::line::{Draft, Envelope, Line};
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::session::{Position, Problem};
use rekindle_domain::time::Timestamp;

use crate::disk::{OpenMode, SharedDisk, write_all_at};
use crate::error::{AtPath, PathError};
use crate::fold::{Fold, Record};
use crate::home_files::HomeFiles;
use crate::layout::Layout;
use crate::log::{Damage, LogReader, Replays, Stop, walk_each};

/// Why a staged run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StagedRunError {
    /// Its ledger is not one.
    #[error("the ledger of {run} is damaged {damage}")]
    Damaged {
        /// The run.
        run: RunName,
        /// Where, and how.
        damage: Damage,
    },
    /// Records cannot be put behind it.
    #[error("the ledger of {run} cannot be continued: {why}")]
    Unfit {
        /// The run.
        run: RunName,
        /// Why not.
        why: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PathError),
}

/// A run in a staging directory, read from its first record to its last.
pub struct StagedRun {
    home: HomeFiles,
    run: RunName,
    state: PipelineState,
}

impl StagedRun {
    /// Reads a staged ledger: every record must follow the one before it, and mean something there.
    pub fn open(disk: SharedDisk, staging: &Path, run: RunName) -> Result<StagedRun, StagedRunError> {
        let home = HomeFiles::new(disk, Layout::new(staging));
        let id = run.pipeline_id();
        let path = home.ledger(id);
        let reader = home.ledger_reader(id).at_path("read", &path)?;
        let empty = PipelineState::empty(id);
        let mut replay = StrictReplay { whole: empty.position(), state: empty, refused: None };
        let damaged = |damage: Damage| StagedRunError::Damaged { run, damage };
        match walk_each(&reader, &mut replay, u64::MAX, &mut |_, _| {}).at_path("read", &path)? {
            Stop::End => {}
            Stop::Damaged(damage) => return Err(damaged(damage)),
            Stop::Torn(torn) => {
                let detail = "it ends with an incomplete record".into();
                return Err(damaged(Damage { offset: torn.begin().offset(), detail }));
            }
        }
        if let Some(damage) = replay.refused {
            return Err(damaged(damage));
        }
        if replay.state.started.is_none() {
            return Err(damaged(Damage {
                offset: 0,
                detail: "it is not a run that was ever started".into(),
            }));
        }
        Ok(StagedRun { home, run, state: replay.state })
    }

    /// Opens a staged ledger for reading.
    pub fn ledger_reader(disk: &SharedDisk, staging: &Path, run: RunName) -> io::Result<LogReader> {
        HomeFiles::new(disk.clone(), Layout::new(staging)).ledger_reader(run.pipeline_id())
    }

    /// Returns the run as its ledger has it.
    pub fn state(&self) -> &PipelineState {
        &self.state
    }

    /// Puts a record behind the last one, durably.
    pub fn append(&mut self, draft: &Draft, now: Timestamp) -> Result<(), StagedRunError> {
        let run = self.run;
        let unfit = |why: String| StagedRunError::Unfit { run, why };
        let stream: StreamId = self.state.id.into();
        let position = self.state.position();
        let ts = now.to_string();
        let place = Envelope { seq: position.last_seq + 1, ts: &ts, at: None, more: false };
        let mut line = Vec::new();
        let link = Link::new(stream, position.last_hash);
        let written = self.home.codec().write(draft, place, link, &mut line);
        let last_hash = Some(written.map_err(|error| unfit(error.to_string()))?);
        self.state.apply(now, &draft.event).map_err(|error| unfit(error.to_string()))?;
        let log_offset = position.log_offset + line.len() as u64;
        self.state.set_position(Position { last_seq: position.last_seq + 1, log_offset, last_hash });
        let path = self.home.ledger(self.state.id);
        let write = || -> io::Result<()> {
            let file = self.home.disk.open(&path, OpenMode::Write)?;
            write_all_at(&*file, &line, position.log_offset)?;
            file.sync()
        };
        Ok(write().at_path("write", &path)?)
    }
}

/// A fold in progress over a ledger from elsewhere: a record that cannot follow is no accident there.
struct StrictReplay {
    state: PipelineState,
    whole: Position,
    refused: Option<Damage>,
}

impl Replays for StrictReplay {
    fn position(&self) -> Position {
        self.state.position()
    }

    fn whole(&self) -> Position {
        self.whole
    }

    fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        let before = self.state.position();
        let position = before.after(self.state.id, line, end)?;
        let applied = match line.event() {
            Ok(event) => {
                Fold::apply(&mut self.state, &Record::of(line, &event)).map_err(|why| why.to_string())
            }
            Err(why) => Err(why.to_string()),
        };
        if let (Err(why), None) = (applied, &self.refused) {
            let detail = format!("record {} is not valid there: {why}", line.seq);
            self.refused = Some(Damage { offset: before.log_offset, detail });
        }
        self.state.set_position(position);
        if !line.more {
            self.whole = position;
        }
        Ok(())
    }
}

//! A follower of one run: told every record of its ledger, once and in order, and between them what its step waits for. It ends with the
//! run.

use std::collections::VecDeque;
use std::sync::Arc;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_wire::event::PipelinePending;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Pipelines;
use crate::error::Result;
use crate::feed::Since;
use crate::show::log::LogLine;

/// Records that are read at once.
const READ: usize = 256;

/// What a follower of a run gets.
#[derive(Debug)]
pub enum PipelineTold {
    /// A record of its ledger.
    Record(LogLine),
    /// What the step that is not finished waits for is another thing than before.
    Pending(Box<PipelinePending>),
    /// The ledger is not what the follower thinks: begin again.
    Reset {
        /// Its newest record.
        last_seq: u64,
    },
}

/// Someone who wants to follow a run.
pub enum FollowPipeline {
    /// It is followed.
    Following(Box<PipelineFollowing>),
    /// The run has ended, and the follower has been told so.
    Over,
}

/// Someone who follows a run.
pub struct PipelineFollowing {
    pipelines: Arc<Pipelines>,
    id: PipelineId,
    news: watch::Receiver<u64>,
    /// The last record that was told.
    last: u64,
    /// What it was told last of what is pending, as it was written.
    pending: Option<String>,
    ready: VecDeque<PipelineTold>,
    over: bool,
}

/// What was read.
struct Read {
    lines: Vec<LogLine>,
    pending: PipelinePending,
    last_seq: u64,
}

impl Pipelines {
    /// Follows a run, behind a record or from its beginning.
    pub(crate) fn follow(self: &Arc<Pipelines>, id: PipelineId, since: Since) -> Result<FollowPipeline> {
        // Before the ledger is looked at: what comes meanwhile is news.
        let news = self.news.subscribe();
        let state = self.open(id)?.fold;
        let last_seq = state.position().last_seq;
        let (last, hash) = match since {
            Since::After(seq) => (seq, None),
            Since::Point(seq, hash) => (seq, Some(hash)),
        };
        let mut following = PipelineFollowing {
            pipelines: self.clone(),
            id,
            news,
            last,
            pending: None,
            ready: VecDeque::new(),
            over: false,
        };
        if last > last_seq || !self.has_record(id, last, hash)? {
            following.ready.push_back(PipelineTold::Reset { last_seq });
            following.over = true;
        } else if hash.is_some() && last == last_seq && state.status != RunStatus::Running {
            return Ok(FollowPipeline::Over);
        }
        Ok(FollowPipeline::Following(Box::new(following)))
    }

    /// Tells whether a ledger has a record with this hash.
    fn has_record(&self, id: PipelineId, seq: u64, hash: Option<ChainHash>) -> Result<bool> {
        let Some(hash) = hash.filter(|_| seq > 0) else { return Ok(true) };
        let found = self.lines(id, seq - 1, 1, None)?;
        Ok(found.first().is_some_and(|line| line.seq == seq && line.hash == Some(hash)))
    }

    fn read_on(&self, id: PipelineId, last: u64) -> Result<Read> {
        let state = self.open(id)?.fold;
        let lines = self.lines(id, last, READ, None)?;
        let pending = self.view(&state).and_then(|view| view.pending);
        let pending = PipelinePending { status: state.status, pending };
        Ok(Read { lines, pending, last_seq: state.position().last_seq })
    }
}

impl PipelineFollowing {
    /// Returns what is next; none when the run has ended, or the daemon leaves.
    pub async fn next(&mut self) -> Option<PipelineTold> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if self.over {
                return None;
            }
            self.news.mark_unchanged();
            let (pipelines, id, last) = (self.pipelines.clone(), self.id, self.last);
            let read = spawn_blocking(move || pipelines.read_on(id, last)).await.ok()?;
            let Read { lines, pending, last_seq } = read.ok()?;
            self.last = lines.last().map_or(self.last, |line| line.seq);
            let is_behind = self.last < last_seq && !lines.is_empty();
            self.ready.extend(lines.into_iter().map(PipelineTold::Record));
            if is_behind {
                continue;
            }
            self.over = pending.status != RunStatus::Running;
            let words = serde_json::to_string(&pending).ok();
            if !self.over && words != self.pending {
                self.pending = words;
                self.ready.push_back(PipelineTold::Pending(Box::new(pending)));
            }
            if self.ready.is_empty() && !self.over {
                self.news.changed().await.ok()?;
            }
        }
    }
}

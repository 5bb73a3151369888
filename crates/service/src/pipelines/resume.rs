//! Runs resumed and aborted by somebody: asked of their workers, which alone add to their ledgers.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use rekindle_domain::id::PipelineId;

use super::Pipelines;
use super::worker::{Command, ResumeRun, Resumed};
use crate::drive::environment;
use crate::error::{Result, ServiceError};

impl Pipelines {
    /// Has a run go on.
    pub(crate) fn resume(self: &Arc<Pipelines>, id: PipelineId, asked: ResumeRun) -> Result<Resumed> {
        environment::check(&asked.env)?;
        self.open(id)?;
        let asked = Box::new(asked);
        self.ask(id, |reply| Command::Resume { asked, reply })
    }

    /// Ends a run, with whatever goes on in it.
    pub(crate) fn abort(self: &Arc<Pipelines>, id: PipelineId, reason: Option<&str>, by: &str) -> Result<()> {
        self.open(id)?;
        let (reason, by) = (reason.map(str::to_owned), by.to_owned());
        self.ask(id, |reply| Command::Abort { reason, by, reply })
    }

    fn ask<T>(
        self: &Arc<Pipelines>,
        id: PipelineId,
        command: impl FnOnce(SyncSender<Result<T>>) -> Command,
    ) -> Result<T> {
        let (reply, answer) = sync_channel(1);
        self.send(id, command(reply))?;
        answer.recv().unwrap_or_else(|_| Err(ServiceError::leaving()))
    }
}

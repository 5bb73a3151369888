//! Runs as they are shown: one, a list of them, their ledgers.

use std::path::Path;

use rekindle_domain::id::{PipelineId, RunName, StreamId};
use rekindle_domain::pipeline::next_step::{Rest, Waits};
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::filter::PipelineFilter;
use rekindle_wire::view::{PendingWhy, PipelineList, PipelineView};

use super::{Pipelines, Standing};
use crate::error::{Result, ServiceError, damaged_log};
use crate::show::log::{LogLine, LogPage, log_line};
use crate::show::page_size;

/// Runs of a page, if nobody says how many, and at most.
const PAGE: usize = 50;
const MOST: usize = 500;

impl Pipelines {
    /// Shows a run.
    pub(crate) fn show(&self, id: PipelineId) -> Result<PipelineView> {
        let opened = self.open(id)?;
        let mut view = self.view(&opened.fold).ok_or_else(ServiceError::moved)?;
        if let (Some(damage), Some(pending)) = (&opened.damage, view.pending.as_mut()) {
            pending.detail = Some(damaged_log(damage));
        }
        Ok(view)
    }

    /// Returns what is shown of a run: what its ledger says, and what its step waits for at this moment.
    pub(super) fn view(&self, state: &PipelineState) -> Option<PipelineView> {
        let mut view = PipelineView::of(state)?;
        if let Some(pending) = &mut view.pending {
            let Standing { waits, rests, held, drift } = self.standing(state.id);
            pending.why = match (waits, rests) {
                (Some(waits), _) => waiting(waits),
                (None, Some(rests)) => resting(rests).unwrap_or(pending.why),
                (None, None) => pending.why,
            };
            (pending.detail, pending.drift) = (held, drift.map(|drift| *drift));
        }
        Some(view)
    }

    /// Lists runs, the newest first.
    pub(crate) fn list(&self, filter: &PipelineFilter) -> Result<PipelineList> {
        let statuses = statuses(filter.status.as_deref())?;
        let most = page_size(filter.limit, PAGE, MOST)?;
        let behind: Option<RunName> = filter.cursor.as_deref().map(cursor).transpose()?;
        let mut pipelines: Vec<PipelineView> = Vec::new();
        let runs = self.store.pipelines().map_err(ServiceError::internal)?.runs;
        let prefix = filter.prefix.as_deref().unwrap_or_default();
        let named = |name: &RunName| {
            name.to_string().starts_with(prefix) || name.pipeline_id().as_str().starts_with(prefix)
        };
        let before = runs.iter().rev().filter(|name| behind.is_none_or(|behind| **name < behind));
        for name in before.filter(|name| named(name)) {
            let Some(view) = self.look_at(name.pipeline_id()) else { continue };
            let fits = (statuses.is_empty() || statuses.contains(&view.status))
                && filter.task.as_ref().is_none_or(|task| view.task_id == *task)
                && filter.cwd.as_ref().is_none_or(|cwd| {
                    [&view.working_dir, &view.origin].iter().any(|place| Path::new(place).starts_with(cwd))
                });
            if !fits {
                continue;
            }
            if pipelines.len() == most {
                let next = pipelines.last().map(|last| last.run_id.clone());
                return Ok(PipelineList { pipelines, next });
            }
            pipelines.push(view);
        }
        Ok(PipelineList { pipelines, next: None })
    }

    /// Shows a run that may have been let go of; one that cannot be read hides no other. The ledger of one that is over is not read.
    fn look_at(&self, id: PipelineId) -> Option<PipelineView> {
        if let Some(view) = self.over(id).and_then(|over| over.view()) {
            return Some(view);
        }
        let is_open = self.store.pipeline(id).is_some();
        let view = self.open(id).ok().and_then(|opened| self.view(&opened.fold));
        if !is_open && self.pool.get(id).is_none() {
            self.store.close_pipeline(id);
        }
        view
    }

    /// Reads records of a run's ledger.
    pub(crate) fn ledger(&self, id: PipelineId, after: u64, limit: usize) -> Result<LogPage> {
        let damage = self.open(id)?.damage;
        let whole = damage.as_ref().map(|damage| damage.begin());
        let mut records = self.lines(id, after, limit + 1, whole)?;
        let more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().map(|last| last.seq).filter(|_| more);
        Ok(LogPage { records, next, damage: damage.filter(|_| next.is_none()), history_missing: None })
    }

    /// Reads lines of a ledger behind a record.
    pub(super) fn lines(
        &self,
        id: PipelineId,
        after: u64,
        most: usize,
        whole: Option<Cursor>,
    ) -> Result<Vec<LogLine>> {
        let reader = self.store.ledger_reader(id).map_err(ServiceError::internal)?;
        let begin = reader.find(after.saturating_add(1)).map_err(ServiceError::internal)?;
        let Some(begin) = begin else { return Ok(Vec::new()) };
        let (mut lines, mut records) = (reader.forward(begin), Vec::new());
        while records.len() < most {
            let next = lines.next().map_err(ServiceError::internal)?;
            let line = next.filter(|raw| whole.is_none_or(|whole| raw.start < whole));
            let Some(line) = line.and_then(|raw| log_line(raw.bytes)) else { break };
            records.push(line);
        }
        Ok(records)
    }

    /// Finds the run that a name or the id of a ledger stands for.
    pub(crate) fn named(text: &str) -> Result<PipelineId> {
        let by_name = text.parse::<RunName>().map(RunName::pipeline_id);
        by_name.or_else(|bad| text.parse::<PipelineId>().map_err(|_| bad)).map_err(|bad| {
            ServiceError::new(Code::RunUnknown, bad).hint(rekindle_wire::hint::Hint::ListPipelines)
        })
    }

    /// A ledger has grown, or a run stands elsewhere: who follows it is told.
    pub(crate) fn publish(&self, stream: StreamId) {
        if stream.pipeline().is_some() {
            self.news.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

/// Returns the word for what a step waits for.
fn waiting(waits: Waits) -> PendingWhy {
    match waits {
        Waits::Agent => PendingWhy::Working,
        Waits::Person => PendingWhy::Person,
        Waits::Silence | Waits::Heartbeat => PendingWhy::Silent,
        Waits::Stalled => PendingWhy::Stalled,
        Waits::SameKey => PendingWhy::SameKey,
        Waits::Directory => PendingWhy::Directory,
        Waits::Place => PendingWhy::Place,
        Waits::Time(_) => PendingWhy::Time,
    }
}

/// Returns the word for why a step does not go on; none if its run has ended.
fn resting(rests: Rest) -> Option<PendingWhy> {
    Some(match rests {
        Rest::NotStarted | Rest::Completed | Rest::Failed | Rest::Aborted => return None,
        Rest::HeldElsewhere => PendingWhy::HeldElsewhere,
        Rest::Asks => PendingWhy::Asks,
        Rest::Left => PendingWhy::Left,
        Rest::Cancelled => PendingWhy::Cancelled,
        Rest::TooManyAttempts => PendingWhy::TooManyAttempts,
        Rest::NotLaunched => PendingWhy::NotLaunched,
        Rest::Drift => PendingWhy::Drift,
        Rest::NoDirectory => PendingWhy::NoDirectory,
        Rest::NoEnvironment => PendingWhy::NoEnvironment,
        Rest::ManifestMissing => PendingWhy::ManifestMissing,
        Rest::Imported => PendingWhy::Imported,
    })
}

fn statuses(text: Option<&str>) -> Result<Vec<RunStatus>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let one = |word: &str| RunStatus::ALL.iter().find(|status| status.as_str() == word).copied();
    text.split(',')
        .map(|word| {
            one(word).ok_or_else(|| {
                ServiceError::new(Code::InvalidQuery, format!("{word:?} is not a status of a pipeline run"))
            })
        })
        .collect()
}

fn cursor(text: &str) -> Result<RunName> {
    text.parse().map_err(|_| ServiceError::new(Code::InvalidCursor, "the cursor did not come from this list"))
}

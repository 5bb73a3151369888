//! The progress of a run as lines that stay: one for each step that is finished, made from the ledger's records alone, so that whoever
//! looks later sees the same.

use std::collections::BTreeMap;

use anstyle::Style;
use rekindle_domain::event::{
    ChangedFiles, Event, FilesTouched, OnDrift, PathList, PipelineDrift, PipelineStarted, StepCut,
    StepFinished,
};
use rekindle_domain::id::StepId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_domain::pipeline::template::payload_field;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{BAD, BOLD, COURSE, DIM, GOOD, PLAIN, WARN, columns, cut, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_wire::view::TouchedView;

use super::words::{cut_text, took, touched, used};

/// Lines of findings that are shown below a step.
const FINDINGS: usize = 6;

/// Files that are named where some differ.
const NAMED: usize = 20;

/// Columns before what a line says: the time.
const INDENT: &str = "          ";

/// Columns in which a text is broken between words at least: in fewer, no word would fit.
const LEAST_ROOM: usize = 24;

/// What is known of a run from the records so far.
#[derive(Debug, Default)]
pub struct Progress {
    /// What stands before each line, if several runs are shown.
    prefix: String,
    max_rounds: u32,
    round: u32,
    /// Columns of the longest stage with its round, and of the longest name of who works.
    stage_width: usize,
    who_width: usize,
    /// Who works at a step.
    who: BTreeMap<StepId, String>,
    /// When its first attempt began.
    began: BTreeMap<StepId, Timestamp>,
    /// The step that goes on, and since when.
    current: Option<(StepId, Timestamp)>,
    /// How it ended, if it has.
    ended: Option<RunStatus>,
}

impl Progress {
    /// Begins; each line has this before it.
    pub fn new(prefix: String) -> Progress {
        Progress { prefix, ..Progress::default() }
    }

    /// Returns how the run ended, if it has.
    pub fn ended(&self) -> Option<RunStatus> {
        self.ended
    }

    /// Says what goes on now: for the line that is drawn over.
    pub fn current(&self) -> Option<(String, Timestamp)> {
        let (step, since) = self.current.as_ref()?;
        let who = self.who.get(step).map(|who| format!(" ({who})")).unwrap_or_default();
        Some((format!("{}{} {}{who}", self.prefix, step.stage, step.round), *since))
    }

    /// Takes in a record; returns the lines that it makes, cut to some columns.
    pub fn take(&mut self, ts: Timestamp, event: &Event<'_>, width: usize) -> Vec<String> {
        match event {
            Event::PipelineStarted(started) => self.start(ts, started, width),
            Event::StepIntended(intended) => {
                let step = intended.step_id.clone();
                let who =
                    intended.agent.as_ref().map_or_else(|| "check".to_owned(), |agent| agent.name.clone());
                self.who.insert(step.clone(), sanitise::line(&who));
                let mut lines = Vec::new();
                if step.round > self.round.max(1) {
                    let text = format!("round {} of at most {}", step.round, self.max_rounds.max(step.round));
                    lines.push(self.line(ts, &styled(COURSE, text)));
                }
                self.round = self.round.max(step.round);
                self.current = Some((step, ts));
                lines
            }
            Event::StepBegan(began) => {
                self.began.entry(began.step_id.clone()).or_insert(ts);
                self.current = Some((began.step_id.clone(), ts));
                let what = match (began.reminder, began.attempt) {
                    (true, _) => "is asked again for its outcome".to_owned(),
                    (false, 1) => return Vec::new(),
                    (false, attempt) => format!("starts again: attempt {attempt}"),
                };
                vec![self.about(ts, &began.step_id, DIM, &what)]
            }
            Event::StepFinished(finished) => self.finish(ts, finished, width),
            Event::StepInterrupted(interrupted) => {
                self.current = None;
                let why = match (interrupted.reason, interrupted.detail.as_deref()) {
                    // The detail names it, and says that.
                    (StepCut::NotLaunched, Some(detail)) => detail.to_owned(),
                    (reason, None) => cut_text(reason).to_owned(),
                    (reason, Some(detail)) => format!("{}: {detail}", cut_text(reason)),
                };
                let text = match interrupted.reason {
                    StepCut::NotLaunched => format!("attempt {}: {why}", interrupted.attempt),
                    _ => format!("attempt {} was interrupted: {why}", interrupted.attempt),
                };
                self.wrapped(ts, &interrupted.step_id, WARN, &text, width)
            }
            Event::PipelineDrift(drift) => self.drift(ts, drift, width),
            Event::PipelineCompleted(_) => self.end(ts, RunStatus::Completed, None, None),
            Event::PipelineFailed(end) => {
                self.end(ts, RunStatus::Failed, end.reason.as_deref(), end.by.as_deref())
            }
            Event::PipelineAborted(end) => {
                self.end(ts, RunStatus::Aborted, end.reason.as_deref(), end.by.as_deref())
            }
            Event::PipelineReopened(end) => {
                self.ended = None;
                let by = end.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                vec![self.line(ts, &styled(COURSE, sanitise::line(&format!("reopened{by}"))))]
            }
            Event::PipelineBudget(budget) => vec![self.line(ts, &styled(WARN, budget.notice))],
            Event::PipelineImported(imported) => {
                self.current = None;
                let from = imported.machine.as_deref().map(|machine| format!(" from {machine}"));
                let text = format!("imported{}", from.unwrap_or_default());
                vec![self.line(ts, &styled(COURSE, sanitise::line(&text)))]
            }
            _ => Vec::new(),
        }
    }

    fn start(&mut self, ts: Timestamp, started: &PipelineStarted<'_>, width: usize) -> Vec<String> {
        let pipeline = started.config.pipelines.get(&*started.pipeline);
        let stages = pipeline.map(|pipeline| pipeline.stages.as_slice()).unwrap_or_default();
        self.max_rounds = pipeline.map_or(1, |pipeline| pipeline.rounds());
        let digits = if self.max_rounds > 9 { 2 } else { 1 };
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        self.stage_width = longest(&mut stages.iter().map(|stage| columns(&stage.name))) + 1 + digits;
        let who = |agent: Option<&str>| columns(agent.unwrap_or("check"));
        self.who_width = longest(&mut stages.iter().map(|stage| who(stage.agent.as_deref())));
        let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        let goal = sanitise::line(&format!("{}: {}", started.task.id, started.task.goal));
        let path = format!("{} from {}", names.join(" → "), started.snapshot_id);
        let room = width.saturating_sub(INDENT.len() + columns(&self.prefix));
        vec![
            self.line(ts, &styled(BOLD, cut(&goal, room))),
            self.below(&styled(DIM, cut(&sanitise::line(&path), room))),
        ]
    }

    fn finish(&mut self, ts: Timestamp, finished: &StepFinished<'_>, width: usize) -> Vec<String> {
        self.current = None;
        let step = &finished.step_id;
        let style = match &*finished.outcome {
            "failed" => BAD,
            "completed" => GOOD,
            _ => PLAIN,
        };
        let outcome = sanitise::line(&finished.outcome);
        let mut told = Vec::new();
        if finished.cached {
            told.push("cached".to_owned());
        } else if let Some(began) = self.began.get(step) {
            told.push(took(ts.millis_since(*began)));
        }
        let (tokens, cost) = used(finished.usage.unwrap_or_default());
        let files = finished.files_touched.as_deref().map(|files| touched(view(files))).unwrap_or_default();
        told.extend([tokens, cost, files].into_iter().filter(|text| !text.is_empty()));
        let head = self.head(step);
        // Outcomes of one run are mostly as long as these.
        let text = format!("{head}{}  {}", styled(style, format_args!("{outcome:<9}")), told.join("  "));
        let mut lines = vec![self.line(ts, text.trim_end())];
        let findings = finished.payload.as_ref().and_then(|json| payload_field(json.as_json(), "findings"));
        lines.extend(self.findings(&findings.unwrap_or_default(), width));
        lines
    }

    /// Returns the beginning of what was found, below the line of its step.
    fn findings(&self, findings: &str, width: usize) -> Vec<String> {
        let room = width.saturating_sub(INDENT.len() + columns(&self.prefix) + 2);
        let clean = sanitise::block(findings.trim());
        let all: Vec<&str> = clean.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let more = all.len().saturating_sub(FINDINGS);
        let shown = all.iter().take(FINDINGS).map(|line| format!("  {}", cut(line, room)));
        let more = (more > 0).then(|| format!("  … {more} more: rekindle pipeline show has them"));
        shown.chain(more).map(|line| self.below(&styled(DIM, line))).collect()
    }

    fn drift(&mut self, ts: Timestamp, drift: &PipelineDrift<'_>, width: usize) -> Vec<String> {
        let total = drift.files.total;
        let files = if total == 1 { "1 file is".to_owned() } else { format!("{total} files are") };
        let what = match drift.decision {
            OnDrift::Stop => "it waits for your decision",
            OnDrift::Restore => "they are restored to what it expects",
            OnDrift::Accept => "they are accepted as they are",
        };
        let by = drift.by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default();
        let text = format!("{files} not as it expects: {what}{by}");
        let mut lines = vec![self.about(ts, &drift.step_id, WARN, &text)];
        let room = width.saturating_sub(INDENT.len() + columns(&self.prefix));
        let files = drift_lines(&drift.files, &drift.after_cut, &drift.unknown_author);
        lines.extend(files.iter().map(|line| self.below(&cut(line, room))));
        lines
    }

    fn end(
        &mut self,
        ts: Timestamp,
        status: RunStatus,
        reason: Option<&str>,
        by: Option<&str>,
    ) -> Vec<String> {
        (self.ended, self.current) = (Some(status), None);
        let style = status_style(status);
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        vec![self.line(ts, &styled(style, sanitise::line(&format!("{}{by}{reason}", status.as_str()))))]
    }

    fn about(&self, ts: Timestamp, step: &StepId, style: Style, text: &str) -> String {
        self.line(ts, &format!("{}{}", self.head(step), styled(style, sanitise::line(text))))
    }

    /// Returns a text about a step, broken between words below its own column.
    fn wrapped(&self, ts: Timestamp, step: &StepId, style: Style, text: &str, width: usize) -> Vec<String> {
        // The stage and who works, each with two blanks behind.
        let before = self.stage_width + 2 + self.who_width + 2;
        let room = width.saturating_sub(INDENT.len() + columns(&self.prefix) + before).max(LEAST_ROOM);
        let text = wrap(&sanitise::line(text), room, "", "");
        let mut lines = text.lines();
        let first = self.about(ts, step, style, lines.next().unwrap_or_default());
        let rest = lines.map(|line| self.below(&format!("{:before$}{}", "", styled(style, line))));
        std::iter::once(first).chain(rest).collect()
    }

    /// Returns the columns that name a step and who works at it.
    fn head(&self, step: &StepId) -> String {
        let name = format!("{} {}", step.stage, step.round);
        let who = self.who.get(step).map_or("", String::as_str);
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
        let (stage_pad, who_pad) = (pad(&name, self.stage_width), pad(who, self.who_width));
        format!("{}{stage_pad}  {}{who_pad}  ", styled(BOLD, &name), styled(DIM, who))
    }

    fn line(&self, ts: Timestamp, text: &str) -> String {
        let time = ts.to_string();
        let time = time.get(11..19).unwrap_or_default();
        format!("{}  {}{text}", styled(DIM, time), self.prefix)
    }

    fn below(&self, text: &str) -> String {
        format!("{INDENT}{}{text}", " ".repeat(columns(&self.prefix)))
    }
}

fn view(files: &FilesTouched) -> TouchedView {
    let FilesTouched { total, lines_added, lines_removed, .. } = *files;
    TouchedView { files: total, lines_added, lines_removed }
}

/// Returns how the end of a run is shown.
pub(super) fn status_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Running => COURSE,
        RunStatus::Completed => GOOD,
        RunStatus::Failed | RunStatus::Aborted => BAD,
    }
}

/// Names the files that are not as a step expects them, and what is known of who changed them.
pub(super) fn drift_lines(files: &ChangedFiles, after_cut: &PathList, unknown: &PathList) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for file in files.first.iter().take(NAMED) {
        let path = file.path.bytes().unwrap_or_default();
        let whose = if after_cut.first.contains(&file.path) {
            "  (after the agent was gone)"
        } else if unknown.first.contains(&file.path) {
            "  (it is not known by whom)"
        } else {
            ""
        };
        let change = file.change.as_str();
        lines.push(format!("{change:<8}  {}{whose}", sanitise::line(&String::from_utf8_lossy(&path))));
    }
    let shown = lines.len() as u64;
    if files.total > shown {
        lines.push(format!("and {} more", files.total - shown));
    }
    lines
}

#[cfg(test)]
mod tests;

//! Pipeline runs: the whole ledger of each, record by record, and what else is in their directories.

use std::path::Path;

use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::PipelineState;

use super::HomeView;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::home::{list, unknown};
use super::wal::{self, RESTORE};
use crate::load_stream::load_stream;
use crate::pipeline_runs::{PipelineRuns, run_of};
use crate::redo::Completion;

/// Checks the pipeline runs, if the home has some.
pub(super) fn check(view: &HomeView, findings: &mut Findings) {
    let directory = view.home.runs();
    let mut listed = PipelineRuns::default();
    for entry in list(&*view.raw, &directory, findings) {
        match run_of(&entry) {
            Some(name) => listed.runs.push(name),
            None => findings.add(unknown(&directory, &entry)),
        }
    }
    // Of one whose directory is gone the write-ahead log may still know.
    let mentioned = view.pending_ledgers.keys().copied();
    for name in listed.with(mentioned).runs {
        check_names(view, name.pipeline_id(), findings);
        check_ledger(view, name.pipeline_id(), findings);
    }
}

fn check_names(view: &HomeView, run: PipelineId, findings: &mut Findings) {
    let directory = view.home.run(run);
    let ours = [view.home.ledger(run), view.home.run_summary(run), view.home.stream_damage_note(run.into())];
    let compressed = view.home.compressed_log(run.into());
    let entries = list(&*view.raw, &directory, findings);
    let is_there = |path: &Path| entries.iter().any(|entry| directory.join(&entry.name) == path);
    if let Some(compressed) = compressed.as_ref().filter(|path| is_there(path) && is_there(&ours[0])) {
        let what = "The ledger of a run exists both plain and compressed: one of them was to be removed.";
        let remedy = "Nothing to do: the plain one is used, and the next start removes one of them.";
        findings.add(Finding::new(Code::LedgerTwice, compressed.clone(), what, remedy));
    }
    for entry in entries {
        let path = directory.join(&entry.name);
        if !ours.contains(&path) && compressed.as_ref() != Some(&path) {
            findings.add(unknown(&directory, &entry));
        }
    }
}

fn check_ledger(view: &HomeView, run: PipelineId, findings: &mut Findings) {
    let path = view.home.ledger(run);
    let loaded = match load_stream(&view.home, PipelineState::empty(run), None) {
        Ok(loaded) => loaded,
        Err(error) => {
            let what = format!("The ledger of a pipeline run cannot be read: {error}.");
            let remedy = format!("Make it readable: chmod 600 {}", path.display());
            return findings.add(Finding::new(Code::LogUnreadable, path, what, remedy));
        }
    };
    let last = loaded.fold.position().last_seq;
    let pending = view.pending_ledgers.get(&run);
    let lost = match pending {
        Some(Completion::Damaged(damage)) => Some(damage.clone()),
        _ => None,
    };
    if let Some(damage) = loaded.damage.or(lost) {
        let what = format!("The ledger of a pipeline run is damaged after record {last}: {}.", damage.detail);
        return findings.add(Finding::new(Code::LogDamaged, path, what, RESTORE).byte(damage.offset));
    }
    if let Some(found) = pending.and_then(|done| wal::pending_of(view, run.into(), done)) {
        findings.add(found);
    }
    if let Some(torn) = loaded.torn {
        return findings.add(wal::torn(path, torn.offset, torn.len, torn.half_list));
    }
    // Of a run that was never begun there is nothing but the directory.
    if last == 0 && view.raw.stat(&view.home.run_summary(run)).is_ok() {
        let what = "The ledger of a pipeline run is missing; only its summary exists.";
        findings.add(Finding::new(Code::LogDamaged, path, what, RESTORE));
    }
}

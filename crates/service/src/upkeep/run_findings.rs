//! Runs of pipelines, beside what their ledgers say of themselves: summaries that say otherwise, sessions that are gone, and files that a
//! run could not go on without.

use std::collections::BTreeSet;
use std::io;

use rekindle_domain::event::Event;
use rekindle_domain::id::{RunName, SessionId};
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::check::{Code, Finding};
use rekindle_store::disk::{SharedDisk, if_exists, read_all};
use rekindle_store::offline::Offline;
use rekindle_workspace::tree::short_name;

use crate::log_search::for_each_line;
use crate::run_summary::possible_files;
use crate::workspaces::Workspaces;

/// Largest summary that is compared.
const MOST_SUMMARY: u64 = 16 << 20;

/// Looks at the runs of a home. `owned` says that a daemon is at work, which writes summaries behind records.
pub(super) fn inspect_runs(disk: &SharedDisk, offline: &Offline, owned: bool) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let runs = offline.pipelines()?.runs;
    if runs.is_empty() {
        return Ok(findings);
    }
    let sessions: BTreeSet<SessionId> = offline.sessions()?.into_iter().collect();
    let workspaces = Workspaces::new(disk.clone(), offline.layout().clone());
    for name in runs {
        // What is wrong with a ledger itself has been told.
        let Ok(loaded) = offline.pipeline(name.pipeline_id()) else { continue };
        if loaded.damage.is_some() || loaded.state.started.is_none() {
            continue;
        }
        if !owned {
            findings.extend(summary(disk, offline, name, &loaded.state));
        }
        findings.extend(missing_sessions(offline, name, &loaded.state, &sessions)?);
        findings.extend(missing_files(offline, &workspaces, name, &loaded.state));
    }
    Ok(findings)
}

fn summary(disk: &SharedDisk, offline: &Offline, run: RunName, state: &PipelineState) -> Option<Finding> {
    let path = offline.layout().run_summary(run.pipeline_id());
    let expected = possible_files(state);
    let there = if_exists(read_all(&**disk, &path, MOST_SUMMARY));
    let remedy = "Nothing to do: the next start writes it from the ledger.";
    match there {
        Ok(Some(there)) if expected.contains(&there) => None,
        Ok(None) => {
            let what = format!("{run} has no run.json, which is made from its ledger.");
            Some(Finding::new(Code::RunSummaryMissing, path, what, remedy))
        }
        Ok(Some(_)) | Err(_) => {
            let what = format!("run.json of {run} differs from its ledger; the ledger is right.");
            Some(Finding::new(Code::RunSummaryDiffers, path, what, remedy))
        }
    }
}

fn missing_sessions(
    offline: &Offline,
    run: RunName,
    state: &PipelineState,
    known: &BTreeSet<SessionId>,
) -> io::Result<Option<Finding>> {
    let ledger = offline.ledger_reader(run.pipeline_id())?;
    let mut missing: Vec<String> = Vec::new();
    let visit = |line: &Line<'_>| {
        if let Ok(Event::StepBegan(began)) = line.event()
            && !known.contains(&began.session_id)
        {
            missing.push(format!("{} of {}", began.session_id, began.step_id));
        }
    };
    for_each_line(&ledger, visit)?;
    missing.dedup();
    let Some(first) = missing.first() else { return Ok(None) };
    let more = if missing.len() > 1 { format!(", and {} more", missing.len() - 1) } else { String::new() };
    let path = offline.layout().ledger(run.pipeline_id());
    let what = format!("Sessions of {run} are missing: {first}{more}.");
    let remedy = if state.status == RunStatus::Running {
        "Import a bundle that has them, or resume the run: a step whose session is gone starts again."
    } else {
        "Nothing to do: the result of the run is in its ledger."
    };
    Ok(Some(Finding::new(Code::RunSessionMissing, path, what, remedy)))
}

fn missing_files(
    offline: &Offline,
    workspaces: &Workspaces,
    run: RunName,
    state: &PipelineState,
) -> Option<Finding> {
    let tree = state.expected_tree().filter(|_| state.status != RunStatus::Completed)?;
    if workspaces.has(&tree) {
        return None;
    }
    let path = offline.layout().ledger(run.pipeline_id());
    let snapshot = short_name(&tree);
    let what = format!("The files that {run} continues with, {snapshot}, are no longer kept.");
    let remedy = "Import a bundle that has them, or resume the run and accept the files as they are.";
    Some(Finding::new(Code::RunFilesMissing, path, what, remedy))
}

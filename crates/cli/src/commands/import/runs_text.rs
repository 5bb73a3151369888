//! What is said of runs of pipelines that a bundle brought.

use std::path::Path;

use rekindle_display::hints::ours;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::SessionId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_service::bundles::import::{ImportedResults, ImportedRun};
use rekindle_terminal::output::plural;
use rekindle_terminal::sanitise;
use rekindle_workspace::tree::short_name;

/// Says what was imported, what was lost, and how it goes on.
pub(super) fn tell(runs: &[ImportedRun], known: &[SessionId], restored: Option<BlobId>, dry_run: bool) {
    for run in runs {
        let done = if dry_run { "would be imported" } else { "imported" };
        let records = plural(run.records, "record");
        let goal = sanitise::line(&run.goal);
        let status = run.status.as_str();
        anstream::eprintln!("{done}: {}, {goal:?}, {records}, {status}, in {}", run.run_id, run.working_dir);
        for note in notes(run, restored) {
            anstream::eprintln!("note: {}", sanitise::line(&note));
        }
    }
    if !known.is_empty() {
        let known = plural(known.len() as u64, "session");
        anstream::eprintln!("note: {known} of its steps are here already, and stay as they are");
    }
    if let ([run], false) = (runs, dry_run)
        && run.status != RunStatus::Completed
    {
        let force = if run.status == RunStatus::Running { "" } else { " --force" };
        anstream::eprintln!("continue with: {}", ours(format_args!("pipeline resume {}{force}", run.run_id)));
    }
}

/// Says what became of the results that runs share.
pub(super) fn tell_results(results: &ImportedResults, dry_run: bool) {
    let count = |number: usize| plural(number as u64, "shared result");
    let (imported, known) = (results.imported.len(), results.known.len());
    if imported > 0 {
        let done = if dry_run { "would be imported" } else { "imported" };
        anstream::eprintln!("{done}: {} of steps, which other runs may use", count(imported));
    }
    if known > 0 {
        anstream::eprintln!("note: {} of steps are here already", count(known));
    }
    for left in &results.left_out {
        anstream::eprintln!("note: left out: the shared result {}: {}", left.key, sanitise::line(&left.why));
    }
}

fn notes(run: &ImportedRun, restored: Option<BlobId>) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(next), true) = (&run.next, run.lost_attempt) {
        notes.push(format!("{next} was in progress when it was exported: it starts again"));
    }
    if restored.is_none() && !Path::new(&run.working_dir).is_dir() {
        notes.push(format!("there is no directory {} here; --into names another", run.working_dir));
    }
    match run.tree {
        Some(tree) if restored != Some(tree) => {
            let name = short_name(&tree);
            notes.push(format!(
                "the files that it continues with are kept as {name}: pipeline resume --on-drift restore puts them into its directory"
            ));
        }
        Some(_) => {}
        None => notes.push("the files that it continues with are not in the bundle".into()),
    }
    notes
}

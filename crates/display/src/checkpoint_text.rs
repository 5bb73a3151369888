//! Checkpoints of a run in words: in the log, and in a session's status.

use rekindle_domain::event::{CheckpointAt, CheckpointHow, NotTakenReason, RunCheckpoint};
use rekindle_terminal::output::{grouped, plural};
use rekindle_wire::view::{CheckpointView, RunView, TouchedView};
use rekindle_workspace::tree::short_name;

/// Says in a few words what a checkpoint is.
pub(crate) fn gist(checkpoint: &RunCheckpoint) -> String {
    let at = match checkpoint.at {
        CheckpointAt::Start => "start",
        CheckpointAt::End => "end",
    };
    let Some(tree) = &checkpoint.tree else {
        let why = checkpoint.not_taken.as_ref();
        let why = why.map_or_else(String::new, |why| format!(", {}: {}", words(why.reason), why.detail));
        return format!("{at}, not taken{why}");
    };
    let late = if checkpoint.how == CheckpointHow::Late { ", late" } else { "" };
    let files = checkpoint.files_touched.as_ref().map(|touched| {
        let differ = if touched.rules_differ { ", with different rules for which files count" } else { "" };
        let (files, added, removed) = (touched.total, touched.lines_added, touched.lines_removed);
        format!(
            ": {}{differ}",
            touched_text(TouchedView { files, lines_added: added, lines_removed: removed })
        )
    });
    let skipped = checkpoint.skipped.as_ref().map_or(0, |skipped| skipped.totals.values().sum());
    let skipped = if skipped == 0 { String::new() } else { format!(", {} skipped", grouped(skipped)) };
    format!("{at} {}{late}{}{skipped}", short_name(tree), files.unwrap_or_default())
}

fn words(reason: NotTakenReason) -> String {
    reason.as_str().replace('_', " ")
}

/// Says how many files were touched.
pub fn touched_text(touched: TouchedView) -> String {
    match touched {
        TouchedView { files: 0, .. } => "no file touched".to_owned(),
        TouchedView { files, lines_added, lines_removed } => {
            let (added, removed) = (grouped(lines_added), grouped(lines_removed));
            format!("{} touched, +{added} −{removed} lines", plural(files, "file"))
        }
    }
}

/// Says what the latest run did to its files, or why that is not known.
pub fn files_text(run: &RunView) -> Option<String> {
    let missing = |at: &str, checkpoint: &Option<CheckpointView>| {
        let why = checkpoint.as_ref()?.not_taken?;
        Some(format!("not known: the checkpoint at its {at} was not taken ({})", words(why)))
    };
    let Some(touched) = run.files_touched else {
        let checkpoints = &run.checkpoints;
        return missing("start", &checkpoints.start).or_else(|| missing("end", &checkpoints.end));
    };
    let is_late = run.checkpoints.end.as_ref().is_some_and(|end| end.how == CheckpointHow::Late);
    let late =
        if is_late { ", perhaps not all of it by its agent: no daemon was running at its end" } else { "" };
    Some(format!("{}{late}", touched_text(touched)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_checkpoint_is_one_line() {
        let tree = "ab".repeat(32);
        let record = |more: Value| {
            let mut record = json!({"run_id": "run_1", "at": "end", "how": "live", "root": "/repo"});
            record.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            gist(&serde_json::from_value(record).expect("a checkpoint"))
        };
        assert_eq!(record(json!({"at": "start", "tree": tree})), "start snap-abababababab");
        let touched = json!({"total": 2, "lines_added": 1200, "lines_removed": 1, "first": []});
        assert_eq!(
            record(json!({"tree": tree, "how": "late", "files_touched": touched})),
            "end snap-abababababab, late: 2 files touched, +1,200 −1 lines"
        );
        let skipped = json!({"totals": {"special": 3}, "first": []});
        assert_eq!(record(json!({"tree": tree, "skipped": skipped})), "end snap-abababababab, 3 skipped");
        let not_taken = json!({"reason": "timed_out", "detail": "it took longer than 30 s"});
        assert_eq!(
            record(json!({"at": "start", "not_taken": not_taken})),
            "start, not taken, timed out: it took longer than 30 s"
        );
    }
}

//! What people see of a run.

use super::script::Ledger;
use crate::pipeline::PipelineState;
use crate::pipeline::summary::RunSummary;

#[test]
fn a_summary_says_where_a_run_stands() {
    assert_eq!(RunSummary::of(&PipelineState::empty(super::script::pipeline_id())), None);
    let ledger = Ledger::of(
        "start; intend implement-1; began; finish completed; intend review-1; began; finish changes_requested; \
         intend implement-2; cached completed; intend review-2; began; interrupt agent_gone",
    );
    let summary = RunSummary::of(&ledger.state).expect("it was started");
    let short: Vec<String> = summary
        .stages
        .iter()
        .map(|step| {
            let outcome = step.outcome.as_deref().unwrap_or("-");
            format!(
                "{}-{} {} {outcome} {} {}",
                step.name,
                step.round,
                step.status.as_str(),
                step.attempts,
                step.cached
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            "implement-1 finished completed 1 false",
            "review-1 finished changes_requested 1 false",
            "implement-2 finished completed 0 true",
            "review-2 interrupted - 1 false",
        ]
    );
    let json = serde_json::to_value(&summary).expect("JSON");
    insta::assert_snapshot!(
        serde_json::to_string(&serde_json::json!({
            "run_id": json["run_id"], "status": json["status"], "task_id": json["task_id"],
            "snapshot_id": json["snapshot_id"], "current_stage": json["current_stage"], "round": json["round"],
            "started_at": json["started_at"], "ended_at": json["ended_at"], "terminal_events": json["terminal_events"],
        })).expect("JSON"),
        @r#"{"current_stage":"review","ended_at":null,"round":2,"run_id":"run-20251020-140818-00000007","snapshot_id":"snap-010101010101","started_at":"2025-10-20T14:08:19.000Z","status":"running","task_id":"T-1","terminal_events":{"builder":"builder.completed","reviewer":"reviewer.changes_requested"}}"#
    );
    let fields: Vec<&String> = json["stages"][0].as_object().expect("an object").keys().collect();
    assert_eq!(
        fields,
        [
            "name",
            "round",
            "key",
            "status",
            "outcome",
            "from",
            "to",
            "session_id",
            "attempts",
            "cached",
            "usage"
        ]
        .iter()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
}

#[test]
fn a_run_that_is_complete_has_come_to_its_last_stage() {
    let script = "start; intend implement-1; began; finish completed; intend review-1; began; finish trivial; \
                  intend document-1; began; finish completed;";
    let stage = |script: &str| {
        let summary = RunSummary::of(&Ledger::of(script).state).expect("it was started");
        (summary.current_stage, summary.ended_at.is_some())
    };
    assert_eq!(stage(script), (Some("document".into()), false));
    assert_eq!(stage(&format!("{script} complete")), (Some("complete".into()), true));
    assert_eq!(stage("start"), (None, false));
}

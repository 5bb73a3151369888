//! What the operations on runs of pipelines are about.

use axum::http::StatusCode;
use rekindle_wire::code::Code;
use rekindle_wire::event::{PipelinePending, Reset};
use rekindle_wire::filter::PipelineFilter;
use rekindle_wire::request::{AbortPipeline, NewPipelines, ResumePipeline};
use rekindle_wire::view::{LogPage, PipelineList, PipelineResumed, PipelineView};
use serde_json::{Value, json};

use super::operation::Operation;
use crate::routes::sessions::Page;
use crate::sse::start::After;

/// What may be wrong with a ledger.
const LEDGER: [Code; 3] = [Code::LedgerMissing, Code::Moved, Code::Storage];

/// What may keep a record from being added to one.
const APPENDS: [Code; 6] = [
    Code::NoRandomness,
    Code::NotNow,
    Code::OutcomeUnknown,
    Code::RunDamaged,
    Code::SessionDamaged,
    Code::StorageFull,
];

pub(crate) fn start_pipelines() -> Operation {
    Operation::new::<PipelineList>("pipelines", "startPipelines", "Start a run of a pipeline")
        .answers(StatusCode::CREATED, "On disk: a run for each task, in their order.")
        .more(
            "A task of the project's `rekindle.toml` goes through the stages of a pipeline; each step is a session of its own, recorded \
             before it is done and never done again once it is finished. The file runs commands with the caller's variables: one that \
             nobody has trusted in this directory yet is refused with `config_untrusted`, and the same request with `trust` set to its \
             hash trusts it. Values of variables are kept in memory only. Several tasks need `worktree`: each run then works in one of its own, which is made and \
             prepared before the answer, and stays when the run ends.",
        )
        .body::<NewPipelines>(vec![("a task", json!({"working_dir": "/repo", "tasks": ["T-0042"], "on_cut": "restore"}))])
        .example(json!({"pipelines": [run()], "next": null}))
        .refuses(LEDGER)
        .refuses(APPENDS)
        .refuses([
            Code::ConfigInvalid,
            Code::ConfigMissing,
            Code::ConfigUntrusted,
            Code::GitMissing,
            Code::InvalidEnv,
            Code::InvalidPipeline,
            Code::InvalidWorkingDir,
            Code::RunUnknown,
            Code::TaskMissing,
            Code::WorktreeImpossible,
        ])
        .takes_idempotency_key()
}

pub(crate) fn list_pipelines() -> Operation {
    Operation::new::<PipelineList>("pipelines", "listPipelines", "List runs of pipelines")
        .answers(StatusCode::OK, "A page of them, the newest first.")
        .query::<PipelineFilter>()
        .example(json!({"pipelines": [run()], "next": null}))
        .refuses([Code::InvalidCursor, Code::Storage])
}

pub(crate) fn get_pipeline() -> Operation {
    Operation::new::<PipelineView>("pipelines", "getPipeline", "Show a run of a pipeline")
        .answers(StatusCode::OK, "The run, with every step, and what is pending.")
        .of_pipeline()
        .example(run())
        .refuses(LEDGER)
}

pub(crate) fn get_ledger() -> Operation {
    let record = json!({
        "seq": 9, "ts": "2026-02-21T10:00:00.000Z", "kind": "pipeline.completed", "h": "4df9e30ab1d947d5",
    });
    Operation::new::<LogPage>("pipelines", "getLedger", "Read the ledger of a run of a pipeline")
        .answers(StatusCode::OK, "Records as they stand in the ledger.")
        .of_pipeline()
        .query::<Page>()
        .example(json!({"records": [record], "next": null}))
        .refuses(LEDGER)
}

pub(crate) fn follow_pipeline() -> Operation {
    let id = json!({"type": "string", "pattern": "^[0-9]{1,19}(\\.[0-9a-f]{16})?$", "examples": ["7.4df9e30ab1d947d5"]});
    let about = "The id of the last event that was seen; counts before `after`.";
    Operation::new::<String>("pipelines", "followPipeline", "Follow a run of a pipeline to its end")
        .answers(StatusCode::OK, "Server-sent events.")
        .more(
            "Every record of the ledger is an event: its kind is the event's name, its `seq.h` the id, its line the data. `pending` without \
             an id tells what the step that is not finished waits for at this moment. The stream ends behind the end of the run; whoever \
             comes again with the id of that gets 204, which keeps a browser from coming again.",
        )
        .also_answers_nothing("The run has ended, and `Last-Event-ID` is the id of its end.")
        .of_pipeline()
        .query::<After>()
        .header("Last-Event-ID", about, id, Code::InvalidLastEventId)
        .event::<PipelinePending>("pending", "What the step waits for is another thing than before; no id.")
        .event::<Reset>("reset", "The ledger has no such record: forget what you have and begin again.")
        .refuses(LEDGER)
}

pub(crate) fn resume_pipeline() -> Operation {
    Operation::new::<PipelineResumed>("pipelines", "resumePipeline", "Have a run of a pipeline go on")
        .answers(StatusCode::ACCEPTED, "It goes on; of one that is complete nothing is done, and `resumed` is false.")
        .more(
            "Finished steps are never done again. A run that has failed or was aborted needs `force`; one whose configuration is another \
             by now, where finished steps hang on that, `accept_config`. Files that are not as expected are left alone unless `on_drift` \
             says what becomes of them. One that is at work needs no resume: `run_locked`.",
        )
        .of_pipeline()
        .body_if_any::<ResumePipeline>(vec![("with the files of before", json!({"on_drift": "restore"}))])
        .example(json!({"resumed": true, "reopened": false, "config_changes": [], "pipeline": run()}))
        .refuses(LEDGER)
        .refuses(APPENDS)
        .refuses([
            Code::AgentChanged,
            Code::ConfigChanged,
            Code::ConfigInvalid,
            Code::ConfigMissing,
            Code::ConfigUntrusted,
            Code::EnvMissing,
            Code::InvalidEnv,
            Code::ManifestMissing,
            Code::RunAborted,
            Code::RunFailed,
            Code::RunLocked,
            Code::TaskMissing,
        ])
}

pub(crate) fn abort_pipeline() -> Operation {
    Operation::new::<PipelineView>("pipelines", "abortPipeline", "End a run of a pipeline")
        .answers(StatusCode::OK, "On disk; its step's session is cancelled, and the agent ended. Of one that was aborted nothing is done.")
        .of_pipeline()
        .body_if_any::<AbortPipeline>(vec![("with a reason", json!({"reason": "not needed any more"}))])
        .example(run())
        .refuses(LEDGER)
        .refuses(APPENDS)
        .refuses([Code::RunCompleted, Code::RunFailed])
}

/// A run, for examples.
fn run() -> Value {
    let tree = "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b";
    json!({
        "run_id": "run-20260221-100000-4f9f29a1", "id": "pl_01khz0p6r80000000000004f9f29a1".to_owned(), "status": "running", "task_id": "T-0042",
        "goal": "Make the parser accept comments", "pipeline": "default", "working_dir": "/repo", "origin": "/repo",
        "snapshot_id": "snap-3a7bd3e2360a", "current_stage": "implement", "stage_names": ["implement", "review"], "round": 1,
        "max_rounds": 3, "on_cut": null, "started_at": "2026-02-21T10:00:00.000Z", "ended_at": null, "reason": null,
        "by": "user:local", "ended_by": null, "config_hash": tree, "last_seq": 3, "terminal_events": {}, "stages": [],
        "counts": {"commands": 1, "terminal_events": 0, "events": 0, "heartbeats": 0, "logs": 0},
        "usage": {"input_tokens": 0, "output_tokens": 0, "cost": null}, "budget": null,
        "pending": {"step_id": "implement-1", "stage": "implement", "round": 1, "attempts": 1,
            "session_id": "sess_01khz0p6r8vk6mqj3b8y2c9d4e", "why": "working", "detail": null,
            "since": "2026-02-21T10:00:01.000Z", "drift": null},
    })
}

//! A run as a daemon shows it, for tests of what is printed.

use rekindle_wire::view::PipelineView;

/// A run that was cut in its review; `T1` and so on stand for trees and keys.
const CUT: &str = r#"{"run_id":"run-20251020-140818-4f9f29a1","id":"pl_01k80snfn000000000004f9f29a1","status":"running","task_id":"T-0042",
    "goal":"Make the parser accept comments","pipeline":"default","working_dir":"/repo","origin":"/repo",
    "snapshot_id":"snap-d0ab7e60b764","current_stage":"review","stage_names":["implement","review","spec_maintain"],
    "round":1,"max_rounds":3,"on_cut":null,"started_at":"2025-10-20T14:08:18.000Z","ended_at":null,"reason":null,"by":"user:ada",
    "ended_by":null,"config_hash":"T9","last_seq":7,"terminal_events":{"builder":"builder.completed"},"stages":[
    {"name":"implement","round":1,"step_id":"implement-1","key":"ik:T1","status":"finished","agent":"builder","outcome":"completed",
     "findings":null,"from":"T1","to":"T2","session_id":"sess_1","attempts":1,"cut":null,"cached":false,
     "usage":{"input_tokens":12000,"output_tokens":300,"cost":0.42},"files_touched":{"files":2,"lines_added":30,"lines_removed":4},
     "intended_at":"2025-10-20T14:08:18.000Z","began_at":"2025-10-20T14:08:19.000Z","ended_at":"2025-10-20T14:10:02.000Z"},
    {"name":"review","round":1,"step_id":"review-1","key":"ik:T2","status":"interrupted","agent":"reviewer","outcome":null,
     "findings":null,"from":"T2","to":null,"session_id":"sess_2","attempts":1,"cut":"agent_gone","cached":false,"usage":null,
     "files_touched":null,"intended_at":"2025-10-20T14:10:02.000Z","began_at":"2025-10-20T14:10:03.000Z","ended_at":null}],
    "counts":{"commands":2,"terminal_events":1,"events":1,"heartbeats":3,"logs":0},
    "usage":{"input_tokens":12000,"output_tokens":300,"cost":0.42},
    "pending":{"step_id":"review-1","stage":"review","round":1,"attempts":1,"session_id":null,"why":"cut","detail":null,
               "since":"2025-10-20T14:11:00.000Z","drift":null}}"#;

/// Returns a run that was cut in its review.
pub(super) fn run() -> PipelineView {
    let trees = [1, 2, 9].iter().fold(CUT.to_owned(), |text, n| {
        let tree = format!("{n:02x}").repeat(32);
        text.replace(&format!("\"T{n}\""), &format!("\"{tree}\""))
            .replace(&format!("ik:T{n}"), &format!("ik:{tree}"))
    });
    serde_json::from_str(&trees).expect("a run")
}

/// Returns what was written, without colours.
pub(super) fn plain(written: &[u8]) -> String {
    anstream::adapter::strip_str(&String::from_utf8_lossy(written)).to_string()
}

//! I4, I6, I8, I12, I13: runs end once, are cut only when their agent died, are never gone on with after a cancel; and the
//! status says what is so.

use super::super::matrix::Check;
use super::{ConversationHistory, Evidence, Run, text};

pub(super) fn judge(evidence: &Evidence, story: &ConversationHistory<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    for (id, run) in &story.runs {
        checks.push(Check::that(6, run.ends.len() == 1, || match run.ends.len() {
            0 => format!("{id} has no end although everything came to rest"),
            _ => format!("{id} ended {} times: {}", run.ends.len(), run.ends.join(", ")),
        }));
        if run.continues.is_some() && run.ends == ["run.completed"] {
            checks.push(restored(id, run, story));
        }
        if let Some(before) = run.continues {
            let stopped = story.runs.get(before).is_some_and(|run| is_stop(run.cancelled_by));
            checks.push(Check::that(13, !stopped, || {
                format!("{id} goes on with {before}, which was cancelled")
            }));
        }
    }
    let cuts = story.of_kind("run.interrupted").count();
    let hits = evidence.hits;
    checks.push(Check::that(6, cuts <= hits, || format!("{cuts} interruptions, and {hits} deaths")));
    if hits == 0 {
        checks.push(Check::that(4, cuts == 0, || {
            format!("{cuts} runs were interrupted although no agent died")
        }));
    }
    checks.extend(dropped(story));
    checks.extend(status(evidence, story));
    checks
}

fn is_stop(why: Option<&str>) -> bool {
    matches!(why, Some("user" | "stop_all"))
}

/// What an agent remembers of a conversation that it takes up again is said.
fn restored(id: &str, run: &Run<'_>, story: &ConversationHistory<'_>) -> Check {
    let within = |seq: u64| (run.started_seq..=run.ended_seq).contains(&seq);
    let said = story.of_kind("session.restored").any(|record| within(record["seq"].as_u64().unwrap_or(0)));
    // An agent that lives was not brought back.
    let anew = story.of_kind("agent.ready").any(|record| within(record["seq"].as_u64().unwrap_or(0)));
    Check::that(12, said || !anew, || {
        format!("{id} went on with another agent, and what it remembers is not said")
    })
}

/// What was taken out of the queue never has its turn.
fn dropped(story: &ConversationHistory<'_>) -> Vec<Check> {
    let requests = story.of_kind("run.cancel_requested");
    let dropped = requests.flat_map(|request| request["dropped"].as_array().into_iter().flatten());
    let check = |id: &serde_json::Value| {
        let begun = story.run_of(text(id)).is_some();
        Check::that(13, !begun, || format!("{id} was taken out of the queue and had its turn"))
    };
    dropped.map(check).collect()
}

/// The status against the log and the processes.
fn status(evidence: &Evidence, story: &ConversationHistory<'_>) -> Vec<Check> {
    let view = &evidence.view;
    let status = text(&view["status"]);
    let open = story.runs.values().any(|run| run.ends.is_empty());
    let busy = matches!(status, "running" | "waiting");
    let explained = view["since"].is_string() && view["evidence"].is_object();
    let mut checks = vec![
        Check::that(8, busy == open, || {
            let log = if open { "a run that has not ended" } else { "no run that has not ended" };
            format!("the status is {status:?} and the log has {log}")
        }),
        Check::that(8, explained, || {
            format!("the status {status:?} does not say how it is known and since when")
        }),
        Check::that(8, view["last_seq"].as_u64() == Some(evidence.lines.len() as u64), || {
            format!("the daemon says record {} is the last of {}", view["last_seq"], evidence.lines.len())
        }),
        Check::that(8, evidence.ledger.refused.is_empty(), || evidence.ledger.refused.join("; ")),
    ];
    if busy {
        checks.push(Check::that(8, evidence.holder_lives, || {
            format!("the status is {status:?} and no holder lives")
        }));
    }
    checks
}

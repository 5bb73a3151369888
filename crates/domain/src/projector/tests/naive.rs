//! The table of statuses once more, straight from the records and as plainly as it can be said, and arbitrary
//! logs on which both must agree.

use proptest::prelude::*;

use super::*;
use crate::event::{Event, RunWaiting};
use crate::id::TokenId;
use crate::session::tests::log::legal_logs;

type Record = (Timestamp, crate::line::Draft);

/// Returns the first row of the table that matches, and since when it holds.
fn naive(records: &[Record], seen: &Observed) -> (SessionStatus, Timestamp) {
    let Some(first) = records.iter().rposition(|(_, draft)| matches!(draft.event, Event::RunStarted(_)))
    else {
        return (Idle, records[0].0);
    };
    let run = &records[first..];
    let newest = records.iter().map(|(ts, _)| *ts).max().expect("not empty");
    let passed = |time: Timestamp| seen.now.wall >= newest && seen.now.steady >= time;

    let mut boots = run.iter().filter_map(|(_, draft)| match &draft.event {
        Event::RunStarted(started) => Some(started.boot_id),
        Event::RunAdopted(adopted) => Some(adopted.boot_id),
        _ => None,
    });
    let is_this_boots = boots.next_back() == seen.boot;
    let launched = records.iter().rposition(|(_, draft)| matches!(draft.event, Event::AgentLaunching(_)));
    let gone_or_none = launched.is_none_or(|launched| {
        let exited = |(_, draft): &Record| matches!(draft.event, Event::AgentExited(_));
        records[launched..].iter().any(exited) || seen.holder == Gone
    });
    let end = run.iter().find(|(_, draft)| {
        let end = &draft.event;
        matches!(end, Event::RunCompleted(_) | Event::RunFailed(_) | Event::RunCancelled(_))
            || matches!(end, Event::RunInterrupted(_))
    });
    let reason = end.and_then(|(_, draft)| match &draft.event {
        Event::RunInterrupted(interrupted) => Some(interrupted.reason),
        _ => None,
    });
    let waits = open_waits(run);
    let is_bad = |(_, wait): &(Timestamp, &RunWaiting<'_>)| {
        !is_active(records, wait.resume_token_id, passed) || wait.deadline_at.is_some_and(passed)
    };
    let is_open = end.is_none();
    let is_waiting = !waits.is_empty();
    let is_cut = !is_this_boots && gone_or_none;
    let by = |reasons: &[InterruptReason]| reason.is_some_and(|reason| reasons.contains(&reason));
    // A reason of another version is taken for a restart.
    let restarts = [
        InterruptReason::ProcessRestart,
        InterruptReason::MachineRestart,
        InterruptReason::HolderLost,
        InterruptReason::NodeLost,
        InterruptReason::Unknown,
    ];
    let rows = [
        (InterruptedStartup, is_open && !is_waiting && is_cut),
        (InterruptedStartup, by(&restarts) && !is_waiting),
        (InterruptedWaiting, is_open && waits.iter().any(is_bad)),
        (InterruptedWaiting, is_open && is_waiting && is_cut),
        (InterruptedWaiting, reason.is_some() && is_waiting),
        (InterruptedWaiting, by(&[InterruptReason::WaitTimeout])),
        (InterruptedAgent, by(&[InterruptReason::AgentExit])),
        (Waiting, is_open && is_waiting),
        (Running, is_open),
        (Idle, true),
    ];
    let (status, _) = rows.iter().find(|(_, matches)| *matches).expect("the last row always matches");
    let since = end.map(|(ts, _)| *ts).or(waits.first().map(|(ts, _)| *ts)).unwrap_or(run[0].0);
    (*status, since)
}

/// Returns the waits of a run that nothing has ended, oldest first.
fn open_waits(run: &[Record]) -> Vec<(Timestamp, &RunWaiting<'static>)> {
    let mut waits = Vec::new();
    for (at, (ts, draft)) in run.iter().enumerate() {
        let Event::RunWaiting(waiting) = &draft.event else { continue };
        let ended = run[at..].iter().any(|(_, draft)| {
            matches!(&draft.event, Event::RunResumed(resumed) if resumed.wait_id == waiting.wait_id)
        });
        if !ended {
            waits.push((*ts, waiting));
        }
    }
    waits
}

fn is_active(records: &[Record], token: TokenId, passed: impl Fn(Timestamp) -> bool) -> bool {
    let mut active = false;
    for (_, draft) in records {
        match &draft.event {
            Event::TokenMinted(minted) if minted.resume_token_id == token => {
                active = !minted.expires_at.is_some_and(&passed);
            }
            Event::TokenConsumed(used) if used.resume_token_id == token => return false,
            Event::TokenRevoked(revoked) if revoked.resume_token_id == token => return false,
            Event::TokenExpired(expired) if expired.resume_token_id == token => return false,
            _ => {}
        }
    }
    active
}

fn observations() -> impl Strategy<Value = Observed> {
    let boot = prop::sample::select(vec![None, Some("boot_a"), Some("boot_b"), Some("boot_c")]);
    let holder = prop::sample::select(vec![Pending, Lock, Unresponsive, Gone]);
    (boot, holder, 0..60i64, 0..60i64).prop_map(|(boot, holder, wall, steady)| Observed {
        boot: boot.and_then(|boot| boot.parse().ok()),
        holder,
        now: Now { wall: at(wall), steady: at(steady) },
    })
}

proptest! {
    // I8: one status for one log and one observation, by the table and by nothing else.
    #[test]
    fn the_projector_agrees_with_the_table_read_naively(log in legal_logs(), seen in observations()) {
        let derived = project_log(&log, &seen);
        prop_assert_eq!((derived.status, derived.since), naive(&log.records, &seen));
        prop_assert_eq!(&derived, &project_log(&log, &seen), "deterministic");
        // The last record of the log is the evidence's, whatever its kind.
        prop_assert_eq!(derived.evidence.last_seq, log.records.len() as u64);
    }
}

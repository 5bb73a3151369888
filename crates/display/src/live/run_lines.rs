//! Lines about a run, one for whatever happens to it: it begins, waits, is taken over, ends. Pure but for payloads that are kept
//! apart.

use rekindle_client::payloads::Payloads;
use rekindle_domain::event::{CancelReason, Event};
use rekindle_terminal::output::{BAD, COURSE, WARN};
use rekindle_terminal::sanitise;

use super::ask::Ask;
use super::piece::{Piece, clean_line, line};
use super::question_end::QuestionEnd;
use super::run_end::RunEnd;
use crate::record_text::{payload, person, word};

/// Shows what happens to a run.
pub(super) fn run_lines(event: &Event<'_>, blobs: &Payloads) -> Vec<Piece> {
    let by = |who: Option<&str>| who.map(|who| format!(" by {}", person(who))).unwrap_or_default();
    let ended = |run: &rekindle_domain::id::RunId, end| Piece::Ended(run.to_string(), end);
    match event {
        Event::RunStarted(started) => {
            let begun = Piece::Begun {
                run: started.run_id.to_string(),
                message: started.message_id.map(|id| id.to_string()),
                continues: started.continues.map(|run| run.to_string()),
            };
            let again = started.continues.map(|_| {
                line(COURSE, format!("continues after the interruption, attempt {}", started.attempt))
            });
            again.into_iter().chain([begun]).collect()
        }
        Event::RunWaiting(waiting) => {
            let request = waiting.request.as_ref().map(|raw| payload(raw, blobs)).unwrap_or_default();
            vec![Piece::Asked(Ask::read(waiting.wait_id.as_str(), &word(&waiting.wait_kind), &request))]
        }
        Event::RunResumed(resumed) => {
            vec![Piece::AskOver(QuestionEnd::read(resumed, blobs))]
        }
        // How many lines came meanwhile is not told: some of them were shown before.
        Event::RunAdopted(_) => vec![line(COURSE, "a new daemon took over the run; nothing is lost")],
        Event::RunCancelRequested(request) => {
            let dropped = request.dropped.iter().map(|message| Piece::Dropped(message.to_string()));
            // Who has asked for it is named behind, when it has happened.
            let why = match request.why {
                CancelReason::NewMessage => ": another message takes its place",
                _ => "",
            };
            let said = line(WARN, format!("stopping{why}"));
            std::iter::once(said).chain(dropped).collect()
        }
        Event::RunDrift(found) => vec![Piece::Drifted(Box::new(found.drift.clone()))],
        Event::RunBudget(budget) => vec![clean_line(WARN, budget.notice.to_string())],
        Event::RunCompleted(completed) => {
            // These are an agent's and a command's words for having done what was asked.
            let done = |reason: &&str| matches!(*reason, "end_turn" | "exit");
            let reason = completed.stop_reason.as_deref().filter(|reason| !done(reason));
            let said = reason.map(|reason| clean_line(WARN, format!("the agent stopped: {reason}")));
            let stop_reason = completed.stop_reason.as_deref().map(Into::into);
            said.into_iter().chain([ended(&completed.run_id, RunEnd::Completed { stop_reason })]).collect()
        }
        Event::RunFailed(failed) => {
            let said = clean_line(BAD, format!("failed: {}", failed.error));
            vec![said, ended(&failed.run_id, RunEnd::Failed)]
        }
        Event::RunCancelled(cancelled) => {
            // The daemon does it for somebody, who was named before, or for a reason.
            let who = cancelled.by.as_deref().filter(|who| *who != "daemon");
            let said = clean_line(WARN, format!("cancelled{}", by(who)));
            vec![said, ended(&cancelled.run_id, RunEnd::Cancelled)]
        }
        Event::RunInterrupted(cut) => {
            let mut pieces = vec![clean_line(BAD, format!("interrupted: {}", cut.why()))];
            if cut.uncertain_turn {
                pieces.push(line(WARN, "  the agent's last action may or may not have happened"));
            }
            for tool in &cut.uncertain {
                let label = sanitise::line(&tool.label());
                pieces.push(line(WARN, format!("  may or may not have happened: {label}")));
            }
            pieces.push(ended(&cut.run_id, RunEnd::Interrupted));
            pieces
        }
        _ => Vec::new(),
    }
}

//! A visitor: makes a session, says what the plan says, answers what is asked, and stays until everything has come to rest.
//! Whatever is acknowledged is written down.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger::{Ledger, Write};
use super::plan::{Act, Script, Visit};
use super::retrying_client::{CancelToken, PATIENCE, Reply, RetryingClient};

/// How often a visitor looks.
const LOOK: u64 = 25;

/// How long a run that was cut may take to be gone on with by itself, before a person says so.
const BY_ITSELF: Duration = Duration::from_secs(3);

/// How long a turn waits at its barrier.
const AT_BARRIER: Duration = Duration::from_millis(250);

/// What a visitor needs.
pub(super) struct Visitor<'a> {
    pub(super) asker: RetryingClient,
    pub(super) cancel: CancelToken,
    pub(super) visit: &'a Visit,
    /// The request for the session, but for its prompt.
    pub(super) request: Value,
    pub(super) barriers: PathBuf,
}

impl Visitor<'_> {
    /// Makes the session; returns its id.
    pub(super) fn create(&self, ledger: &mut Ledger) -> Option<String> {
        let (tag, prompt) = self.say(self.visit.first, 0);
        let mut body = self.request.clone();
        body["prompt"] = json!(prompt);
        let reply = self.asker.insist("POST", "/api/sessions", Some(&body), Some(&tag))?;
        let Some(id) = reply.text("id").filter(|_| reply.is_yes()) else {
            ledger.refused.push(format!("the session {tag} was refused: {}", reply.body));
            return None;
        };
        let log = self.asker.get(&format!("/api/sessions/{id}/log?limit=10"))?;
        let first = log["records"].as_array()?.iter().find(|record| record["kind"] == "message.user")?;
        let message_id = first["message_id"].as_str()?.to_owned();
        ledger.writes.push(Write::Message { tag, message_id, prompt });
        Some(id)
    }

    /// Does what the plan says, and stays until nothing goes on any more.
    pub(super) fn stay(&self, id: &str, ledger: &mut Ledger) {
        for (number, (after, act)) in self.visit.acts.iter().enumerate() {
            if !self.cancel.pause(*after) {
                return;
            }
            self.tend(id, ledger);
            self.act(id, number + 1, *act, ledger);
        }
        let begin = Instant::now();
        let mut cut_since = None;
        while !self.cancel.is_cancelled() {
            let Some(view) = self.asker.get(&format!("/api/sessions/{id}")) else { break };
            if is_at_rest(&view) {
                return;
            }
            if begin.elapsed() > PATIENCE {
                let (status, run, held) = (&view["status"], &view["run"], &view["held"]);
                let within = PATIENCE.as_secs();
                let stuck = format!("not at rest within {within} s: status {status}, run {run}, held {held}");
                ledger.stuck = Some(stuck);
                return;
            }
            self.tend(id, ledger);
            let since = *cut_since.get_or_insert_with(Instant::now);
            if view["run"]["state"] != "interrupted" {
                cut_since = None;
            } else if view["held"].is_string() || since.elapsed() > BY_ITSELF {
                let nothing = self.resume(id);
                if nothing && view["queued"] == 0 {
                    return;
                }
            }
            self.cancel.pause(LOOK);
        }
        if !self.cancel.is_cancelled() {
            ledger.stuck = Some("no daemon answers".into());
        }
    }

    /// Goes on with what was cut, as a person would; tells whether there is nothing to go on with. What has gone on by
    /// itself meanwhile is something.
    fn resume(&self, id: &str) -> bool {
        let reply = self.asker.post(&format!("/api/sessions/{id}/resume"), &json!({}));
        let nothing = reply.is_some_and(|reply| reply.code() == "nothing_to_resume");
        let still_cut = |view: serde_json::Value| view["run"]["state"] == "interrupted";
        nothing && self.asker.get(&format!("/api/sessions/{id}")).is_some_and(still_cut)
    }

    /// Returns a script's tag and prompt; a barrier is opened in a while.
    fn say(&self, script: Script, number: usize) -> (String, String) {
        let tag = format!("{}m{number}", self.visit.tag);
        let prompt = script.prompt(&tag);
        if script == Script::Barrier {
            let go = self.barriers.join(format!("{tag}.go"));
            std::thread::spawn(move || {
                std::thread::sleep(AT_BARRIER);
                // Without it the turn ends there in a minute, which is looked at in vain.
                let _ = std::fs::write(go, "");
            });
        }
        (tag, prompt)
    }

    fn act(&self, id: &str, number: usize, act: Act, ledger: &mut Ledger) {
        let path = format!("/api/sessions/{id}");
        match act {
            Act::Say { script, twice } => {
                let (tag, prompt) = self.say(script, number);
                let (path, body) = (format!("{path}/messages"), json!({"content": prompt}));
                let Some(reply) = self.asker.insist("POST", &path, Some(&body), Some(&tag)) else { return };
                let Some(message_id) = reply.text("message_id").filter(|_| reply.is_yes()) else {
                    ledger.refused.push(format!("the message {tag} was refused: {}", reply.body));
                    return;
                };
                let first = message_id.clone();
                ledger.writes.push(Write::Message { tag: tag.clone(), message_id, prompt });
                let again = twice.then(|| self.asker.insist("POST", &path, Some(&body), Some(&tag)));
                if let Some(message_id) =
                    again.flatten().filter(Reply::is_yes).and_then(|again| again.text("message_id"))
                {
                    ledger.writes.push(Write::Again { tag, message_id, first });
                }
            }
            Act::Title => {
                let title = format!("{} {number}", self.visit.tag);
                let reply = self.asker.insist("PATCH", &path, Some(&json!({"title": title})), None);
                match reply {
                    Some(reply) if reply.is_yes() => ledger.writes.push(Write::Title { title }),
                    Some(reply) => ledger.refused.push(format!("a title was refused: {}", reply.body)),
                    None => {}
                }
            }
            Act::Cancel => {
                // A refusal is as good: nothing was there to be cancelled.
                let reply = self.asker.post(&format!("{path}/cancel"), &json!({}));
                if let Some(reply) = reply.filter(Reply::is_yes) {
                    ledger.writes.push(Write::Cancel { run_id: reply.text("run_id") });
                }
            }
        }
    }

    /// Answers whatever is asked in the session.
    fn tend(&self, id: &str, ledger: &mut Ledger) {
        let Some(waits) = self.asker.get("/api/waits") else { return };
        for wait in waits["waits"].as_array().into_iter().flatten() {
            let Some(wait_id) = wait["wait_id"].as_str().filter(|_| wait["session_id"] == id) else {
                continue;
            };
            // The answer to an agent that is gone becomes a message: its words would be a script of their own.
            if wait["state"] == "open" {
                self.answer(wait_id, ledger);
            }
        }
    }

    fn answer(&self, wait_id: &str, ledger: &mut Ledger) {
        let path = format!("/api/waits/{wait_id}/answer");
        let answer = |option: &str| self.asker.post(&path, &json!({"option": option}));
        let Some(reply) = answer("allow_once").filter(Reply::is_yes) else { return };
        let first = reply.text("resume_token_id");
        let wait_id = wait_id.to_owned();
        ledger.writes.push(Write::Answer { wait_id: wait_id.clone(), token: first.clone() });
        if !self.visit.insists || first.is_none() {
            return;
        }
        if let Some(again) = answer("allow_once").filter(Reply::is_yes) {
            let (wait_id, token) = (wait_id.clone(), again.text("resume_token_id"));
            // The agent may have died in between: then it became a message.
            if token.is_some() {
                ledger.writes.push(Write::AnswerAgain { wait_id, token, first: first.clone() });
            }
        }
        let otherwise = answer("reject_once").filter(Reply::is_yes);
        if otherwise.is_some_and(|reply| reply.text("resume_token_id").is_some()) {
            ledger.writes.push(Write::AnswerOtherwise { wait_id });
        }
    }
}

/// Tells whether nothing goes on and nothing waits for its turn. What was cut is another matter.
fn is_at_rest(view: &Value) -> bool {
    let ended = matches!(view["run"]["state"].as_str(), Some("completed" | "failed" | "cancelled"));
    ended && view["queued"] == 0
}

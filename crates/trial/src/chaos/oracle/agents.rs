//! I4, I5, I9: what agents were told, by their own record, and that what they said is in the log once.

use std::collections::BTreeMap;

use rekindle_client::content_text::value_text;
use serde_json::Value;

use super::super::ledger::Write;
use super::super::matrix::Check;
use super::super::plan::mark;
use super::{ConversationHistory, Evidence};

/// What agents were told, taken apart.
#[derive(Default)]
struct Told {
    /// Agents that were started.
    lives: usize,
    prompts: Vec<String>,
    /// Answers by life and the request's id, and how often each was given.
    answers: BTreeMap<(usize, String), usize>,
    /// Answers that chose something.
    chosen: usize,
}

impl Told {
    fn read(told: &str) -> Told {
        let mut read = Told::default();
        for line in told.lines() {
            if line.starts_with("pid ") {
                read.lives += 1;
                continue;
            }
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            if message["method"] == "session/prompt" {
                read.prompts.push(value_text(&message["params"]["prompt"]));
            } else if message["result"]["outcome"].is_object() {
                *read.answers.entry((read.lives, message["id"].to_string())).or_default() += 1;
                read.chosen += usize::from(message["result"]["outcome"]["outcome"] == "selected");
            }
        }
        read
    }
}

pub(super) fn judge(evidence: &Evidence, story: &ConversationHistory<'_>) -> Vec<Check> {
    let told = Told::read(&evidence.told);
    let said: Vec<(bool, String)> = story
        .of_kind("message.agent")
        .map(|record| (record["partial"] == true, value_text(&record["content"])))
        .collect();
    let mut checks = Vec::new();
    for write in &evidence.ledger.writes {
        let Write::Message { tag, message_id, prompt } = write else { continue };
        let whole = told.prompts.iter().filter(|given| *given == prompt).count();
        // An agent that may lack what was said before is told that first. The demo agent then carries out nothing.
        let prefaced = told.prompts.iter().filter(|given| is_prefaced(given, prompt)).count();
        let (given, clean) = (whole + prefaced, story.run_of(message_id).is_some_and(super::Run::is_clean));
        let right = given == 1 || given == 0 && !clean;
        checks.push(Check::that(5, right, || format!("the prompt {tag} was given to agents {given} times")));
        let (mark, clean) = (mark(tag), clean && prefaced == 0);
        let times: usize = said.iter().map(|(_, text)| text.matches(&mark).count()).sum();
        let right = times == 1 || times == 0 && !clean;
        checks.push(Check::that(4, right, || format!("{mark} is in the log {times} times")));
        if let Some(count) = words(prompt).filter(|_| clean) {
            let whole = (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
            let there = said.iter().any(|(partial, text)| !partial && text.contains(&whole));
            checks.push(Check::that(4, there, || {
                format!("the {count} words of {tag} are not in the log as said")
            }));
        }
    }
    for ((life, id), times) in &told.answers {
        checks.push(Check::that(5, *times == 1, || {
            format!("question {id} of agent {life} was answered {times} times")
        }));
    }
    let consumed = story.of_kind("token.consumed").count();
    if told.chosen > 0 {
        checks.push(Check::that(5, told.chosen <= consumed, || {
            format!("agents were given {} answers, and {consumed} are recorded", told.chosen)
        }));
    }
    let most = 1 + evidence.hits;
    checks.push(Check::that(9, told.lives <= most, || {
        format!("{} agents were started, and {} died", told.lives, evidence.hits)
    }));
    checks
}

/// Tells whether an agent was told what happened before, and behind that exactly this prompt.
fn is_prefaced(given: &str, prompt: &str) -> bool {
    let before =
        given.strip_suffix(prompt).and_then(|before| before.strip_suffix("[End of Resume Context]\n\n"));
    before.is_some_and(|before| before.starts_with("[Resume Context]\n"))
}

/// Returns how many words a prompt asks for.
fn words(prompt: &str) -> Option<u64> {
    let line = prompt.lines().find_map(|line| line.strip_prefix("words "))?;
    line.split(' ').next()?.parse().ok()
}

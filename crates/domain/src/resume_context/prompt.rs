//! The words with which a story is told: before a message, and to continue a turn that was cut. Each thing is told once,
//! within a budget, and what is left out is named. The request itself is never shortened: whoever sends these words puts it,
//! whole, where they say.

use super::drift_text::write_drift;
use super::{ConversationHistory, Turn};
use crate::event::{Drift, InterruptReason};

/// Characters of earlier turns that are told: room for what matters in any model's context, and little of it.
const BUDGET: usize = 24_000;
/// Steps and files that are listed.
const LISTED: usize = 60;

/// The words that continue a turn that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// What comes first.
    pub before: String,
    /// Whether the request, whole, comes in between.
    pub with_request: bool,
    /// What comes last.
    pub after: &'static str,
}

impl ConversationHistory {
    /// Tells whether anything was said before the newest turn.
    pub fn has_past(&self) -> bool {
        self.turns.len() > 1
    }

    /// Returns what the agent is told before a message, if it lacks anything: the earlier turns, or only the one that was cut
    /// and that it has forgotten; and what it works on that drifted meanwhile.
    pub fn preface(&self, drift: Option<&Drift>) -> Option<String> {
        let memory = self.memory();
        let past: Vec<&Turn> = self.turns.iter().take(self.turns.len().saturating_sub(1)).collect();
        let told = match past.last() {
            None => None,
            Some(_) if !memory.past => Some((past.as_slice(), self.more_turns)),
            Some(last) if !memory.request && last.cut => Some((self.chain_of(&past), 0)),
            Some(_) => None,
        };
        // How it works is no reason to put anything before a message: only what it works on.
        let drift = drift.filter(|drift| told.is_some() || drift.is_about_work());
        if told.is_none() && drift.is_none() {
            return None;
        }
        let mut text = String::from("[Resume Context]\n");
        if let Some((turns, more)) = told {
            text.push_str(if memory.is_nothing() {
                "This conversation began with another agent process that is gone. What it was about:\n"
            } else {
                "Some of this conversation may be missing from your memory. What is on record of it:\n"
            });
            write_turns(&mut text, turns, more);
        }
        write_drift(&mut text, drift);
        text.push_str("[End of Resume Context]\n\n");
        Some(text)
    }

    /// Returns the words that continue the turn that was cut, for what the agent still knows of it and what drifted meanwhile.
    pub fn continuation(&self, attempt: u32, drift: Option<&Drift>) -> Continuation {
        let memory = self.memory();
        let at = self.turns.iter().position(|turn| turn.run.is_some() && turn.run == self.origin);
        let earlier: Vec<&Turn> = self.turns.iter().take(at.unwrap_or(0)).collect();
        let chain: Vec<&Turn> = self.turns.iter().skip(at.unwrap_or(0)).collect();
        let reason = self.cut.as_ref().map_or("it was interrupted", |(reason, _)| words(*reason));
        let mut text = String::from("[Resume Context]\n");
        text.push_str(if memory.is_nothing() {
            "An agent process worked on the request below and was interrupted: "
        } else {
            "Your last turn was interrupted: "
        });
        text.push_str(&format!("{reason}. This is attempt {attempt}.\n"));
        if !memory.past && (!earlier.is_empty() || self.more_turns > 0) {
            text.push_str("\nEarlier in this conversation:\n");
            write_turns(&mut text, &earlier, self.more_turns);
        }
        self.write_progress(&mut text, &chain);
        write_drift(&mut text, drift);
        text.push_str("[End of Resume Context]\n\n");
        if !memory.request {
            text.push_str("The request:\n\n");
        }
        let after = "Go on from there and finish the request. Do not repeat what is finished.";
        Continuation { before: text, with_request: !memory.request, after }
    }

    /// Returns the last turns that belong to one chain of attempts.
    fn chain_of<'a>(&self, past: &'a [&'a Turn]) -> &'a [&'a Turn] {
        let begin = past.iter().rposition(|turn| turn.continues.is_none()).unwrap_or(0);
        &past[begin..]
    }

    /// Tells how far the turn that was cut had come, over all its attempts.
    fn write_progress(&self, text: &mut String, chain: &[&Turn]) {
        let done = chain.iter().flat_map(|turn| &turn.tools).filter(|tool| tool.ended);
        let more = chain.iter().map(|turn| turn.more_tools).sum();
        let mut done: Vec<String> = done.map(super::Tool::label).collect();
        keep_first_of_each(&mut done);
        list(text, "Finished steps, not to be repeated", &done, more, "earlier steps");
        let uncertain = self.cut.as_ref().map(|(_, tools)| tools.as_slice()).unwrap_or_default();
        let labels: Vec<String> =
            uncertain.iter().map(|tool| super::truncate_end(&tool.label(), super::STEP)).collect();
        let head =
            "These steps had begun; whether they had their effect is not known. Look before you repeat them";
        list(text, head, &labels, 0, "steps");
        self.write_asked(text, chain);
        text.push_str("\nSteps that are not listed here may have begun as well: look before you do anything that must happen once.\n");
        let mut files: Vec<String> = chain.iter().flat_map(|turn| &turn.files).cloned().collect();
        keep_first_of_each(&mut files);
        list(text, "Files touched", &files, 0, "files");
        let mut late: Vec<String> = chain.iter().flat_map(|turn| &turn.late_files).cloned().collect();
        keep_first_of_each(&mut late);
        late.retain(|file| !files.contains(file));
        let head = "Files that were changed since that turn began, by it or by somebody else: no daemon was running when it ended";
        list(text, head, &late, 0, "files");
        // Agents drop what they were saying when they died: of each attempt only the log knows it.
        let attempts = chain.iter().filter(|turn| turn.cut).count();
        for (index, turn) in chain.iter().enumerate().filter(|(_, turn)| !turn.answer.is_empty()) {
            let of = if attempts > 1 { format!(" of attempt {}", index + 1) } else { String::new() };
            text.push_str(&format!("\nThe last words{of} before the cut:\n{}\n", turn.answer));
        }
    }

    /// Tells what the agent had asked and nobody had answered.
    fn write_asked(&self, text: &mut String, chain: &[&Turn]) {
        let label = |id: &String| {
            let mut tools = chain.iter().flat_map(|turn| &turn.tools);
            tools.find(|tool| tool.id == *id).map(super::Tool::label)
        };
        let asked = self.asked.iter().map(|(_, tool)| tool.as_ref().and_then(label));
        let mut asked: Vec<String> =
            asked.map(|asked| asked.unwrap_or_else(|| "your question".into())).collect();
        keep_first_of_each(&mut asked);
        let head = "You had asked and nobody had answered. Ask again before you continue with it";
        list(text, head, &asked, 0, "questions");
    }
}

/// Tells turns, the newest of them for sure, and says how many are left out.
fn write_turns(text: &mut String, turns: &[&Turn], mut more: usize) {
    let mut told: Vec<String> = Vec::new();
    let mut room = BUDGET;
    for turn in turns.iter().rev() {
        let words = turn.words();
        match room.checked_sub(words.chars().count()) {
            Some(left) => room = left,
            None if told.is_empty() => room = 0,
            None => break,
        }
        told.push(words);
    }
    more += turns.len() - told.len();
    if more > 0 {
        text.push_str(&format!(
            "({} left out here.)\n",
            counted(more, "earlier turn is", "earlier turns are")
        ));
    }
    told.iter().rev().for_each(|words| text.push_str(words));
}

impl Turn {
    fn words(&self) -> String {
        let mut text = String::new();
        if !self.request.is_empty() {
            text.push_str(&format!("\nUser: {}\n", self.request));
        }
        if self.cancelled {
            text.push_str("(cancelled by the user)\n");
        } else if self.cut {
            text.push_str("(interrupted)\n");
        }
        if self.more_tools > 0 {
            text.push_str(&format!(
                "({} left out here.)\n",
                counted(self.more_tools, "step is", "steps are")
            ));
        }
        for tool in &self.tools {
            text.push_str(&format!(
                "- {}{}\n",
                tool.label(),
                if tool.ended { "" } else { " (not finished)" }
            ));
        }
        if !self.answer.is_empty() {
            text.push_str(&format!("Agent: {}\n", self.answer));
        }
        text
    }
}

/// Lists the newest of some lines below a heading, if there are any, and says how many are left out.
fn list(text: &mut String, head: &str, lines: &[String], more: usize, what: &str) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("\n{head}:\n"));
    let skipped = lines.len().saturating_sub(LISTED);
    if skipped + more > 0 {
        text.push_str(&format!("({} {what} are left out here.)\n", skipped + more));
    }
    lines.iter().skip(skipped).for_each(|line| text.push_str(&format!("- {line}\n")));
}

/// Drops what was there before: attempts often take the same step.
fn keep_first_of_each(lines: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn words(reason: InterruptReason) -> &'static str {
    match reason {
        InterruptReason::MachineRestart => "the machine was restarted",
        InterruptReason::AgentExit => "the agent process ended unexpectedly",
        InterruptReason::WaitTimeout => "a question was not answered in time",
        InterruptReason::ProcessRestart | InterruptReason::HolderLost | InterruptReason::NodeLost => {
            "the agent process was lost"
        }
        InterruptReason::Unknown => "it was interrupted",
    }
}

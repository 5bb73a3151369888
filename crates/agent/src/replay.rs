//! What an agent told when a session was brought back, compared with what our log says of it.
//!
//! A load proves nothing by itself: some agents answer it with success and an empty conversation. So what it
//! replays is kept apart and compared. Expected are the prompts and last answers of runs that were completed,
//! in order; what else is replayed does not matter.

use rekindle_domain::event::{Event, InputKind, Raw};
use serde::Serialize;

use crate::json::Object;
use crate::said::{Request, Voice};

/// What was said again while a session was brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Texts, piece by piece.
    pub pieces: Vec<(Voice, String)>,
    /// How many tool calls.
    pub tools: u64,
    /// How many updates in all.
    pub updates: u64,
}

impl Replay {
    fn count(&self, voice: Voice) -> u64 {
        self.pieces.iter().filter(|(of, _)| *of == voice).count() as u64
    }
}

/// What a finished turn should have left in the agent's memory; what is not known is not expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// What was asked.
    pub prompt: Option<String>,
    /// What was answered last.
    pub answer: Option<String>,
}

/// How well a conversation was brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that was expected is there.
    Continued,
    /// Something is missing.
    Shorter,
    /// There was nothing to compare.
    Unverified,
}

impl Verdict {
    /// Returns the word for a `session.restored`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Continued => "continued",
            Verdict::Shorter => "shorter",
            Verdict::Unverified => "unverified",
        }
    }
}

/// What was compared; the `counts` of a `session.restored`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Prompts and answers that should be there.
    pub expected: u64,
    /// Those of them that are.
    pub found: u64,
    /// Prompts that were replayed.
    pub prompts: u64,
    /// Pieces of answers that were replayed.
    pub answers: u64,
    /// Tool calls that were replayed.
    pub tools: u64,
}

/// Compares a replay with the turns that it should contain.
///
/// `goes_on`: the agent answers first and replays the rest afterwards, so that what is missing may still come.
pub fn compare(method: Request, replay: &Replay, turns: &[Turn], goes_on: bool) -> (Verdict, Counts) {
    let mut counts = Counts {
        prompts: replay.count(Voice::User),
        answers: replay.count(Voice::Agent),
        tools: replay.tools,
        ..Counts::default()
    };
    let mut at = 0;
    for turn in turns {
        let prompt = turn.prompt.as_ref().filter(|_| counts.prompts > 0).map(|text| (Voice::User, text));
        let answer = turn.answer.as_ref().map(|text| (Voice::Agent, text));
        for (voice, text) in prompt.into_iter().chain(answer) {
            let wanted = fold(text);
            if wanted.is_empty() {
                continue;
            }
            counts.expected += 1;
            let found = (at..replay.pieces.len()).find_map(|start| {
                pieces_saying(&replay.pieces[start..], voice, &wanted).map(|count| start + count)
            });
            if let Some(end) = found {
                counts.found += 1;
                at = end;
            }
        }
    }
    let silent = counts.prompts == 0 && counts.answers == 0;
    let verdict = match () {
        () if silent && (method != Request::Load || counts.expected == 0) => Verdict::Unverified,
        () if counts.found == counts.expected => Verdict::Continued,
        () if goes_on => Verdict::Unverified,
        () => Verdict::Shorter,
    };
    (verdict, counts)
}

/// Returns how many of the first pieces, all of one voice, make up a text.
fn pieces_saying(pieces: &[(Voice, String)], voice: Voice, wanted: &str) -> Option<usize> {
    let (mut rest, mut gap, mut begun) = (wanted, false, false);
    for (count, (_, text)) in pieces.iter().take_while(|(of, _)| *of == voice).enumerate() {
        for c in text.chars() {
            if c.is_whitespace() {
                gap = begun;
                continue;
            }
            if gap {
                rest = rest.strip_prefix(' ')?;
            }
            rest = rest.strip_prefix(c)?;
            (gap, begun) = (false, true);
        }
        if rest.is_empty() {
            return Some(count + 1);
        }
    }
    None
}

/// Folds white space: every stretch of it is one space, and none stands at an end.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Gathers from a log what an agent should remember.
#[derive(Debug, Clone, Default)]
pub struct Spoken {
    turns: Vec<Turn>,
    open: Turn,
    cursor: Option<String>,
}

impl Spoken {
    /// Takes in a record; they must come in the log's order, from the session's beginning.
    pub fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::RunStarted(_) => self.open = Turn::default(),
            Event::InputQueued(input) if input.what == InputKind::Prompt => {
                // What was sent counts, not what a person wrote: a continuation says other words.
                self.open.prompt = sent_text(&input.line);
            }
            Event::MessageAgent(message) if !message.partial => {
                self.open.answer = content_text(&message.content);
            }
            Event::RunCompleted(completed) => {
                let turn = std::mem::take(&mut self.open);
                // A refused prompt is taken out of the agent's conversation by the protocol's own rule.
                if completed.stop_reason.as_deref() != Some("refusal") {
                    self.turns.push(turn);
                }
            }
            // A turn that was cut, cancelled or failed may have left anything or nothing.
            Event::RunFailed(_) | Event::RunCancelled(_) | Event::RunInterrupted(_) => {
                self.open = Turn::default();
            }
            Event::AgentReady(ready) => {
                let cursor = ready.cursor.as_ref().map(|cursor| cursor.as_ref().to_owned());
                // Another session of the agent's knows nothing of what was said in the last one.
                if cursor != self.cursor {
                    self.turns.clear();
                    self.cursor = cursor;
                }
            }
            _ => {}
        }
    }

    /// Returns the finished turns that the agent's latest session should contain.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }
}

/// Returns the text of a prompt that was sent, if its line stands in the log.
fn sent_text(line: &Raw<'_>) -> Option<String> {
    let line: String = serde_json::from_str(line.as_json()).ok()?;
    let object = Object::parse(&line)?;
    let prompt = object.object("params").raw("prompt")?;
    content_text(&serde_json::from_str(prompt.get()).ok()?)
}

/// Returns the text of a message; of one that is kept as a blob there is none here.
fn content_text(content: &Raw<'_>) -> Option<String> {
    let json = content.as_json();
    (!json.starts_with('{')).then(|| crate::exec::plain_text(content))
}

#[cfg(test)]
mod tests;

//! What the agent asks, and what answers it: never a key that was meant for something else. Pure.
//!
//! A key answers if the line was empty, if the question could be read before, and if no other key follows: whoever begins to write a
//! word writes a word.

use std::collections::VecDeque;
use std::time::Duration;

use rekindle_display::live::{Ask, QuestionEnd, answer_text, pick, short_answer_text};
use rekindle_wire::request::NewAnswer;

/// A question is put when nothing else has come for this long: one from the past is answered in the next record.
const SETTLED: Duration = Duration::from_millis(60);

/// It is put after this long at the latest, whatever else the agent says meanwhile.
const LONGEST: Duration = Duration::from_secs(1);

/// What is typed sooner than this was meant for something else: nobody reads a question faster.
const READ: Duration = Duration::from_millis(400);

/// A key answers if none follows for this long: longer than between two letters of a word, shorter than anyone waits.
const ALONE: Duration = Duration::from_millis(300);

/// A question.
#[derive(Debug)]
struct Open {
    ask: Ask,
    /// When it was heard of.
    asked: Duration,
    /// When it was put to the person.
    put: Option<Duration>,
    /// The answer that is on its way.
    answering: Option<NewAnswer>,
    /// What stands in the line was begun before the question was put.
    typed_before: bool,
}

/// A key that answers if none follows.
#[derive(Debug)]
struct Alone {
    wait: String,
    answer: NewAnswer,
    since: Duration,
}

/// What somebody was warned of who sent the same line before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Warned {
    /// Nothing.
    No,
    /// It was written before the question could be read.
    WrittenBefore,
    /// It is none of the options.
    NoOption,
}

/// What a line means while a question is open.
#[derive(Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing that has to do with a question.
    Message,
    /// This answer: the wait, the answer, and how it is told again.
    Answer(String, NewAnswer, String),
    /// Nothing before a warning.
    Warn(Warned),
}

/// Open questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Open>,
    alone: Option<Alone>,
    /// When anything was heard last.
    heard: Duration,
}

impl Questions {
    pub(super) fn add(&mut self, ask: Ask) {
        self.open.push_back(Open { ask, asked: self.heard, put: None, answering: None, typed_before: false });
    }

    pub(super) fn clear(&mut self) {
        (self.open, self.alone) = (VecDeque::new(), None);
    }

    /// Something was heard of the session.
    pub(super) fn hear(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Returns the question that a person is asked.
    pub(super) fn asked(&self) -> Option<&Ask> {
        let first = self.open.front().filter(|open| open.put.is_some() && open.answering.is_none())?;
        Some(&first.ask)
    }

    /// Tells whether the question could be read by now: a key answers it.
    pub(super) fn is_read(&self, now: Duration) -> bool {
        let put = self.open.front().and_then(|open| open.put);
        put.is_some_and(|put| now.saturating_sub(put) >= READ)
    }

    /// Tells whether something happens soon if nothing comes.
    pub(super) fn is_settling(&self, now: Duration) -> bool {
        self.alone.is_some() || (!self.open.is_empty() && !self.is_read(now))
    }

    /// Puts the oldest question to the person, if it is time for that.
    pub(super) fn put_due(&mut self, now: Duration, is_typing: bool) -> Option<Ask> {
        let first = self.open.front_mut()?;
        let settled = now.saturating_sub(self.heard) >= SETTLED || now.saturating_sub(first.asked) >= LONGEST;
        if first.put.is_some() || !settled {
            return None;
        }
        (first.put, first.typed_before) = (Some(now), is_typing);
        Some(first.ask.clone())
    }

    /// A character was typed into an empty line.
    pub(super) fn first_key(&mut self, key: char, now: Duration) {
        let Some(first) = self.open.front_mut() else { return };
        first.typed_before = first.put.is_none_or(|put| now.saturating_sub(put) < READ);
        if first.typed_before || first.answering.is_some() {
            return;
        }
        let wait = first.ask.wait_id.clone();
        self.alone = first.ask.by_key(key).map(|answer| Alone { wait, answer, since: now });
    }

    /// Another key was pressed: the one before it was no answer.
    pub(super) fn disturb(&mut self) {
        self.alone = None;
    }

    /// Returns what a key that stands alone would answer.
    pub(super) fn about_to_answer(&self) -> Option<String> {
        let alone = self.alone.as_ref()?;
        let open = self.open.iter().find(|open| open.ask.wait_id == alone.wait)?;
        Some(short_answer_text(&open.ask, &alone.answer))
    }

    /// Returns the answer of a key that has stood alone for long enough.
    pub(super) fn answer_due(&mut self, now: Duration) -> Option<(String, NewAnswer, String)> {
        let alone = self.alone.take_if(|alone| now.saturating_sub(alone.since) >= ALONE)?;
        self.begin_answer(&alone.wait, alone.answer)
    }

    fn begin_answer(&mut self, wait: &str, answer: NewAnswer) -> Option<(String, NewAnswer, String)> {
        let open = self.open.iter_mut().find(|open| open.ask.wait_id == wait)?;
        let told = short_answer_text(&open.ask, &answer);
        open.answering = Some(answer.clone());
        Some((wait.to_owned(), answer, told))
    }

    /// Tells what a line means to whoever was warned of something before.
    pub(super) fn read(&mut self, text: &str, warned: Warned, now: Duration) -> Meaning {
        let too_soon = !self.is_read(now);
        let Some(first) = self.open.front().filter(|open| open.answering.is_none()) else {
            return Meaning::Message;
        };
        if too_soon || (first.typed_before && warned < Warned::WrittenBefore) {
            return Meaning::Warn(Warned::WrittenBefore);
        }
        let choices = &first.ask.choices;
        let answer =
            if choices.is_empty() { Some(NewAnswer::text(text)) } else { pick(choices, text.trim()) };
        let wait = first.ask.wait_id.clone();
        match answer.and_then(|answer| self.begin_answer(&wait, answer)) {
            Some((wait, answer, told)) => Meaning::Answer(wait, answer, told),
            None if warned == Warned::NoOption => Meaning::Message,
            None => Meaning::Warn(Warned::NoOption),
        }
    }

    /// An answer was taken; returns whether that is news.
    pub(super) fn answered(&mut self, wait: &str) -> bool {
        let at = self.open.iter().position(|open| open.ask.wait_id == wait);
        at.and_then(|at| self.open.remove(at)).is_some()
    }

    /// An answer was not taken: the question stays as it was.
    pub(super) fn not_answered(&mut self, wait: &str) {
        if let Some(open) = self.open.iter_mut().find(|open| open.ask.wait_id == wait) {
            open.answering = None;
        }
    }

    /// A question is over; returns what is said of that to whoever was asked.
    pub(super) fn over(&mut self, end: &QuestionEnd) -> Option<String> {
        let at = self.open.iter().position(|open| open.ask.wait_id == end.wait_id)?;
        let open = self.open.remove(at)?;
        self.alone.take_if(|alone| alone.wait == end.wait_id);
        open.put?;
        let ours =
            open.answering.filter(|answer| end.is_answered_so(&open.ask, &answer_text(&open.ask, answer)));
        Some(match ours {
            Some(answer) => format!("answered: {}", short_answer_text(&open.ask, &answer)),
            None => end.elsewhere(&open.ask),
        })
    }
}

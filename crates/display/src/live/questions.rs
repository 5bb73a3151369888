//! The questions that are open, one of which is put to the person, and what they have typed to it. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use rekindle_terminal::output::cut;
use rekindle_terminal::sanitise;
use rekindle_wire::request::NewAnswer;

use super::ask::Ask;
use super::keys::Pressed;
use crate::hints::ours;

/// Open questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<(Ask, Instant)>,
    /// The wait that was put to the person.
    put: Option<String>,
    /// What was typed to a question that wants words.
    typed: String,
}

/// What a key means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// Nothing here.
    Nothing,
    /// What was typed has changed.
    Typed(Ask),
    /// An answer.
    Answer(Ask, NewAnswer),
}

impl Questions {
    /// Tells whether none is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds one, asked now.
    pub(super) fn add(&mut self, ask: Ask) {
        self.open.push_back((ask, Instant::now()));
    }

    /// Returns the oldest, and since when it is known.
    pub(super) fn first(&self) -> Option<&(Ask, Instant)> {
        self.open.front()
    }

    /// Puts the oldest to the person; tells whether it was not put before.
    pub(super) fn put_first(&mut self) -> Option<(Ask, bool)> {
        let (ask, _) = self.open.front()?;
        let new = self.put.as_ref() != Some(&ask.wait_id);
        if new {
            self.put = Some(ask.wait_id.clone());
            self.typed.clear();
        }
        Some((ask.clone(), new))
    }

    /// Takes one away; returns it if it had been put to the person.
    pub(super) fn over(&mut self, wait: &str) -> Option<Ask> {
        let at = self.open.iter().position(|(ask, _)| ask.wait_id == wait)?;
        let (ask, _) = self.open.remove(at)?;
        self.put.take_if(|put| put == wait)?;
        self.typed.clear();
        Some(ask)
    }

    /// Returns the line on which an answer is typed.
    pub(super) fn prompt(&self, ask: &Ask) -> String {
        match ask.choices.len() {
            0 => format!("answer (Esc cancels, Ctrl-C leaves): {}", sanitise::line(&self.typed)),
            count => format!("1-{count} (Esc cancels the run, Ctrl-C leaves it waiting): "),
        }
    }

    /// Takes a key.
    pub(super) fn pressed(&mut self, pressed: Pressed) -> Said {
        let put = self.open.iter().find(|(ask, _)| self.put.as_ref() == Some(&ask.wait_id));
        let Some(ask) = put.map(|(ask, _)| ask.clone()) else { return Said::Nothing };
        match pressed {
            Pressed::Char(key) if !ask.choices.is_empty() => match ask.by_key(key) {
                Some(answer) => Said::Answer(ask, answer),
                None => Said::Nothing,
            },
            Pressed::Char(key) => {
                self.typed.push(key);
                Said::Typed(ask)
            }
            Pressed::Back => {
                self.typed.pop();
                Said::Typed(ask)
            }
            Pressed::Enter if ask.choices.is_empty() && !self.typed.is_empty() => {
                Said::Answer(ask, NewAnswer::text(&self.typed))
            }
            Pressed::Enter | Pressed::Leave | Pressed::Cancel => Said::Nothing,
        }
    }
}

/// Says how a wait is answered from a command line.
pub fn how_to_answer(ask: &Ask) -> String {
    let wait = &ask.wait_id;
    match ask.choices.first() {
        Some(_) => format!("answer with: {}", ours(format_args!("answer {wait} NUMBER"))),
        None => format!("answer with: {}", ours(format_args!("answer {wait} --text TEXT"))),
    }
}

/// Characters of an answer that are told again: enough to know which one it was.
const TOLD: usize = 60;

/// Says what was chosen, as far as it is told again.
pub fn short_answer_text(ask: &Ask, answer: &NewAnswer) -> String {
    cut(&answer_text(ask, answer), TOLD)
}

/// Says what was chosen.
pub fn answer_text(ask: &Ask, answer: &NewAnswer) -> String {
    let id = answer.option_id.as_deref();
    let choice = ask.choices.iter().find(|choice| Some(choice.id.as_str()) == id);
    let given = choice.map(|choice| choice.name.as_str());
    let given = given.or(answer.text.as_deref()).or(answer.option.as_deref()).or(id);
    sanitise::line(given.unwrap_or("sent"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ask(wait: &str, options: &[&str]) -> Ask {
        let options: Vec<Value> = options.iter().map(|id| json!({"optionId": id, "name": id})).collect();
        Ask::read(wait, "permission", &json!({"params": {"options": options}}))
    }

    #[test]
    fn keys_answer_the_question_that_was_put_and_no_other() {
        let mut questions = Questions::default();
        questions.add(ask("wait_1", &["a", "b"]));
        questions.add(ask("wait_2", &["c"]));
        assert_eq!(questions.pressed(Pressed::Char('1')), Said::Nothing, "none was put");
        assert_eq!(questions.put_first().map(|(ask, new)| (ask.wait_id, new)), Some(("wait_1".into(), true)));
        assert_eq!(questions.put_first().map(|(_, new)| new), Some(false));
        assert_eq!(questions.pressed(Pressed::Char('3')), Said::Nothing);
        let said = questions.pressed(Pressed::Char('2'));
        assert!(
            matches!(said, Said::Answer(ask, answer) if ask.wait_id == "wait_1" && answer == NewAnswer::option_id("b"))
        );
        assert_eq!(questions.over("wait_2"), None, "it was not put");
        assert_eq!(questions.over("wait_1").map(|ask| ask.wait_id), Some("wait_1".into()));
        assert!(questions.is_empty() && questions.over("wait_1").is_none());
        assert_eq!(questions.pressed(Pressed::Char('1')), Said::Nothing, "it is over");
    }

    #[test]
    fn words_are_typed_and_forgotten_with_their_question() {
        let mut questions = Questions::default();
        questions.add(ask("wait_1", &[]));
        let (put, _) = questions.put_first().expect("one");
        assert_eq!(questions.pressed(Pressed::Enter), Said::Nothing, "there are no words yet");
        for key in [Pressed::Char('a'), Pressed::Char('1'), Pressed::Back] {
            assert!(matches!(questions.pressed(key), Said::Typed(_)));
        }
        assert!(questions.prompt(&put).ends_with(": a"));
        assert!(
            matches!(questions.pressed(Pressed::Enter), Said::Answer(_, answer) if answer == NewAnswer::text("a"))
        );
        questions.over("wait_1");
        questions.add(ask("wait_2", &[]));
        let (put, _) = questions.put_first().expect("one");
        assert!(questions.prompt(&put).ends_with(": "));
    }
}

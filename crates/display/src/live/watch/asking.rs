//! What an agent asks while it is watched: put to the person at the terminal, or told to whoever has none; and what is
//! done with the keys they press.

use std::time::Duration;

use rekindle_client::failure::{Exit, Failure};
use rekindle_terminal::output::{BOLD, DIM, WARN};
use serde_json::json;

use super::Watching;
use crate::hints::attach;
use crate::live::keys::Pressed;
use crate::live::questions::{Said, how_to_answer, short_answer_text};

/// Without a terminal a wait must stay open this long: a policy of the session may answer it at once.
const UNANSWERED: Duration = Duration::from_millis(500);

impl Watching<'_> {
    /// Tells what is asked to whoever has no terminal, and how to answer it; the command then ends.
    pub(super) fn print_question(&mut self) -> Result<Option<Exit>, Failure> {
        let Some((ask, since)) = self.questions.first() else { return Ok(None) };
        if since.elapsed() < UNANSWERED {
            return Ok(None);
        }
        if !self.json {
            let mut lines = ask.lines.clone();
            lines.extend(ask.options());
            let how = (BOLD, how_to_answer(ask));
            for line in &lines {
                self.screen.line(line)?;
            }
            self.screen.hint(&how)?;
            self.screen.hint(&(DIM, format!("then: {}", attach(&self.session))))?;
        }
        Ok(Some(Exit::Waiting))
    }

    /// Puts the oldest question to the person.
    pub(super) fn ask_question(&mut self) -> Result<Option<Exit>, Failure> {
        let Some((ask, new)) = self.questions.put_first() else { return Ok(None) };
        if new {
            for line in ask.lines.iter().chain(&ask.options()) {
                self.screen.line(line)?;
            }
        }
        if !self.screen.has_prompt() {
            self.screen.prompt(&self.questions.prompt(&ask))?;
        }
        Ok(None)
    }

    /// Does what a key asks for.
    pub(super) fn pressed(&mut self, pressed: Pressed) -> Result<Option<Exit>, Failure> {
        if pressed == Pressed::Cancel {
            let path = format!("/api/sessions/{}/cancel", self.session);
            return match self.client.post(&path, &json!({})) {
                Ok(_) => Ok(None),
                Err(failure) => self.print_line(WARN, &format!("not cancelled: {}", failure.message())),
            };
        }
        let (ask, answer) = match self.questions.pressed(pressed) {
            Said::Nothing => return Ok(None),
            Said::Typed(ask) => {
                self.screen.prompt(&self.questions.prompt(&ask))?;
                return Ok(None);
            }
            Said::Answer(ask, answer) => (ask, answer),
        };
        match self.client.post(&format!("/api/waits/{}/answer", ask.wait_id), &answer) {
            Ok(_) => {
                // It is over for us; the record that says so need not be told again.
                self.questions.over(&ask.wait_id);
                self.print_line(DIM, &format!("answered: {}", short_answer_text(&ask, &answer)))
            }
            // The record that says who was faster, and with what, is on its way.
            Err(failure) if failure.is_too_late() => {
                let text =
                    format!("too late: your answer ({}) was not used", short_answer_text(&ask, &answer));
                self.print_line(WARN, &text)
            }
            Err(failure) => self.print_line(WARN, &format!("not answered: {}", failure.message())),
        }
    }
}

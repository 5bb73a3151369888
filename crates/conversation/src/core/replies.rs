//! What was answered to what was asked of the daemon.

use std::time::Duration;

use rekindle_display::live::diff::Styled;
use rekindle_terminal::output::{BAD, DIM, WARN};

use super::{Core, Effect, Standing};
use crate::layout::gist;

/// What was answered.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A message was taken; the session that it began, if it began one.
    Sent { number: u64, began: Option<String> },
    /// A message was not taken.
    NotSent { number: u64, why: String },
    /// An answer was taken.
    Answered { wait: String, told: String },
    /// An answer was not taken; somebody else may have been faster.
    NotAnswered { wait: String, told: String, too_late: bool, why: String },
    /// Something to be read.
    Lines(Vec<Styled>),
    /// What was asked was not done.
    Failed { what: &'static str, why: String },
    /// What a rewind to before a run would do.
    Planned { run: String, lines: Vec<Styled> },
    /// The conversation goes on in another session, behind a record.
    Moved { session: String, after: u64, lines: Vec<Styled> },
    /// How the session stands.
    Stands(Box<Standing>),
    /// How it stands cannot be said just now.
    Unknown,
}

impl Core {
    pub(super) fn reply(&mut self, reply: Reply, now: Duration) {
        match reply {
            Reply::Sent { number, began } => {
                self.outbox.acknowledged(number);
                if let Some(session) = began {
                    self.session = Some(session.clone());
                    self.effects.push(Effect::Follow { session, after: 0 });
                }
                self.leave_if_wanted();
            }
            Reply::NotSent { number, why } => {
                let text = self.outbox.acknowledged(number).unwrap_or_default();
                self.say(BAD, format!("not sent ({}): {why}", gist(&text, 40)));
                // It is in the history too; what is being typed goes before it.
                if self.editor.is_empty() {
                    self.editor.set(&text);
                }
                self.leaving = false;
            }
            Reply::Answered { wait, told } => {
                // The record that says so may have been faster.
                if self.questions.answered(&wait) {
                    self.say(DIM, format!("answered: {told}"));
                }
            }
            Reply::NotAnswered { wait, told, too_late, why } => {
                self.questions.not_answered(&wait);
                if too_late {
                    self.say(WARN, format!("too late: your answer ({told}) was not used"));
                } else {
                    self.say(WARN, format!("not answered: {why}"));
                }
            }
            Reply::Lines(lines) => lines.into_iter().for_each(|line| self.line(line)),
            Reply::Failed { what, why } => self.say(WARN, format!("{what}: {why}")),
            Reply::Planned { run, lines } => {
                lines.into_iter().for_each(|line| self.line(line));
                self.planned = Some(run);
            }
            Reply::Moved { session, after, lines } => {
                lines.into_iter().for_each(|line| self.line(line));
                self.questions.clear();
                self.outbox.unqueue_all();
                self.status.leave_run();
                self.session = Some(session.clone());
                self.effects.push(Effect::Follow { session, after });
            }
            Reply::Stands(standing) => self.stand(*standing, now),
            Reply::Unknown => self.status.change(),
        }
    }

    fn leave_if_wanted(&mut self) {
        if self.leaving && !self.outbox.is_sending() {
            self.leave();
        }
    }

    /// Takes how the session stands, and says what becomes of a run that was cut.
    fn stand(&mut self, standing: Standing, now: Duration) {
        let next = standing.next.clone();
        let over = match &standing.held {
            _ if !standing.is_cut => {
                self.status.settle();
                None
            }
            None => self.status.is_lost(now).then(|| "it does not continue automatically".to_owned()),
            held => held.clone(),
        };
        if let Some(why) = over.filter(|_| self.status.settle()) {
            self.say(WARN, why);
            self.say(DIM, next);
        }
        self.status.stand(standing);
    }
}

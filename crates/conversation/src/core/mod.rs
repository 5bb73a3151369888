//! The conversation as a state machine: what a person does, what is heard of the session and what was answered go in, and what is to
//! be shown and asked comes out. Pure: the time comes in as an argument.

mod input;
mod keys;
mod outbox;
mod panel;
mod questions;
mod replies;
mod session_updates;
mod slash_commands;
mod status;

use std::time::Duration;

use anstyle::Style;
use rekindle_client::failure::Exit;
use rekindle_display::hints::attach;
use rekindle_display::live::Piece;
use rekindle_display::live::diff::Styled;
use rekindle_terminal::output::DIM;
use rekindle_wire::request::{Change, NewAnswer};

pub(crate) use self::keys::{Key, key};
pub(crate) use self::replies::Reply;
pub(crate) use self::session_updates::{Fact, News};
pub(crate) use self::slash_commands::AgentCommand;
pub(crate) use self::status::{Offer, Standing};

use self::outbox::Outbox;
use self::questions::{Questions, Warned};
use self::status::Status;
use crate::editor::Editor;
use crate::history::History;

/// How often something that moves is drawn.
const MOVES: Duration = Duration::from_millis(120);

/// How often it is looked whether a time is over that is shorter than a person notices.
const WATCHES: Duration = Duration::from_millis(20);

/// What is done while nothing moves.
const RESTS: Duration = Duration::from_secs(3600);

/// What comes in.
#[derive(Debug)]
pub(crate) enum Event {
    /// A key.
    Key(Key),
    /// Text that was pasted: it is text, whatever is in it.
    Paste(String),
    /// Something was heard of the session.
    Heard(News),
    /// Something that was asked was answered.
    Reply(Reply),
    /// Time went by.
    Tick,
    /// Someone wants the process to end.
    Signal,
}

/// What is to be asked of the daemon.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// A message, or the first of a new session.
    Send { number: u64, text: String },
    /// An answer, and how it is told again.
    Answer { wait: String, answer: NewAnswer, told: String },
    /// The end of what goes on.
    Cancel,
    /// The end of an interruption.
    Resume,
    /// Another mode or model.
    Set(ChangeOf),
    /// What the latest run did to files.
    Diff,
    /// The tasks.
    Tasks,
    /// What a rewind would do.
    PlanRewind,
    /// A rewind to before a run.
    Rewind { run: String },
    /// A fork.
    Fork,
    /// How the session stands.
    Look,
}

/// A setting of the agent's and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeOf {
    Mode(String),
    Model(String),
}

impl ChangeOf {
    /// Says what is asked for.
    pub(crate) fn text(&self) -> String {
        match self {
            ChangeOf::Mode(mode) => format!("mode from now on: {mode}"),
            ChangeOf::Model(model) => format!("model from now on: {model}"),
        }
    }

    /// Returns the setting as a log names it.
    fn name(&self) -> &'static str {
        match self {
            ChangeOf::Mode(_) => "mode",
            ChangeOf::Model(_) => "model",
        }
    }

    fn value(&self) -> &str {
        let (ChangeOf::Mode(value) | ChangeOf::Model(value)) = self;
        value
    }

    pub(crate) fn change(self) -> Change {
        match self {
            ChangeOf::Mode(mode) => Change { mode: Some(mode), ..Change::default() },
            ChangeOf::Model(model) => Change { model: Some(model), ..Change::default() },
        }
    }
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    /// Shows something above.
    Show(Piece),
    /// Asks the daemon.
    Ask(Request),
    /// Follows another session, from behind a record.
    Follow { session: String, after: u64 },
    /// Ends the conversation.
    Leave(Exit),
}

/// A conversation.
#[derive(Debug, Default)]
pub(crate) struct Core {
    session: Option<String>,
    editor: Editor,
    history: History,
    outbox: Outbox,
    questions: Questions,
    status: Status,
    commands: Vec<AgentCommand>,
    /// A hint for whoever just did something, until the next key.
    notice: Option<Styled>,
    /// The line that somebody was warned of, who may insist on it.
    warned: Option<(String, Warned)>,
    /// What was set here since the last turn: nobody need be told of that as a drift.
    own_changes: Vec<ChangeOf>,
    /// The run that `/rewind yes` undoes.
    planned: Option<String>,
    /// It ends as soon as what was sent is acknowledged.
    leaving: bool,
    /// Columns of the terminal, for what is laid out in some.
    width: usize,
    effects: Vec<Effect>,
}

impl Core {
    /// Begins a conversation with a session, or with none yet.
    pub(crate) fn new(session: Option<String>, standing: Standing) -> Core {
        let mut core = Core { session, width: 80, ..Core::default() };
        core.status.stand(standing);
        core
    }

    /// The terminal has so many columns.
    pub(crate) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Takes what came in at a time; returns what is to be done.
    pub(crate) fn handle(&mut self, event: Event, now: Duration) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.key(key, now),
            Event::Paste(text) => self.paste(&text),
            Event::Heard(news) => self.hear(news, now),
            Event::Reply(reply) => self.reply(reply, now),
            Event::Tick => {}
            Event::Signal => self.leave_now(Exit::Detached),
        }
        self.tick(now);
        std::mem::take(&mut self.effects)
    }

    /// Returns how long nothing happens by itself.
    pub(crate) fn rest(&self, now: Duration) -> Duration {
        if self.questions.is_settling(now) {
            WATCHES
        } else if self.status.moves() {
            MOVES
        } else {
            RESTS
        }
    }

    fn tick(&mut self, now: Duration) {
        if let Some(ask) = self.questions.put_due(now, !self.editor.is_empty()) {
            for line in ask.lines.iter().chain(&ask.options()) {
                self.line(line.clone());
            }
        }
        if let Some((wait, answer, told)) = self.questions.answer_due(now) {
            self.editor.take();
            self.ask(Request::Answer { wait, answer, told });
        }
        if self.status.is_look_due(now) && self.session.is_some() {
            self.ask(Request::Look);
        }
    }

    fn show(&mut self, piece: Piece) {
        self.effects.push(Effect::Show(piece));
    }

    fn line(&mut self, line: Styled) {
        self.show(Piece::Line(line));
    }

    fn say(&mut self, style: Style, text: impl Into<String>) {
        self.line((style, text.into()));
    }

    fn ask(&mut self, request: Request) {
        self.effects.push(Effect::Ask(request));
    }

    fn note(&mut self, style: Style, text: impl Into<String>) {
        self.notice = Some((style, text.into()));
    }

    /// Leaves, once what was sent is acknowledged.
    fn leave(&mut self) {
        if self.outbox.is_sending() {
            self.leaving = true;
            self.note(DIM, "leaving as soon as your message is acknowledged; Ctrl-D again leaves at once");
        } else {
            self.leave_now(Exit::Ok);
        }
    }

    fn leave_now(&mut self, exit: Exit) {
        for text in self.outbox.unacknowledged() {
            self.say(DIM, format!("it is not known whether this message was sent: {text}"));
        }
        match self.session.clone() {
            None => self.say(DIM, "left; nothing was sent"),
            Some(session) => {
                let works = if self.status.is_working() { "; the agent keeps working" } else { "" };
                self.say(DIM, format!("left{works}. Come back with:"));
                self.say(DIM, attach(&session));
            }
        }
        self.effects.push(Effect::Leave(exit));
    }
}

#[cfg(test)]
mod tests;

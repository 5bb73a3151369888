//! What is heard of the session: what is shown of it, and what it means for the conversation.

use std::time::Duration;

use rekindle_display::live::{Piece, RunEnd, drift_lines, echo};
use rekindle_domain::event::{Drift, SettingDrift};
use rekindle_terminal::output::{BAD, COURSE, DIM, WARN};

use super::{AgentCommand, Core, Exit, Offer};
use crate::layout::gist;

/// Columns of a message that is told of again.
const TOLD: usize = 60;

/// What is heard.
#[derive(Debug)]
pub(crate) enum News {
    /// Something to be shown or known.
    Piece(Piece),
    /// Something to be known.
    Fact(Fact),
    /// The daemon went away.
    Away,
    /// It is there again; whether that it had gone was told.
    Back { away: bool },
    /// The end of the log was lost: it goes on behind a record.
    Reset { last_seq: u64 },
    /// Whoever follows gave up for now, and begins again.
    Stopped { why: String },
    /// Nothing more will be heard.
    Over { why: String },
}

/// What a record means beside what is shown of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    /// A message waits for its turn.
    Queued { id: String, text: String },
    /// A run began, so long ago, with this message.
    Begun { run: String, message: Option<String>, age: Duration },
    /// No message waits any more.
    QueueCleared,
    /// What waited stays behind in the session that this one goes on from.
    QueueLeft,
    /// The agent's own commands.
    Commands(Vec<AgentCommand>),
    /// The agent's modes and models.
    Offers { modes: Vec<Offer>, models: Vec<Offer> },
    /// The agent is being started, or that is over.
    Starting(bool),
    /// The agent works in this mode.
    Mode(String),
    /// Tokens, money or settings are not what they were.
    Changed,
}

impl Core {
    pub(super) fn hear(&mut self, news: News, now: Duration) {
        self.questions.hear(now);
        match news {
            News::Piece(piece) => self.piece(piece, now),
            News::Fact(fact) => self.fact(fact, now),
            News::Away => self.status.go_away(now),
            News::Back { away } => {
                let was_away = self.status.come_back();
                if away || was_away {
                    self.say(COURSE, "a daemon is running again");
                }
            }
            News::Reset { last_seq } => {
                self.say(
                    WARN,
                    format!("the end of the log was lost in a crash; it continues after record {last_seq}"),
                );
            }
            News::Stopped { why } => {
                self.status.go_away(now);
                self.note(WARN, format!("{why}; your next message starts it again"));
            }
            News::Over { why } => {
                self.say(BAD, why);
                self.leave_now(Exit::Failed);
            }
        }
    }

    fn piece(&mut self, piece: Piece, now: Duration) {
        match piece {
            Piece::Asked(ask) => self.questions.add(ask),
            Piece::AskOver(over) => {
                if let Some(said) = self.questions.over(&over) {
                    self.say(DIM, said);
                }
            }
            Piece::Ended(run, end) => {
                // An answer still continues a run that was cut while it waited.
                let is_cut = end == RunEnd::Interrupted;
                if !is_cut {
                    self.questions.clear();
                }
                self.status.end(&run, is_cut, now);
            }
            Piece::Dropped(message) => {
                if let Some(text) = self.outbox.unqueue(&message) {
                    self.dropped(&text);
                }
            }
            Piece::Begun { .. } => {}
            Piece::Drifted(drift) => self.drifted(*drift),
            shown => self.show(shown),
        }
    }

    /// Says what is not as the turn before left it, but for what somebody has just set here.
    fn drifted(&mut self, mut drift: Drift) {
        let own = std::mem::take(&mut self.own_changes);
        let has_own = |setting: &SettingDrift| {
            own.iter().any(|own| own.name() == setting.name && setting.to.as_deref() == Some(own.value()))
        };
        drift.settings.retain(|setting| !has_own(setting));
        // That files were not looked at matters to whoever reads of other things that changed.
        let rest = Drift { files_unknown: None, ..drift.clone() };
        if !rest.is_empty() || own.is_empty() {
            drift_lines(&drift).into_iter().for_each(|line| self.line(line));
        }
    }

    fn fact(&mut self, fact: Fact, now: Duration) {
        match fact {
            Fact::Queued { id, text } => self.outbox.queue(id, text),
            Fact::Begun { run, message, age } => {
                // Nothing that was asked before is asked still.
                self.questions.clear();
                if let Some(text) = message.and_then(|id| self.outbox.unqueue(&id)) {
                    echo(&text).into_iter().for_each(|piece| self.show(piece));
                }
                self.status.begin(run, now.saturating_sub(age));
            }
            Fact::QueueCleared => {
                let dropped = self.outbox.unqueue_all();
                dropped.iter().for_each(|text| self.dropped(text));
            }
            Fact::QueueLeft => drop(self.outbox.unqueue_all()),
            Fact::Commands(commands) => self.commands = commands,
            Fact::Offers { modes, models } => self.status.offer(modes, models),
            Fact::Starting(is_starting) => self.status.start(is_starting),
            Fact::Mode(mode) => self.status.set_mode(mode),
            Fact::Changed => self.status.change(),
        }
    }

    /// Says that a queued message will not be sent; the arrow keys bring it back.
    fn dropped(&mut self, text: &str) {
        self.history.add(text);
        self.say(WARN, format!("taken out of the queue: {}", gist(text, TOLD)));
    }
}

//! What is heard of a session, as the conversation takes it: records become pieces and facts. Pure but for the clock and for payloads
//! that are kept apart.

use std::time::Duration;

use rekindle_agent::acp::{Offered, SessionOptions};
use rekindle_client::clock::SystemClock;
use rekindle_client::follow::Heard;
use rekindle_client::payloads::Payloads;
use rekindle_display::live::Picture;
use rekindle_display::record_text::{message_text, payload};
use rekindle_domain::event::{AgentNotice, CancelReason, Event, InputKind};
use rekindle_domain::line::Line;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::sanitise;
use serde_json::Value;

use crate::core::{AgentCommand, Fact, News, Offer};

/// Most commands, modes or models of an agent that are offered: some have hundreds.
const MAX_OFFERED: usize = 500;

/// A session as it is heard.
pub(crate) struct Feed {
    picture: Picture,
    blobs: Payloads,
    /// The newest record that was taken.
    seq: u64,
}

impl Feed {
    /// Begins behind a record.
    pub(crate) fn new(blobs: Payloads, after: u64) -> Feed {
        Feed { picture: Picture::new(blobs.clone()), blobs, seq: after }
    }

    /// Returns the record behind which it goes on.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Takes what was heard.
    pub(crate) fn hear(&mut self, heard: Heard) -> Vec<News> {
        let pieces = match heard {
            Heard::Record(line) => return self.record(&line),
            Heard::Words(words) => self.picture.words(words),
            // Of runs of pipelines only.
            Heard::Pending(_) => Vec::new(),
            Heard::Away => return vec![News::Away],
            Heard::Back { away } => {
                self.picture.miss_words();
                return vec![News::Back { away }];
            }
            Heard::Reset { last_seq } => {
                self.picture.miss_words();
                self.seq = last_seq;
                return vec![News::Reset { last_seq }];
            }
            Heard::Deleted => return vec![News::Over { why: "the session was removed".into() }],
            Heard::Over(failure) if failure.is_daemon_gone() => {
                return vec![News::Stopped { why: failure.message() }];
            }
            Heard::Over(failure) => return vec![News::Over { why: failure.message() }],
        };
        pieces.into_iter().map(News::Piece).collect()
    }

    /// Nothing more was heard for a moment.
    pub(crate) fn rest(&mut self) -> Vec<News> {
        self.picture.rest().into_iter().map(News::Piece).collect()
    }

    /// Tells whether words wait for what is heard next.
    pub(crate) fn waits(&self) -> bool {
        self.picture.waits()
    }

    fn record(&mut self, line: &str) -> Vec<News> {
        match Line::parse(line.as_bytes()) {
            // A stream that is taken up again may tell of one once more.
            Ok(record) if record.seq <= self.seq => return Vec::new(),
            Ok(record) => self.seq = record.seq,
            Err(_) => {}
        }
        let facts = facts(line, &self.blobs);
        // It is shown when it begins; until then it is in the queue.
        let is_queued = facts.iter().any(|fact| matches!(fact, Fact::Queued { .. }));
        let pieces = if is_queued { self.picture.rest() } else { self.picture.record(line) };
        pieces.into_iter().map(News::Piece).chain(facts.into_iter().map(News::Fact)).collect()
    }
}

/// Returns what a record means beside what is shown of it.
pub(crate) fn facts(line: &str, blobs: &Payloads) -> Vec<Fact> {
    let Ok(record) = Line::parse(line.as_bytes()) else { return Vec::new() };
    let Ok(event) = record.event() else { return Vec::new() };
    let fact = match &event {
        Event::MessageUser(message) if message.queued => {
            let text = message_text(&message.content, blobs);
            Fact::Queued { id: message.message_id.to_string(), text: sanitise::block(&text) }
        }
        // Nothing of a fork's queue goes on in it: what was said to the session that it goes on from was meant for that.
        Event::SessionCreated(created) if created.forked_from.is_some() => Fact::QueueLeft,
        Event::RunStarted(started) => {
            let run = started.run_id.to_string();
            let message = started.message_id.map(|id| id.to_string());
            Fact::Begun { run, message, age: age(record.ts) }
        }
        Event::RunCancelRequested(request)
            if matches!(request.why, CancelReason::User | CancelReason::StopAll) =>
        {
            Fact::QueueCleared
        }
        Event::AgentLaunching(_) => Fact::Starting(true),
        // Of a plain command nothing says that it is ready, but that it has its prompt.
        Event::AgentReady(_) | Event::AgentExited(_) => Fact::Starting(false),
        Event::InputQueued(input) if input.what == InputKind::Prompt => Fact::Starting(false),
        Event::AgentNotice(notice) => return offers(notice, blobs).into_iter().collect(),
        Event::ModeUpdated(mode) => Fact::Mode(sanitise::line(&mode.mode_id)),
        Event::UsageUpdated(_) | Event::SessionUpdated(_) => Fact::Changed,
        _ => return Vec::new(),
    };
    vec![fact]
}

/// Returns how long ago something was; a clock that was set back makes it just now.
fn age(ts: &str) -> Duration {
    let then = ts.parse::<Timestamp>().ok();
    then.map_or(Duration::ZERO, |then| Duration::from_millis(SystemClock.now().millis_since(then)))
}

/// Returns what an agent says that it offers.
fn offers(notice: &AgentNotice<'_>, blobs: &Payloads) -> Option<Fact> {
    let raw = payload(notice.raw.as_ref()?, blobs);
    match notice.what.as_ref() {
        "available_commands" => {
            let commands = raw["availableCommands"].as_array()?.iter().take(MAX_OFFERED);
            let text = |value: &Value| sanitise::line(value.as_str().unwrap_or_default());
            let command = |command: &Value| AgentCommand {
                name: text(&command["name"]),
                description: text(&command["description"]),
            };
            let commands = commands.map(command).filter(|command| !command.name.is_empty());
            Some(Fact::Commands(commands.collect()))
        }
        "session_options" | "config_options" => {
            let options = SessionOptions::parse(&raw.to_string())?;
            Some(Fact::Offers { modes: clean(options.modes()), models: clean(options.models()) })
        }
        _ => None,
    }
}

fn clean(offered: Vec<Offered>) -> Vec<Offer> {
    let offer = |offered: Offered| Offer {
        id: sanitise::line(&offered.id),
        name: sanitise::line(&offered.name),
        current: offered.current,
    };
    offered.into_iter().take(MAX_OFFERED).map(offer).collect()
}

#[cfg(test)]
mod tests;

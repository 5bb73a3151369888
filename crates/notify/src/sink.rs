//! Sinks: where notices go. Each says what it wants, and delivers a message in bounded time; who keeps messages until then, and in which
//! order, is another's matter.

use std::num::NonZeroU32;
use std::sync::Arc;

use rekindle_domain::time::Timestamp;

use crate::bell::Bell;
use crate::command::CommandSink;
use crate::config::{NotifyConfig, SinkType};
use crate::delivery::Delivery;
use crate::desktop::Desktop;
use crate::machine::Machine;
use crate::notice::{AnswerLink, Message, Notice};
use crate::rate_limit::RateLimit;
use crate::rules::{Rules, Wanted};
use crate::webhook::Webhook;

/// The sinks of a configuration.
#[derive(Debug, Default)]
pub struct Sinks {
    /// Those that a daemon delivers to, by their names in order.
    pub sinks: Vec<Sink>,
    /// Those that ring where somebody watches.
    pub bells: Vec<Bell>,
}

impl Sinks {
    /// Returns the sinks that a configuration names. Nothing is looked at yet that a variable or a file should have.
    pub fn new(config: &NotifyConfig, machine: &Arc<dyn Machine>) -> Sinks {
        let mut made = Sinks::default();
        for (name, sink) in config.sinks.clone() {
            let rules = Rules { quiet: sink.quiet_hours.unwrap_or(config.quiet_hours), ..sink.rules };
            let machine = Arc::clone(machine);
            let target = match sink.kind {
                SinkType::Command(config) => {
                    Target::Command(CommandSink::new(config, sink.include, Arc::clone(&machine)))
                }
                SinkType::Webhook(config) => {
                    Target::Webhook(Webhook::new(config, sink.include, Arc::clone(&machine)))
                }
                SinkType::Desktop => Target::Desktop(Desktop::new(sink.include, Arc::clone(&machine))),
                SinkType::Bell => {
                    made.bells.push(Bell::new(rules, machine));
                    continue;
                }
            };
            made.sinks.push(Sink { name, rules, rate: sink.rate, target, machine });
        }
        made
    }
}

/// One sink.
#[derive(Debug)]
pub struct Sink {
    name: String,
    rules: Rules,
    rate: Option<NonZeroU32>,
    target: Target,
    machine: Arc<dyn Machine>,
}

#[derive(Debug)]
enum Target {
    Command(CommandSink),
    Webhook(Webhook),
    Desktop(Desktop),
}

impl Sink {
    /// Returns its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says what it is, and where it leads as far as that may be shown.
    pub fn describe(&self) -> String {
        match &self.target {
            Target::Command(command) => format!("command {}", command.program()),
            Target::Webhook(webhook) => match webhook.origin() {
                Ok(origin) => format!("webhook {origin}"),
                Err(_) => "webhook".to_owned(),
            },
            Target::Desktop(_) => "desktop".to_owned(),
        }
    }

    /// Decides what becomes of a notice here; `attended` says whether somebody looks at its session.
    pub fn wants(&self, notice: &Notice, attended: bool, now: Timestamp) -> Wanted {
        self.rules.judge(notice, attended, now, &self.machine.zone())
    }

    /// Returns its rate limit, as it is before the first message.
    pub fn rate_limit(&self) -> RateLimit {
        RateLimit::new(self.rate)
    }

    /// Tells whether links to answer by are any use here: where they are not, none should be made.
    pub fn carries_links(&self) -> bool {
        match &self.target {
            Target::Command(_) | Target::Webhook(_) => true,
            Target::Desktop(_) => false,
        }
    }

    /// Says what keeps it from delivering anything, as far as that is known without trying: a variable that is not set, a program that is
    /// not there.
    pub fn problem(&self) -> Option<String> {
        match &self.target {
            Target::Command(_) => None,
            Target::Webhook(webhook) => webhook.problem(),
            Target::Desktop(desktop) => desktop.problem(),
        }
    }

    /// Tries once to deliver a message; returns within about ten seconds, whatever the receiver does.
    pub fn deliver(&self, message: &Message, links: &[AnswerLink], now: Timestamp) -> Delivery {
        match &self.target {
            Target::Command(command) => command.deliver(message, links),
            Target::Webhook(webhook) => webhook.deliver(message, links, now),
            Target::Desktop(desktop) => desktop.deliver(message),
        }
    }
}

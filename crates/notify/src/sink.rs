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
                    made.bells.push(Bell::new(name, rules, machine));
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
            Target::Command(command) => command.problem(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::FakeMachine;
    use crate::rate_limit::Admission;
    use crate::samples;

    #[test]
    fn sinks_are_made_from_the_configuration_and_show_no_secret() {
        let config: NotifyConfig = toml::from_str(
            "quiet_hours = \"22:00-07:00\"\n\
             [sinks.a]\ntype = \"webhook\"\nurl = \"env:URL\"\nrate = 1\n\
             [sinks.b]\ntype = \"command\"\ncommand = [\"tell\", \"hunter2\"]\nquiet_hours = \"off\"\n\
             [sinks.c]\ntype = \"desktop\"\nquiet_hours = \"12:00-13:00\"\n\
             [sinks.d]\ntype = \"bell\"\n\
             [sinks.e]\ntype = \"webhook\"\nurl = \"env:NONE\"\n",
        )
        .expect("a section");
        let machine: Arc<dyn Machine> =
            Arc::new(FakeMachine::with_variable("URL", "https://hooks.example/hunter2"));
        let sinks = Sinks::new(&config, &machine);
        let described: Vec<String> = sinks.sinks.iter().map(Sink::describe).collect();
        assert_eq!(described, ["webhook https://hooks.example", "command tell", "desktop", "webhook"]);
        assert_eq!(sinks.bells.len(), 1);
        let names: Vec<&str> = sinks.sinks.iter().map(Sink::name).collect();
        assert_eq!(names, ["a", "b", "c", "e"]);
        assert_eq!(
            sinks.sinks.iter().map(Sink::carries_links).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert!(sinks.sinks[0].problem().is_none());
        assert!(sinks.sinks[3].problem().is_some_and(|why| why.contains("NONE")));

        let wants = |at: &str| {
            let now = at.parse().expect("a time");
            let wants = |sink: &Sink| sink.wants(&samples::waiting(), false, now) == Wanted::Now;
            sinks.sinks.iter().map(wants).collect::<Vec<_>>()
        };
        assert_eq!(wants("2026-02-21T23:00:00.000Z"), [false, true, true, false]);
        assert_eq!(wants("2026-02-21T12:30:00.000Z"), [true, true, false, true]);
        let mut limit = sinks.sinks[0].rate_limit();
        let now = Timestamp::from_millis(0);
        assert_eq!(limit.admit(now), Admission::Now);
        assert!(matches!(limit.admit(now), Admission::Later(_)));
    }

    #[test]
    fn what_keeps_a_sink_from_delivering_is_said_without_trying() {
        let config: NotifyConfig = toml::from_str(
            "[sinks.a]\ntype = \"command\"\ncommand = [\"/nowhere/tell\"]\n\
             [sinks.b]\ntype = \"command\"\ncommand = [\"/bin/sh\"]\n\
             [sinks.c]\ntype = \"webhook\"\nurl = \"https://127.0.0.1/x\"\n\
             [sinks.d]\ntype = \"webhook\"\nurl = \"https://169.254.169.254/x\"\nallow_private = true\n\
             [sinks.e]\ntype = \"webhook\"\nurl = \"https://[::1]:8443/x\"\nallow_private = true\n",
        )
        .expect("a section");
        let machine: Arc<dyn Machine> = Arc::new(FakeMachine::new());
        let problems: Vec<String> = Sinks::new(&config, &machine)
            .sinks
            .iter()
            .map(|sink| sink.problem().unwrap_or_default())
            .collect();
        let expected = [
            "/nowhere/tell is not a program",
            "",
            "127.0.0.1:443 leads to",
            "169.254.169.254:443 leads to",
            "",
        ];
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(
                problem.starts_with(expected) && problem.is_empty() == expected.is_empty(),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn arguments_of_commands_are_not_shown() {
        let config: NotifyConfig =
            toml::from_str("[sinks.b]\ntype = \"command\"\ncommand = [\"tell\", \"--token=hunter2\"]")
                .expect("a section");
        let machine: Arc<dyn Machine> = Arc::new(FakeMachine::new());
        let shown = format!("{config:?} {:?}", Sinks::new(&config, &machine));
        assert!(shown.contains("tell") && !shown.contains("hunter2"), "{shown}");
    }
}

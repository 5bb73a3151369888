//! Commands: a program of the user's that gets a message as JSON on its input. It is no line for a shell, has ten seconds, and whatever it
//! leaves in its group ends with it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::body;
use crate::child_environment::child_environment;
use crate::config::CommandConfig;
use crate::delivery::Delivery;
use crate::executable::is_executable;
use crate::machine::Machine;
use crate::notice::{AnswerLink, Message};
use crate::process::{self, Ended};
use crate::text::{Include, line};

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The exit code of programs that want to be asked again later (`EX_TEMPFAIL` of sysexits.h).
const TEMPORARY: i32 = 75;

/// How much of what it says is told, in characters.
const SAID: usize = 200;

/// A sink that runs a program.
#[derive(Debug)]
pub(crate) struct CommandSink {
    config: CommandConfig,
    include: Include,
    machine: Arc<dyn Machine>,
    limit: Duration,
}

impl CommandSink {
    pub(crate) fn new(config: CommandConfig, include: Include, machine: Arc<dyn Machine>) -> CommandSink {
        CommandSink { config, include, machine, limit: LIMIT }
    }

    /// Returns the program.
    pub(crate) fn program(&self) -> &str {
        &self.config.program
    }

    /// Says what keeps the program from being run, as far as that is known without trying.
    pub(crate) fn problem(&self) -> Option<String> {
        let program = &self.config.program;
        (!is_executable(&*self.machine, program))
            .then(|| format!("{program} is not a program that can be run"))
    }

    /// Runs the program.
    pub(crate) fn deliver(&self, message: &Message, links: &[AnswerLink]) -> Delivery {
        let environment = child_environment(&*self.machine, &self.config.env);
        let kind = match message {
            Message::Notice(notice) => notice.kind.name(),
            Message::Summary(_) => "summary",
        };
        let mut command = Command::new(&self.config.program);
        command.args(&self.config.arguments).env_clear().envs(&environment);
        command.env("REKINDLE_KIND", kind).env("REKINDLE_EVENT_ID", message.event_id());
        // Wherever the daemon stands may be gone.
        let home = environment.get("HOME").filter(|home| Path::new(home).is_dir());
        command.current_dir(home.map_or("/", String::as_str));
        let input = body::json(message, links, self.include);
        // What it was given it may repeat: links, and values of variables that were named because they are secret.
        let values = self.config.env.iter().filter_map(|name| environment.get(name));
        let secrets = links.iter().map(|link| &link.url).chain(values);
        judge(process::run(&mut command, &input, self.limit), secrets, &self.config.program, self.limit)
    }
}

/// Decides what the end of a program means. Only one that says so by its exit code is run again: nobody knows what the others have done.
pub(crate) fn judge<'a>(
    outcome: std::io::Result<process::Outcome>,
    secrets: impl Iterator<Item = &'a String>,
    program: &str,
    limit: Duration,
) -> Delivery {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory) =>
        {
            return Delivery::retry(format!("{program} cannot be started now: {error}"));
        }
        Err(error) => return Delivery::refused(format!("{program} cannot be started: {error}")),
    };
    let said = last_line(&outcome.said, secrets);
    match outcome.ended {
        Ended::Exited(status) if status.success() => Delivery::Delivered,
        Ended::Exited(status) => {
            let why = format!("{program} ended with {status}{said}");
            if status.code() == Some(TEMPORARY) { Delivery::retry(why) } else { Delivery::refused(why) }
        }
        Ended::TimedOut => {
            Delivery::refused(format!("{program} was ended after {} s{said}", limit.as_secs()))
        }
    }
}

/// Returns the last line of what a program said, without what it was told in confidence.
fn last_line<'a>(said: &[u8], secrets: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::from_utf8_lossy(said).into_owned();
    for secret in secrets {
        // Of a link the part behind # is the secret, and may stand alone.
        let parts = secret.split('#').chain([secret.as_str()]);
        for part in parts.filter(|part| part.len() > 3).collect::<Vec<_>>() {
            text = text.replace(part, "…");
        }
    }
    let last = text.lines().rev().map(|text| line(text, SAID)).find(|text| !text.is_empty());
    last.map(|last| format!(": {last}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;

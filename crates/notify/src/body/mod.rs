//! Bodies of requests, as receivers want them: for programs, and ready for the services that people have on their phones.

mod discord;
mod json;
mod link;
mod ntfy;
mod slack;

use serde::Deserialize;

use crate::notice::{AnswerLink, Message};
use crate::text::{Include, words};

use link::usable;

/// Whom a body is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// A program.
    #[default]
    Json,
    /// ntfy, which brings it to phones.
    Ntfy,
    /// Slack.
    Slack,
    /// Discord.
    Discord,
}

/// Returns the body for programs, which commands get too.
pub(crate) fn json(message: &Message, links: &[AnswerLink], include: Include) -> Vec<u8> {
    json::body(message, &usable(links), include)
}

/// Returns the body for ntfy about a topic.
pub(crate) fn ntfy(message: &Message, links: &[AnswerLink], include: Include, topic: &str) -> Vec<u8> {
    ntfy::body(message, &words(message, include), &usable(links), topic)
}

/// Returns the body for Slack.
pub(crate) fn slack(message: &Message, links: &[AnswerLink], include: Include) -> Vec<u8> {
    slack::body(&words(message, include), &usable(links))
}

/// Returns the body for Discord.
pub(crate) fn discord(message: &Message, links: &[AnswerLink], include: Include) -> Vec<u8> {
    discord::body(&words(message, include), &usable(links))
}

#[cfg(test)]
mod tests;

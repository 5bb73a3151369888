//! A sink's section, checked: what its type needs is there, and nothing that belongs to another.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

use super::raw_sink::{RawQuietHours, RawRate, RawSink, RawType};
use crate::body::Format;
use crate::quiet_hours::QuietHours;
use crate::rules::Rules;
use crate::secret::SecretSource;
use crate::text::Include;
use crate::webhook_url::WebhookUrl;

/// Headers that are ours to set, or the connection's.
const OUR_HEADERS: &[&str] = &[
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// The beginning of the names of our own headers.
const OUR_PREFIX: &str = "x-rekindle-";

/// More headers than a request needs.
const MOST_HEADERS: usize = 16;

/// Longer arguments than a command needs.
const LONGEST_COMMAND: usize = 4096;

/// A section `[notify.sinks.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSink")]
pub(crate) struct SinkConfig {
    /// Its filters. Quiet hours are its own, if it has them.
    pub(crate) rules: Rules,
    /// Whether it has a word of its own about quiet hours.
    pub(crate) quiet_hours: Option<Option<QuietHours>>,
    /// How much is told.
    pub(crate) include: Include,
    /// How many messages an hour.
    pub(crate) rate: Option<NonZeroU32>,
    pub(crate) kind: SinkType,
}

/// What kind of sink it is, with what that needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SinkType {
    Command(CommandConfig),
    Webhook(WebhookConfig),
    Desktop,
    Bell,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct CommandConfig {
    /// The program; never a line for a shell.
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// Names of variables that it gets beyond the usual ones.
    pub(crate) env: Vec<String>,
}

/// Without its arguments, among which people put what nobody should see.
impl fmt::Debug for CommandConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = (self.program.as_str(), self.arguments.len());
        f.debug_struct("CommandConfig").field("command", &shown).field("env", &self.env).finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebhookConfig {
    pub(crate) url: SecretSource,
    pub(crate) format: Format,
    /// The key of signatures.
    pub(crate) secret: Option<SecretSource>,
    pub(crate) headers: BTreeMap<String, SecretSource>,
    pub(crate) allow_private: bool,
    /// Who must have signed the receiver's certificate; whom the system trusts without it.
    pub(crate) ca_file: Option<PathBuf>,
}

impl TryFrom<RawSink> for SinkConfig {
    type Error = String;

    fn try_from(mut raw: RawSink) -> Result<SinkConfig, String> {
        let kind = match raw.kind {
            RawType::Command => SinkType::Command(command(&mut raw)?),
            RawType::Webhook => SinkType::Webhook(webhook(&mut raw)?),
            RawType::Desktop => SinkType::Desktop,
            RawType::Bell => SinkType::Bell,
        };
        // What no type has taken belongs to another one.
        let left = [
            ("command", raw.command.is_some(), "command"),
            ("env", raw.env.is_some(), "command"),
            ("url", raw.url.is_some(), "webhook"),
            ("format", raw.format.is_some(), "webhook"),
            ("secret", raw.secret.is_some(), "webhook"),
            ("headers", raw.headers.is_some(), "webhook"),
            ("allow_private", raw.allow_private.is_some(), "webhook"),
            ("ca_file", raw.ca_file.is_some(), "webhook"),
        ];
        if let Some((key, _, of)) = left.into_iter().find(|(_, is_left, _)| *is_left) {
            return Err(format!(
                "{key} belongs to sinks with type = \"{of}\": remove it, or change the type"
            ));
        }
        if let Some(directory) = raw.directories.iter().find(|directory| !directory.is_absolute()) {
            return Err(format!(
                "directories has {directory:?}, which is not an absolute path: write one such as /home/ada/work"
            ));
        }
        let usual = Rules::default();
        let events = raw.events.unwrap_or(usual.events);
        if events.is_empty() {
            return Err(
                "events is empty, so no notification would be sent: name some events, or remove the sink"
                    .to_owned(),
            );
        }
        if let Some(kind) = raw.urgent.iter().find(|kind| !events.contains(kind)) {
            let name = kind.name();
            return Err(format!(
                "urgent has {name}, which is not among the events of this sink: add it there"
            ));
        }
        let quiet_hours = raw.quiet_hours.map(|RawQuietHours(hours)| hours);
        Ok(SinkConfig {
            rules: Rules {
                events,
                urgent: raw.urgent,
                when: raw.when,
                agents: raw.agents,
                directories: raw.directories,
                quiet: quiet_hours.flatten(),
            },
            quiet_hours,
            include: raw.include,
            rate: match raw.rate {
                RawRate::PerHour(most) => Some(most),
                RawRate::Off(_) => None,
            },
            kind,
        })
    }
}

fn command(raw: &mut RawSink) -> Result<CommandConfig, String> {
    let command = raw.command.take().unwrap_or_default();
    let mut words = command.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program = program.ok_or(
        "command is missing: write the program and its arguments, as in command = [\"/home/ada/bin/tell\"]",
    )?;
    let arguments: Vec<String> = words.collect();
    let length: usize = arguments.iter().map(String::len).sum::<usize>() + program.len();
    if length > LONGEST_COMMAND || arguments.iter().chain([&program]).any(|word| word.contains('\0')) {
        return Err(format!("command is longer than {LONGEST_COMMAND} bytes, or contains a NUL"));
    }
    // A path is looked up from wherever the daemon happens to stand.
    if program.contains('/') && !program.starts_with('/') {
        return Err(format!(
            "command has {program:?}, which is not an absolute path: write one, or the name of a program in PATH"
        ));
    }
    let env = raw.env.take().unwrap_or_default();
    match env.iter().find(|name| !is_variable(name)) {
        Some(name) => {
            // Behind the name may be what nobody is to see.
            let shown = name.split('=').next().unwrap_or_default();
            Err(format!(
                "env has {shown:?}, which is not just the name of a variable: values are not written here"
            ))
        }
        None => Ok(CommandConfig { program, arguments, env }),
    }
}

fn webhook(raw: &mut RawSink) -> Result<WebhookConfig, String> {
    let url = raw.url.take().ok_or(
        "url is missing: write url = \"https://…\", or \"env:NAME\" for a variable that contains it",
    )?;
    let format = raw.format.take().unwrap_or_default();
    let allow_private = raw.allow_private.take().unwrap_or_default();
    readable("url", &url)?;
    if let SecretSource::Text(text) = &url {
        let url = WebhookUrl::parse(text, allow_private).map_err(|why| format!("url {why}"))?;
        if format == Format::Ntfy {
            url.ntfy_topic()
                .ok_or("url has no topic after its host, which ntfy needs: write https://ntfy.sh/TOPIC")?;
        }
    }
    let secret = raw.secret.take();
    match &secret {
        Some(SecretSource::Text(_)) => {
            return Err(
                "a secret must not be written into the configuration: use secret = \"env:NAME\" or \"file:/PATH\""
                    .to_owned(),
            );
        }
        Some(source) => readable("secret", source)?,
        None => {}
    }
    let headers = raw.headers.take().unwrap_or_default();
    if headers.len() > MOST_HEADERS {
        return Err(format!("there are more than {MOST_HEADERS} headers"));
    }
    for (name, value) in &headers {
        let lower = name.to_ascii_lowercase();
        if name.parse::<hyper::header::HeaderName>().is_err() {
            return Err(format!("headers has {name:?}, which is not the name of a header"));
        }
        if OUR_HEADERS.contains(&lower.as_str()) || lower.starts_with(OUR_PREFIX) {
            return Err(format!("headers has {name}, which is set for every request: remove it"));
        }
        readable(name, value)?;
        if let SecretSource::Text(text) = value
            && hyper::header::HeaderValue::from_str(text).is_err()
        {
            return Err(format!("the header {name} has a value that is not valid for a header"));
        }
    }
    let ca_file = raw.ca_file.take();
    if ca_file.as_ref().is_some_and(|file| !file.is_absolute()) {
        return Err("ca_file is not an absolute path: write one such as /etc/ssl/company.pem".to_owned());
    }
    Ok(WebhookConfig { url, format, secret, headers, allow_private, ca_file })
}

/// Checks that a value can be where it is said to be.
fn readable(key: &str, source: &SecretSource) -> Result<(), String> {
    match source {
        SecretSource::Text(text) if text.is_empty() => Err(format!("{key} is empty")),
        SecretSource::Text(_) => Ok(()),
        SecretSource::Variable(name) if is_variable(name) => Ok(()),
        SecretSource::Variable(_) => {
            Err(format!("{key} has env: without the name of a variable after it: write env:NAME"))
        }
        SecretSource::File(path) if path.is_absolute() => Ok(()),
        SecretSource::File(_) => {
            Err(format!("{key} has file: without an absolute path after it: write file:/PATH"))
        }
    }
}

fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
    starts && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

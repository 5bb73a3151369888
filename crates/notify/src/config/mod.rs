//! The section `[notify]` of the configuration: read and checked as a whole, so that a wrong word is found when it is written and not when
//! something is to be told. Pure: what variables and files hold is read when it is needed.

mod raw_sink;
mod sink_config;

use std::collections::BTreeMap;
use std::time::Duration;

use rekindle_domain::age::Age;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::base_url::BaseUrl;
use crate::quiet_hours::QuietHours;

pub(crate) use sink_config::{CommandConfig, SinkConfig, SinkType, WebhookConfig};

/// How long is waited whether something that happened settles by itself: a question that a policy answers, an agent that is taken over.
const SETTLE: Duration = Duration::from_secs(2);

/// The longest that may be waited: whoever waits longer wants quiet hours.
const LONGEST_SETTLE: Duration = Duration::from_secs(10 * 60);

/// How often progress is told at most, where a sink wants it.
const PROGRESS: Duration = Duration::from_secs(15 * 60);

/// More sinks than anybody has: each is a thread.
const MOST_SINKS: usize = 32;

/// The section as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotifyConfig {
    /// Under which address people elsewhere reach this daemon; without it there are no links to answer by.
    pub base_url: Option<BaseUrl>,
    /// How long is waited before something is told.
    #[serde(deserialize_with = "settle")]
    pub settle: Duration,
    /// When nobody is to be disturbed.
    pub(crate) quiet_hours: Option<QuietHours>,
    /// How often progress is told at most.
    #[serde(deserialize_with = "progress")]
    pub progress_every: Duration,
    /// Where notices go, by names.
    #[serde(deserialize_with = "sinks")]
    pub(crate) sinks: BTreeMap<String, SinkConfig>,
}

impl Default for NotifyConfig {
    fn default() -> NotifyConfig {
        NotifyConfig {
            base_url: None,
            settle: SETTLE,
            quiet_hours: None,
            progress_every: PROGRESS,
            sinks: BTreeMap::new(),
        }
    }
}

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let Age(length) = String::deserialize(from)?.parse().map_err(D::Error::custom)?;
    Ok(length)
}

fn settle<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    match length(from)? {
        length if length <= LONGEST_SETTLE => Ok(length),
        _ => Err(D::Error::custom("settle must be at most 10m, such as 2s")),
    }
}

fn progress<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    match length(from)? {
        length if length >= Duration::from_secs(60) => Ok(length),
        _ => Err(D::Error::custom(
            "progress_every must be at least 1m, such as 15m; to get no progress, leave it out of events",
        )),
    }
}

fn sinks<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, SinkConfig>, D::Error> {
    let sinks = BTreeMap::<String, SinkConfig>::deserialize(from)?;
    // Names are shown in tables, and label metrics.
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if let Some(name) =
        sinks.keys().find(|name| name.is_empty() || name.len() > 32 || !name.chars().all(fits))
    {
        let shown: String = name.chars().take(40).collect();
        return Err(D::Error::custom(format!(
            "{shown:?} is not a valid name for a sink: write up to 32 of a-z, 0-9, - and _, such as [notify.sinks.phone]"
        )));
    }
    if sinks.len() > MOST_SINKS {
        return Err(D::Error::custom(format!("there are more than {MOST_SINKS} sinks")));
    }
    Ok(sinks)
}

#[cfg(test)]
mod tests;

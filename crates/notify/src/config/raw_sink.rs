//! A sink as it is written: every key of every type, so that one that belongs to another type is named rather than called unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::Deserialize;

use crate::body::Format;
use crate::notice::NoticeKind;
use crate::quiet_hours::QuietHours;
use crate::rules::When;
use crate::secret::SecretSource;
use crate::text::Include;

/// A section `[notify.sinks.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSink {
    #[serde(rename = "type")]
    pub(super) kind: RawType,
    pub(super) events: Option<BTreeSet<NoticeKind>>,
    #[serde(default)]
    pub(super) urgent: BTreeSet<NoticeKind>,
    #[serde(default)]
    pub(super) include: Include,
    #[serde(default)]
    pub(super) when: When,
    #[serde(default)]
    pub(super) agents: Vec<String>,
    #[serde(default)]
    pub(super) directories: Vec<PathBuf>,
    #[serde(default)]
    pub(super) rate: RawRate,
    pub(super) quiet_hours: Option<RawQuietHours>,
    pub(super) command: Option<Vec<String>>,
    pub(super) env: Option<Vec<String>>,
    pub(super) url: Option<SecretSource>,
    pub(super) format: Option<Format>,
    pub(super) secret: Option<SecretSource>,
    pub(super) headers: Option<BTreeMap<String, SecretSource>>,
    pub(super) allow_private: Option<bool>,
    pub(super) ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawType {
    Command,
    Webhook,
    Desktop,
    Bell,
}

/// How many messages an hour, or `off`.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "how many messages an hour, as in 30, or \"off\"")]
pub(super) enum RawRate {
    PerHour(NonZeroU32),
    Off(Off),
}

impl Default for RawRate {
    /// One every two minutes: more than that nobody reads.
    fn default() -> RawRate {
        RawRate::PerHour(const { NonZeroU32::new(30).expect("not 0") })
    }
}

/// The word `off`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Off {
    Off,
}

/// Quiet hours of one sink's own, or `off` for none.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RawQuietHours(pub(super) Option<QuietHours>);

impl TryFrom<String> for RawQuietHours {
    type Error = String;

    fn try_from(written: String) -> Result<RawQuietHours, String> {
        match written.as_str() {
            "off" => Ok(RawQuietHours(None)),
            hours => hours.parse().map(|hours| RawQuietHours(Some(hours))),
        }
    }
}

//! The cursor of a stream: how far it was read, and what was told of it that no record says.

use rekindle_domain::chain::ChainHash;
use rekindle_domain::id::{PipelineId, RunId, SessionId, StreamId};
use rekindle_domain::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::derive::ClockWatch;

/// How far a stream was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    /// The stream.
    #[serde(serialize_with = "write_stream", deserialize_with = "read_stream")]
    pub stream: StreamId,
    /// The last record that was read.
    pub seq: u64,
    /// Its hash, by which another history is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub h: Option<ChainHash>,
    /// The last record that was read and survives a power cut: what is behind it may have been lost, and others be in its place.
    #[serde(default)]
    pub sure: u64,
    /// The run whose interruption was told: that it goes on is told too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<RunId>,
    /// The stall that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_at: Option<Timestamp>,
    /// When progress was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Timestamp>,
}

impl Cursor {
    /// Returns the cursor of a stream of which nothing was read.
    pub fn new(stream: StreamId) -> Cursor {
        Cursor { stream, seq: 0, h: None, sure: 0, interrupted: None, stalled_at: None, progress_at: None }
    }

    /// Returns what the clock has told.
    pub fn watch(&self) -> ClockWatch {
        ClockWatch { stalled_at: self.stalled_at, progress_at: self.progress_at }
    }

    /// Takes in what the clock has told.
    pub fn set_watch(&mut self, watch: ClockWatch) {
        (self.stalled_at, self.progress_at) = (watch.stalled_at, watch.progress_at);
    }
}

pub(super) fn write_stream<S: Serializer>(stream: &StreamId, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(stream.as_str())
}

pub(super) fn read_stream<'de, D: Deserializer<'de>>(from: D) -> Result<StreamId, D::Error> {
    let name = String::deserialize(from)?;
    if name == StreamId::tasks().as_str() {
        return Ok(StreamId::tasks());
    }
    if let Ok(run) = name.parse::<PipelineId>() {
        return Ok(run.into());
    }
    name.parse::<SessionId>().map(StreamId::from).map_err(D::Error::custom)
}

//! Streams: the logs that one committer writes, each with a fold of its own. A session is one kind of stream, and its id is the
//! id of its stream.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{Inline, PipelineId, SessionId, ulid_of, ulid_text};

/// A kind of stream: what tells it from others in the write-ahead log, and what its ids begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKind {
    /// The byte that stands for it in the write-ahead log.
    pub byte: u8,
    /// What its ids begin with, before the first `_`.
    pub prefix: &'static str,
}

impl StreamKind {
    /// Sessions.
    pub const SESSION: StreamKind = StreamKind { byte: 1, prefix: SessionId::PREFIX };
    /// The tasks of a home, which are one stream.
    pub const TASKS: StreamKind = StreamKind { byte: 2, prefix: "tasks" };
    /// Ledgers of pipeline runs.
    pub const PIPELINE: StreamKind = StreamKind { byte: 3, prefix: PipelineId::PREFIX };

    /// Returns the stream of this kind with a name, if that is a name of this kind.
    pub fn stream(self, name: &str) -> Option<StreamId> {
        Inline::new(name, self.prefix).map(|name| StreamId { kind: self.byte, name })
    }

    /// Returns the stream of this kind whose name stands for 128 bits; the reverse of [`StreamId::to_ulid`].
    pub fn stream_from_ulid(self, bits: u128) -> Option<StreamId> {
        self.stream(&ulid_text(self.prefix, ulid::Ulid(bits)))
    }
}

/// Names a stream: its kind, and its id among that kind. The text alone tells streams apart, because prefixes differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    kind: u8,
    name: Inline,
}

impl StreamId {
    /// Returns the stream of the tasks of a home.
    pub fn tasks() -> StreamId {
        // A prefix and a word are always within the rules.
        StreamKind::TASKS.stream("tasks_home").unwrap_or_else(|| unreachable!("it is a name of its kind"))
    }

    /// Returns the byte of its kind.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the 128 bits behind the id if it is a prefix and a lowercase ULID.
    pub fn to_ulid(&self) -> Option<u128> {
        self.as_str().split_once('_').and_then(|(_, digits)| ulid_of(digits))
    }

    /// Returns the session whose log it is, if it is one.
    pub fn session(&self) -> Option<SessionId> {
        (self.kind == StreamKind::SESSION.byte).then_some(SessionId(self.name))
    }

    /// Returns the pipeline run whose ledger it is, if it is one.
    pub fn pipeline(&self) -> Option<PipelineId> {
        (self.kind == StreamKind::PIPELINE.byte).then_some(PipelineId(self.name))
    }
}

impl From<SessionId> for StreamId {
    fn from(session: SessionId) -> StreamId {
        StreamId { kind: StreamKind::SESSION.byte, name: session.0 }
    }
}

impl From<PipelineId> for StreamId {
    fn from(pipeline: PipelineId) -> StreamId {
        StreamId { kind: StreamKind::PIPELINE.byte, name: pipeline.0 }
    }
}

impl PartialEq<SessionId> for StreamId {
    fn eq(&self, session: &SessionId) -> bool {
        *self == StreamId::from(*session)
    }
}

impl Hash for StreamId {
    /// The name alone: it tells streams of all kinds apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: StreamKind = StreamKind { byte: 9, prefix: "oth" };

    #[test]
    fn a_session_is_a_stream_and_comes_back() {
        let session = SessionId::mint(1_771_668_000_000, 7);
        let stream = StreamId::from(session);
        assert_eq!((stream.kind(), stream.as_str()), (1, session.as_str()));
        assert_eq!(stream.session(), Some(session));
        assert_eq!(stream.to_ulid(), session.to_ulid());
        assert_eq!(StreamKind::SESSION.stream_from_ulid(session.to_ulid().expect("minted")), Some(stream));
        let short: SessionId = "sess_a_b".parse().expect("an id");
        assert_eq!(StreamId::from(short).to_ulid(), None);
    }

    #[test]
    fn the_ledger_of_a_pipeline_run_is_a_stream_and_comes_back() {
        let pipeline = PipelineId::mint(1_771_668_000_000, 7);
        let stream = StreamId::from(pipeline);
        assert_eq!((stream.kind(), stream.pipeline(), stream.session()), (3, Some(pipeline), None));
        assert_eq!(StreamKind::PIPELINE.stream(pipeline.as_str()), Some(stream));
        assert_eq!(StreamId::tasks().pipeline(), None);
    }

    #[test]
    fn a_stream_of_another_kind_is_no_session() {
        let other = OTHER.stream("oth_1").expect("a name of its kind");
        assert_eq!((other.kind(), other.session(), other.to_ulid()), (9, None, None));
        assert_eq!(OTHER.stream("sess_1"), None);
        assert_eq!(OTHER.stream("oth_../x"), None);
        let minted = OTHER.stream_from_ulid(5).expect("a ULID is a name");
        assert_eq!(minted.to_ulid(), Some(5));
        assert_ne!(minted, SessionId::from_ulid(5));
    }
}

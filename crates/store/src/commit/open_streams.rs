//! The streams the committer has open, in two halves, so that two threads can encode a large group: a
//! stream is always in the same half, and so its appends keep their order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use rekindle_domain::id::StreamId;

use super::open_stream::OpenStream;

/// Half of the streams. Looked into several times for each append: the hash is keyed, and made for short keys.
pub(super) type Half = HashMap<StreamId, OpenStream, RandomState>;

/// All open streams.
#[derive(Default)]
pub(super) struct OpenStreams {
    halves: [Half; 2],
}

/// Tells which half a stream is in: the last digit of an id is as good as a coin.
pub(super) fn half_of(stream: StreamId) -> usize {
    stream.as_str().bytes().last().map_or(0, |digit| usize::from(digit & 1))
}

/// Where streams are found by their id.
pub(super) trait Find {
    fn find(&mut self, stream: StreamId) -> Option<&mut OpenStream>;
}

impl Find for Half {
    fn find(&mut self, stream: StreamId) -> Option<&mut OpenStream> {
        self.get_mut(&stream)
    }
}

impl Find for OpenStreams {
    fn find(&mut self, stream: StreamId) -> Option<&mut OpenStream> {
        self.get_mut(stream)
    }
}

impl OpenStreams {
    pub(super) fn get(&self, stream: StreamId) -> Option<&OpenStream> {
        self.halves[half_of(stream)].get(&stream)
    }

    pub(super) fn get_mut(&mut self, stream: StreamId) -> Option<&mut OpenStream> {
        self.halves[half_of(stream)].get_mut(&stream)
    }

    pub(super) fn entry(&mut self, stream: StreamId) -> Entry<'_, StreamId, OpenStream> {
        self.halves[half_of(stream)].entry(stream)
    }

    pub(super) fn remove(&mut self, stream: StreamId) {
        self.halves[half_of(stream)].remove(&stream);
    }

    /// Returns one half.
    pub(super) fn half(&mut self, index: usize) -> &mut Half {
        &mut self.halves[index]
    }
}

//! What is on disk goes to the sink before it is changed: one file or link at a time.

use std::io::{self, Read};

use super::report::{LeftWhy, RestoreError};
use super::root::{Root, Seen, SeenKind};
use crate::objects::ObjectSink;
use crate::tree::{FileMode, OwnedNode, TreeBuilder};

/// How often a file that changes while it is read is read again.
const TRIES: usize = 3;

/// Captures single paths of a root.
pub(super) struct Keeper<'a> {
    pub(super) root: &'a dyn Root,
    pub(super) sink: &'a dyn ObjectSink,
}

/// What became of an attempt to capture a path.
pub(super) enum Captured {
    As(OwnedNode, Seen),
    Gone,
    Not(LeftWhy),
}

impl Keeper<'_> {
    /// Captures a file or link. One that changes while it is read is read again.
    pub(super) fn capture(&self, path: &[u8]) -> Result<Captured, RestoreError> {
        for _ in 0..TRIES {
            let found = match self.root.stat(path) {
                Ok(Some(seen)) => self.read(path, &seen).map(|node| node.map(|node| (node, seen))),
                Ok(None) => return Ok(Captured::Gone),
                Err(error) => Err(NotRead::Root(error)),
            };
            match found {
                Ok(Some((node, seen))) if self.root.stat(path).is_ok_and(|now| now == Some(seen)) => {
                    return Ok(Captured::As(node, seen));
                }
                Ok(_) => {}
                Err(NotRead::Root(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(NotRead::Root(error)) => {
                    return Ok(Captured::Not(LeftWhy::NotCaptured(error.to_string())));
                }
                Err(NotRead::Sink(source)) => {
                    return Err(RestoreError::Undo { path: path.to_vec(), source });
                }
            }
        }
        Ok(Captured::Not(LeftWhy::Changed))
    }

    /// Reads a file or link into the sink; nothing if it is no longer what was seen.
    fn read(&self, path: &[u8], seen: &Seen) -> Result<Option<OwnedNode>, NotRead> {
        match seen.kind {
            SeenKind::Link => {
                let target = self.root.read_link(path).map_err(NotRead::Root)?;
                Ok(Some(OwnedNode::Link { target }))
            }
            SeenKind::File => {
                let (reader, opened) = self.root.open(path).map_err(NotRead::Root)?;
                if opened != *seen {
                    return Ok(None);
                }
                let mut reader = NotingReader { reader, failed: false };
                let kept = self.sink.put_reader(&mut reader);
                let failed = reader.failed;
                let (content, size) =
                    kept.map_err(|error| if failed { NotRead::Root(error) } else { NotRead::Sink(error) })?;
                let mode = FileMode::from_permissions(seen.permissions);
                Ok(Some(OwnedNode::File { mode, size, content }))
            }
            SeenKind::Directory | SeenKind::Special => Ok(None),
        }
    }

    pub(super) fn keep_empty_directory(&self, path: &[u8]) -> Result<OwnedNode, RestoreError> {
        let kept = self.sink.put(TreeBuilder::new().finish().bytes());
        let tree = kept.map_err(|source| RestoreError::Undo { path: path.to_vec(), source })?;
        Ok(OwnedNode::Directory { tree })
    }
}

/// Why something could not be read into the sink.
enum NotRead {
    Root(io::Error),
    Sink(io::Error),
}

/// A reader that remembers whether it failed, so that its errors are told from the sink's.
struct NotingReader<'a> {
    reader: Box<dyn Read + 'a>,
    failed: bool,
}

impl Read for NotingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).inspect_err(|error| {
            self.failed |= error.kind() != io::ErrorKind::Interrupted;
        })
    }
}

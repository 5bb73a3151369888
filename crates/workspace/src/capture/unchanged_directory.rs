//! A directory of files that all look as they did: its tree is the one of before, and nothing has to be put together for it.

use std::os::fd::OwnedFd;

use rekindle_domain::blob_id::BlobId;
use rustix::fs::{AtFlags, readlinkat, statat};

use super::Totals;
use super::open::retry;
use crate::objects::ObjectSink;
use crate::record::{Known, RecordView};
use crate::stamp::FileStamp;

/// Longest record that is compared here, by one thread; the files of a larger directory are looked at by several.
const MAX_RECORD_BYTES: usize = 64 << 10;

/// Compares a directory whose names are those of its record with the record. Returns what is in it, without directories, if there are
/// none, every file and link is the one of before, and the sink has all of it; nothing if it has to be looked at more closely.
pub(super) fn compare(
    directory: &OwnedFd,
    known: &RecordView<'_>,
    max_file: u64,
    sink: &dyn ObjectSink,
    ids: &mut Vec<BlobId>,
) -> Option<Totals> {
    if known.bytes().len() > MAX_RECORD_BYTES {
        return None;
    }
    let mut totals = Totals::default();
    ids.clear();
    for (name, known) in known.entries() {
        match known {
            Known::Ignored | Known::IgnoredDirectory => {}
            Known::File(before, content) => {
                let stat = retry(|| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
                if FileStamp::of(&stat) != before || before.size > max_file {
                    return None;
                }
                ids.push(content);
                totals.files += 1;
                totals.bytes += before.size;
            }
            Known::Link(target) => {
                let now = retry(|| readlinkat(directory, name, Vec::new())).ok()?;
                if now.as_bytes() != target {
                    return None;
                }
                totals.links += 1;
            }
            Known::Unsettled | Known::Directory { .. } => return None,
        }
    }
    ids.push(known.tree());
    sink.reuse_all(ids).then_some(totals)
}

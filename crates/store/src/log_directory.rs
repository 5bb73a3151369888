//! Directories of logs that have one to themselves: made durably before anything is in them, so that no power cut takes a log whose
//! records were answered.

use std::io;
use std::path::Path;

use rekindle_domain::id::StreamId;

use crate::disk::Disk;
use crate::layout::Layout;

/// Makes the directory of a stream's log, and what is missing above it in the home; one that is there stays. All of it is made durable,
/// also what is there: whoever made it may have died before that.
pub(crate) fn make(disk: &dyn Disk, layout: &Layout, stream: StreamId) -> io::Result<()> {
    let log = layout.stream_log(stream);
    let missing = log.ancestors().skip(1).take_while(|directory| *directory != layout.home());
    let outermost_first: Vec<&Path> = missing.collect();
    let mut parent = layout.home();
    for directory in outermost_first.into_iter().rev() {
        disk.create_dir(directory)?;
        disk.sync_dir(parent)?;
        parent = directory;
    }
    Ok(())
}

//! What is recorded, read from outside: logs with what the write-ahead log has over them. A daemon answers before it writes its logs,
//! so that the files alone may lack the last moment of one that was killed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rekindle_store::disk::RealDisk;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;

/// Returns the log of the tasks of a home, whoever works in it: its whole lines.
pub fn tasks_log(home: &Path) -> io::Result<String> {
    let offline = Offline::open(Arc::new(RealDisk), home).map_err(io::Error::other)?;
    let reader = match offline.tasks_reader() {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let (mut lines, mut text) = (reader.forward(Cursor::START), String::new());
    while let Some(line) = lines.next()?.filter(|line| line.whole) {
        text.push_str(&String::from_utf8_lossy(line.bytes));
        text.push('\n');
    }
    Ok(text)
}

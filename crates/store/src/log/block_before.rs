//! Logs read from their end, a block at a time, so that the newest lines are found first and every byte is read about once.

use std::io;

use super::cursor::Cursor;
use super::reader::{LogReader, RawLine};

impl LogReader {
    /// Reads the lines of the block before a place, oldest first: about `size` bytes, at least one line. Returns where the block begins,
    /// which is where the next one ends.
    pub fn block_before(
        &self,
        end: Cursor,
        size: u64,
        mut visit: impl FnMut(RawLine<'_>),
    ) -> io::Result<Cursor> {
        let end = end.min(self.end());
        let mut size = size.max(1);
        loop {
            let from = end.offset().saturating_sub(size);
            let mut lines = self.forward(Cursor::at(from));
            // What the block begins with is mostly the rest of a line, which belongs to the block before.
            if from > 0 && lines.next()?.is_none_or(|rest| rest.end >= end) {
                // One line fills it.
                size = size.saturating_mul(4);
                continue;
            }
            let mut begin = None;
            while let Some(line) = lines.next()?.filter(|line| line.start < end) {
                begin.get_or_insert(line.start);
                visit(line);
            }
            return Ok(begin.unwrap_or(Cursor::START));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, RealDisk};
    use crate::line_codec::Codec;

    #[test]
    fn blocks_from_the_end_have_every_line_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let lines: Vec<String> = (0..50).map(|n| format!("{n}:{}", "x".repeat(n * n % 97))).collect();
        let file = RealDisk.open(&path, OpenMode::Replace).expect("a file");
        file.write_at(format!("{}\n", lines.join("\n")).as_bytes(), 0).expect("written");
        let reader = LogReader::open(&RealDisk, &path, Codec::Plain).expect("a log");
        for size in [1, 2, 7, 64, 100, 1000, 100_000] {
            let (mut end, mut found) = (reader.end(), Vec::new());
            while end > Cursor::START {
                let mut block = Vec::new();
                let begin = reader
                    .block_before(end, size, |line| {
                        block.push(String::from_utf8_lossy(line.bytes).into_owned())
                    })
                    .expect("read");
                assert!(begin < end && !block.is_empty(), "size {size}");
                found.extend(block.into_iter().rev());
                end = begin;
            }
            found.reverse();
            assert_eq!(found, lines, "size {size}");
        }
        let none = reader.block_before(Cursor::START, 10, |_| panic!("nothing is before the beginning"));
        assert_eq!(none.ok(), Some(Cursor::START));
    }
}

//! A small file that is written over again and again, for whoever looks: the status, the epoch. In place, because a
//! rename over an existing file makes the kernel send it to the disk, which a thousand holders would feel. A reader
//! may catch it half written and looks again; nothing rests on it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::file_ops;

/// Sizes are multiples of this, so that they change seldom.
const STEP: usize = 256;

pub(super) struct Hint {
    file: Option<File>,
    len: usize,
}

impl Hint {
    /// Makes the file; where that is not possible, nothing is ever written.
    pub(super) fn create(path: &Path) -> Hint {
        Hint { file: file_ops::create(path).ok(), len: 0 }
    }

    /// Writes one line over what is there; blanks behind it take the place of a longer one.
    pub(super) fn write(&mut self, line: &[u8]) {
        let len = (line.len() + 1).next_multiple_of(STEP).max(self.len);
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(line);
        bytes.resize(len - 1, b' ');
        bytes.push(b'\n');
        if self.file.as_ref().is_none_or(|file| file.write_all_at(&bytes, 0).is_ok()) {
            self.len = len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_line_leaves_nothing_of_a_longer_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hint");
        let mut hint = Hint::create(&path);
        for words in [1, 200, 3] {
            let line = serde_json::to_vec(&vec!["word"; words]).expect("plain data");
            hint.write(&line);
            let read: Vec<String> = crate::dir::HolderDir::read(&path).expect("readable");
            assert_eq!(read.len(), words);
        }
    }
}

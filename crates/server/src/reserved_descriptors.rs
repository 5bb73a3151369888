//! Reserved descriptors, kept back for connections: whatever else has taken what there is, a caller is answered.

use std::fs::File;

/// Connections that can be had while there is nothing left for anybody else.
const KEPT: usize = 8;

/// Reserved descriptors: open files that nobody uses, each of which makes room for a connection.
#[derive(Debug, Default)]
pub(crate) struct ReservedDescriptors(Vec<File>);

impl ReservedDescriptors {
    /// Keeps descriptors back, as far as there are any.
    pub(crate) fn fill(&mut self) {
        while self.0.len() < KEPT {
            match File::open("/dev/null") {
                Ok(file) => self.0.push(file),
                Err(_) => return,
            }
        }
    }

    /// Gives one up; tells whether there was one.
    pub(crate) fn release(&mut self) -> bool {
        self.0.pop().is_some()
    }
}

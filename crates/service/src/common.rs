//! What is told to many: it is written down once for all of them, whatever it is written down as.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

/// Something that many are told.
#[derive(Debug)]
pub struct Common<T> {
    what: T,
    written: OnceLock<Bytes>,
}

impl<T> Common<T> {
    /// Returns it written down by `write`, which whoever asks first does; everybody has to bring the same.
    pub fn written(&self, write: impl FnOnce(&T) -> Bytes) -> Bytes {
        self.written.get_or_init(|| write(&self.what)).clone()
    }
}

impl<T> From<T> for Common<T> {
    fn from(what: T) -> Common<T> {
        Common { what, written: OnceLock::new() }
    }
}

impl<T> Deref for Common<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_once_for_all() {
        let common = Common::from("words");
        assert_eq!(common.written(|words| Bytes::from(format!("<{words}>"))), "<words>");
        assert_eq!(common.written(|_| unreachable!("it is written already")), "<words>");
        assert_eq!(common.len(), 5);
    }
}

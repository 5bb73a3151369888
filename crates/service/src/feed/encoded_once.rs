//! What is told to many: it is written down once for all of them, whatever it is written down as.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

/// Something that many are told.
#[derive(Debug)]
pub struct EncodedOnce<T> {
    what: T,
    written: OnceLock<Bytes>,
}

impl<T> EncodedOnce<T> {
    /// Returns it written down by `write`, which whoever asks first does; everybody has to bring the same.
    pub fn written(&self, write: impl FnOnce(&T) -> Bytes) -> Bytes {
        self.written.get_or_init(|| write(&self.what)).clone()
    }
}

impl<T> From<T> for EncodedOnce<T> {
    fn from(what: T) -> EncodedOnce<T> {
        EncodedOnce { what, written: OnceLock::new() }
    }
}

impl<T> Deref for EncodedOnce<T> {
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
        let common = EncodedOnce::from("words");
        assert_eq!(common.written(|words| Bytes::from(format!("<{words}>"))), "<words>");
        assert_eq!(common.written(|_| unreachable!("it is written already")), "<words>");
        assert_eq!(common.len(), 5);
    }
}

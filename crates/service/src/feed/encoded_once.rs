//! A value with its encoding: made once for all who are sent it, whatever it is encoded as.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

/// A value that is encoded once.
#[derive(Debug)]
pub struct EncodedOnce<T> {
    value: T,
    encoded: OnceLock<Bytes>,
}

impl<T> EncodedOnce<T> {
    /// Returns the encoding; the first call makes it, so every caller has to bring the same `encode`.
    pub fn encoded(&self, encode: impl FnOnce(&T) -> Bytes) -> Bytes {
        self.encoded.get_or_init(|| encode(&self.value)).clone()
    }
}

impl<T> From<T> for EncodedOnce<T> {
    fn from(value: T) -> EncodedOnce<T> {
        EncodedOnce { value, encoded: OnceLock::new() }
    }
}

impl<T> Deref for EncodedOnce<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_encoded_once_for_all() {
        let value = EncodedOnce::from("words");
        assert_eq!(value.encoded(|words| Bytes::from(format!("<{words}>"))), "<words>");
        assert_eq!(value.encoded(|_| unreachable!("it is encoded already")), "<words>");
        assert_eq!(value.len(), 5);
    }
}

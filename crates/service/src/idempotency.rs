//! Idempotency keys of callers: what must happen once, however often it is asked for.

use rekindle_domain::session::MessageKey;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};

/// A caller's key for something that must happen once, and what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub key: String,
    /// The SHA-256 of the request's body.
    pub body: [u8; 32],
}

impl Key {
    /// Returns the key and what it was used for, as the log keeps them.
    pub(crate) fn as_stored(&self) -> String {
        format!("{} {}", self.key, rekindle_holder::journal::hex(&self.body))
    }

    /// Tells whether a stored key is this one; one that was used for something else is an error.
    pub(crate) fn is(&self, stored: &str) -> Result<bool> {
        if MessageKey::name(stored) != self.key {
            return Ok(false);
        }
        if stored == self.as_stored() {
            return Ok(true);
        }
        let message = format!("the key {:?} was used for another request", self.key);
        Err(ServiceError::new(Code::KeyReused, message).hint(Hint::UseNewKey))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_again_and_not_taken_for_another_request() {
        let key = |key: &str, body| Key { key: key.into(), body: [body; 32] };
        let stored = key("a", 1).as_stored();
        assert_eq!(MessageKey::name(&stored), "a");
        assert_eq!(key("a", 1).is(&stored), Ok(true));
        assert_eq!(key("b", 1).is(&stored), Ok(false));
        assert_eq!(key("a", 2).is(&stored).map_err(|error| error.code), Err(Code::KeyReused));
    }
}

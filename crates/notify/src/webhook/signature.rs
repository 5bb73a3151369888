//! The signature of a request, by which a receiver knows that it is ours and not an old one.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Returns `v1=` and the HMAC-SHA256 over `<timestamp>.<body>` as hex.
pub(super) fn sign(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length will do");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut signature = String::from("v1=");
    for byte in mac.finalize().into_bytes() {
        // A string takes everything.
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac hunter2
        let expected = "v1=56b25cbf563812b38800e5f4dd1febfde087d36841155e70b3aa285517e1570a";
        assert_eq!(sign("hunter2", "1700000000", br#"{"a":1}"#), expected);
        assert_ne!(sign("hunter2", "1700000001", br#"{"a":1}"#), expected);
        assert_ne!(sign("hunter3", "1700000000", br#"{"a":1}"#), expected);
    }
}

//! Proving to each other that both know the holder's secret, without saying it.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::Mode;
use crate::journal::{hex, unhex};

/// What holder and supervisor share; it never crosses the wire and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Takes bytes as they stand in the holder's directory.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// Returns the bytes, for the file.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What is proven: every word of the handshake that matters.
#[derive(Debug, Clone, Copy)]
pub struct Proof<'a> {
    /// The holder.
    pub holder_id: &'a str,
    /// The holder's random word.
    pub nonce: &'a str,
    /// The supervisor's random word.
    pub nonce2: &'a str,
    /// What the supervisor wants to do.
    pub mode: Mode,
    /// Which supervisor.
    pub instance: &'a str,
    /// The epoch it wants.
    pub epoch: u64,
}

impl Proof<'_> {
    /// Returns what a supervisor sends to show that it knows the secret.
    pub fn of_supervisor(&self, secret: &Secret) -> String {
        hex(&self.mac(secret, "supervisor").finalize().into_bytes())
    }

    /// Returns what a holder sends back.
    pub fn of_holder(&self, secret: &Secret) -> String {
        hex(&self.mac(secret, "holder").finalize().into_bytes())
    }

    /// Checks a supervisor's word, in constant time.
    pub fn check_supervisor(&self, secret: &Secret, word: &str) -> bool {
        unhex::<32>(word).is_some_and(|word| self.mac(secret, "supervisor").verify_slice(&word).is_ok())
    }

    /// Checks a holder's word, in constant time.
    pub fn check_holder(&self, secret: &Secret, word: &str) -> bool {
        unhex::<32>(word).is_some_and(|word| self.mac(secret, "holder").verify_slice(&word).is_ok())
    }

    fn mac(&self, secret: &Secret, who: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key of any length will do");
        let epoch = self.epoch.to_string();
        let mode = self.mode.word();
        for word in [who, self.holder_id, self.nonce, self.nonce2, mode, self.instance, &epoch] {
            // With its length, so that no two lists of words give the same bytes.
            mac.update(&(word.len() as u64).to_le_bytes());
            mac.update(word.as_bytes());
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_and_the_same_words_are_proof() {
        let proof = Proof {
            holder_id: "h_1",
            nonce: "n",
            nonce2: "m",
            mode: Mode::Control,
            instance: "boot_1",
            epoch: 3,
        };
        let (secret, other) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let word = proof.of_supervisor(&secret);
        assert!(proof.check_supervisor(&secret, &word));
        assert!(!proof.check_supervisor(&other, &word));
        assert!(!proof.check_holder(&secret, &word), "one side's word is not the other's");
        assert!(!Proof { epoch: 4, ..proof }.check_supervisor(&secret, &word));
        assert!(!Proof { nonce: "n2", ..proof }.check_supervisor(&secret, &word), "a replay");
        assert!(!Proof { nonce: "nm", nonce2: "", ..proof }.check_supervisor(&secret, &word));
        assert!(proof.check_holder(&secret, &proof.of_holder(&secret)));
        assert!(!proof.check_supervisor(&secret, ""));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}

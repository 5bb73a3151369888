//! The first sixteen bytes in each direction, frozen for ever: magic, lowest and highest version, features.

use super::WireError;

/// The version this code speaks.
pub const MAJOR: u16 = 1;

/// Length of a preamble.
pub const PREAMBLE_LEN: usize = 16;

const MAGIC: [u8; 4] = *b"RKHL";

/// Feature: the holder closes its agent's input when it is asked to.
pub const CLOSE_INPUT: u32 = 1;

/// What each side says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// The lowest version it speaks.
    pub low: u16,
    /// The highest.
    pub high: u16,
    /// What else it can do; bits that one side does not know mean nothing.
    pub features: u32,
}

impl Preamble {
    /// What this code says.
    pub const OURS: Preamble = Preamble { low: MAJOR, high: MAJOR, features: CLOSE_INPUT };

    /// Returns the bytes.
    pub fn write(self) -> [u8; PREAMBLE_LEN] {
        let mut bytes = [0; PREAMBLE_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.low.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.high.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.features.to_le_bytes());
        bytes
    }

    /// Reads the bytes. The last four are for later and may hold anything.
    pub fn read(bytes: &[u8; PREAMBLE_LEN]) -> Result<Preamble, WireError> {
        if bytes[..4] != MAGIC {
            return Err(WireError::NotOurs);
        }
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let features = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Ok(Preamble { low: u16_at(4), high: u16_at(6), features })
    }

    /// Returns the highest version that both sides speak.
    pub fn common(self, other: Preamble) -> Result<u16, WireError> {
        let high = self.high.min(other.high);
        if high < self.low.max(other.low) {
            return Err(WireError::NoCommonVersion { low: other.low, high: other.high });
        }
        Ok(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_frozen_but_for_the_features() {
        assert_eq!(Preamble::OURS.write(), *b"RKHL\x01\0\x01\0\x01\0\0\0\0\0\0\0");
    }

    #[test]
    fn newer_bits_and_bytes_are_survived_and_the_highest_common_version_wins() {
        let mut bytes = Preamble { low: 1, high: 7, features: 0xffff_ffff }.write();
        bytes[12..].copy_from_slice(b"what");
        let theirs = Preamble::read(&bytes).expect("a preamble");
        assert_eq!(Preamble::OURS.common(theirs), Ok(1));
        let newer = Preamble { low: 2, high: 3, features: 0 };
        assert_eq!(Preamble::OURS.common(newer), Err(WireError::NoCommonVersion { low: 2, high: 3 }));
        assert_eq!(Preamble::read(b"GET / HTTP/1.1\r\n"), Err(WireError::NotOurs));
    }
}

//! Hex digits as we write them: lowercase. Every record of a replay has some, so they are read without a branch for each.

/// Marks bytes that are no lowercase hex digit; any of them makes the sum of all this.
const NOT_HEX: u8 = 0xff;

const NIBBLES: [u8; 256] = {
    let mut table = [NOT_HEX; 256];
    let mut n = 0;
    while n < 16 {
        table[b"0123456789abcdef"[n] as usize] = n as u8;
        n += 1;
    }
    table
};

/// Reads as many bytes as are wanted, and no digit more; uppercase ones are not what we write.
pub(crate) fn decode<const LEN: usize>(digits: &[u8]) -> Option<[u8; LEN]> {
    if digits.len() != 2 * LEN {
        return None;
    }
    let (mut bytes, mut seen) = ([0; LEN], 0);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | (low & 0xf);
    }
    (seen != NOT_HEX).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lowercase_digits_of_the_right_number_are_read() {
        assert_eq!(decode(b"00ff1a"), Some([0x00, 0xff, 0x1a]));
        assert_eq!(decode(b""), Some([]));
        for bad in [&b"00ff1"[..], b"00ff1a0", b"00FF1a", b"00ff1g", b"00ff 1", b"\xff\xff\xff\xff\xff\xff"] {
            assert_eq!(decode::<3>(bad), None, "{bad:?}");
        }
    }
}

//! A record's header line: `TYPE SEQ TIME LENGTH CRC32C FLAGS`. The checksum covers the other five and the payload
//! behind them. Every line of an agent passes through here twice, so that nothing is copied, allocated or read twice.
//! Pure.

use super::MAX_PAYLOAD;
use crate::stamp::Stamp;

/// Longest header line; anything longer is rubbish.
pub(crate) const MAX_HEADER: usize = 512;

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// More bytes may make it one.
    Incomplete,
    /// Nothing will.
    Damaged(&'static str),
}

/// A header line as it stands there.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) kind: &'a [u8],
    pub(super) seq: u64,
    pub(super) time: Stamp,
    /// Bytes of payload.
    pub(super) length: usize,
    pub(super) flags: &'a [u8],
    /// Bytes of the line, with its newline.
    pub(super) len: usize,
    front: &'a [u8],
    crc: u32,
}

/// The time that was read last: records that were written together have the same.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: Option<([u8; 24], Stamp)>,
}

impl Times {
    fn read(&mut self, text: &[u8]) -> Option<Stamp> {
        if let Some((known, stamp)) = &self.last
            && text == known
        {
            return Some(*stamp);
        }
        let stamp = Stamp::parse(std::str::from_utf8(text).ok()?)?;
        self.last = Some((text.try_into().ok()?, stamp));
        Some(stamp)
    }
}

impl<'a> Header<'a> {
    /// Reads the line at the beginning of `bytes`.
    pub(super) fn read(bytes: &'a [u8], times: &mut Times) -> Result<Header<'a>, Unreadable> {
        let mut cursor = Cursor { bytes: &bytes[..bytes.len().min(MAX_HEADER)], at: 0 };
        let damaged = Unreadable::Damaged;
        let kind = cursor.word(b' ')?;
        let seq = number(cursor.word(b' ')?).ok_or(damaged("bad number"))?;
        let time = times.read(cursor.word(b' ')?).ok_or(damaged("bad time"))?;
        let length = number(cursor.word(b' ')?).and_then(|length| usize::try_from(length).ok());
        let front = &bytes[..cursor.at];
        let crc = unhex_digits(cursor.word(b' ')?).ok_or(damaged("bad checksum"))?;
        let flags = cursor.word(b'\n')?;
        let length = length.filter(|length| *length <= MAX_PAYLOAD).ok_or(damaged("bad length"))?;
        Ok(Header { kind, seq, time, length, flags, len: cursor.at, front, crc })
    }

    /// Tells whether the checksum is right for the payload behind the line.
    pub(super) fn fits(&self, payload: &[u8]) -> bool {
        checksum(self.front, self.flags, payload) == self.crc
    }

    /// Appends the line for a payload that follows it; `time` is a stamp as it is written.
    pub(super) fn write(
        out: &mut Vec<u8>,
        kind: &str,
        seq: u64,
        time: &[u8; 24],
        flags: &str,
        payload: &[u8],
    ) {
        let start = out.len();
        out.extend_from_slice(kind.as_bytes());
        out.push(b' ');
        push_number(out, seq);
        out.push(b' ');
        out.extend_from_slice(time);
        out.push(b' ');
        push_number(out, payload.len() as u64);
        out.push(b' ');
        let crc = checksum(&out[start..], flags.as_bytes(), payload);
        out.extend_from_slice(&hex_digits(crc));
        out.push(b' ');
        out.extend_from_slice(flags.as_bytes());
        out.push(b'\n');
    }
}

/// A place in a header line.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Takes everything up to a sign, which is taken too.
    fn word(&mut self, end: u8) -> Result<&'a [u8], Unreadable> {
        let rest = &self.bytes[self.at..];
        // Words are a few bytes long: looking at one after the other is the fastest way.
        for (len, byte) in rest.iter().enumerate() {
            if *byte == end {
                self.at += len + 1;
                return Ok(&rest[..len]);
            }
            if matches!(byte, b' ' | b'\n') {
                return Err(Unreadable::Damaged("header has too many or too few words"));
            }
        }
        Err(match self.bytes.len() < MAX_HEADER {
            true => Unreadable::Incomplete,
            false => Unreadable::Damaged("no header line"),
        })
    }
}

/// `front` is the header up to and with the space before the checksum.
fn checksum(front: &[u8], flags: &[u8], payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(front), flags);
    crc32c::crc32c_append(crc, payload)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns a number as eight lowercase hexadecimal digits.
fn hex_digits(number: u32) -> [u8; 8] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (28 - 4 * at)) as usize & 15])
}

fn unhex_digits(digits: &[u8]) -> Option<u32> {
    /// What each byte is worth; 16 for those that are no digits.
    const WORTH: [u8; 256] = {
        let mut worth = [16; 256];
        let mut value = 0;
        while value < 16 {
            worth[b"0123456789abcdef"[value as usize] as usize] = value;
            value += 1;
        }
        worth
    };
    let digits: &[u8; 8] = digits.try_into().ok()?;
    let worth = digits.map(|digit| WORTH[usize::from(digit)]);
    let all = worth.iter().all(|worth| *worth < 16);
    all.then(|| worth.iter().fold(0, |value, worth| value << 4 | u32::from(*worth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_nothing_else_is_one() {
        for value in [0, 7, 10, 1_234_567, u64::MAX] {
            let mut text = Vec::new();
            push_number(&mut text, value);
            assert_eq!((text.clone(), number(&text)), (value.to_string().into_bytes(), Some(value)));
        }
        for text in ["", "-1", "+1", "1x", "99999999999999999999"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
        for value in [0, 0x0123_abcd, u32::MAX] {
            assert_eq!(unhex_digits(&hex_digits(value)), Some(value));
        }
        assert_eq!((unhex_digits(b"0123ABCD"), unhex_digits(b"123")), (None, None));
    }

    #[test]
    fn a_time_that_was_read_before_is_no_excuse_for_another() {
        let mut times = Times::default();
        let text = Stamp(1_000).to_string();
        assert_eq!(times.read(text.as_bytes()), Some(Stamp(1_000)));
        assert_eq!(times.read(text.as_bytes()), Some(Stamp(1_000)));
        assert_eq!(times.read(Stamp(2_000).to_string().as_bytes()), Some(Stamp(2_000)));
        assert_eq!((times.read(&text.as_bytes()[1..]), times.read(b"soon")), (None, None));
    }
}

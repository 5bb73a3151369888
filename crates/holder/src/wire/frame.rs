//! Frames: length, kind, flags, a JSON header, raw bytes. A frame counts only when all of it is there.

use super::WireError;

/// Longest frame; a longer input is sent in parts.
pub const MAX_FRAME: usize = 1 << 20;

const HEAD: usize = 8;
/// Flag: whoever does not know the kind may pass the frame over.
const IGNORABLE: u8 = 1;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: u8,
    /// Whoever does not know the kind may pass it over.
    pub ignorable: bool,
    /// A JSON object.
    pub header: Vec<u8>,
    /// Raw bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Appends the frame: length of all that follows it (4 bytes), kind, flags, length of the header (2), header,
    /// payload. Numbers have their low byte first.
    pub fn write(&self, out: &mut Vec<u8>) {
        let len = HEAD - 4 + self.header.len() + self.payload.len();
        out.extend_from_slice(&(len as u32).to_le_bytes());
        out.push(self.kind);
        out.push(if self.ignorable { IGNORABLE } else { 0 });
        out.extend_from_slice(&(self.header.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.header);
        out.extend_from_slice(&self.payload);
    }
}

/// Finds frames in a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Takes in bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns how many bytes wait for the rest of their frame.
    pub fn pending(&self) -> usize {
        self.bytes.len()
    }

    /// Takes exactly so many bytes from the front, if they are there: the preamble.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let front: [u8; N] = *self.bytes.first_chunk()?;
        self.bytes.drain(..N);
        Some(front)
    }

    /// Takes the next frame, if all of it is there.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Some(head) = self.bytes.first_chunk::<HEAD>() else { return Ok(None) };
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize + 4;
        if len > MAX_FRAME {
            return Err(WireError::TooLong(len));
        }
        let (kind, ignorable) = (head[4], head[5] & IGNORABLE != 0);
        let header_len = usize::from(u16::from_le_bytes([head[6], head[7]]));
        if len < HEAD + header_len {
            return Err(WireError::Malformed { kind, why: "its header is longer than itself".into() });
        }
        if self.bytes.len() < len {
            return Ok(None);
        }
        let header = self.bytes[HEAD..HEAD + header_len].to_vec();
        let payload = self.bytes[HEAD + header_len..len].to_vec();
        self.bytes.drain(..len);
        if self.bytes.is_empty() {
            // A large frame leaves no large buffer behind.
            self.bytes = Vec::new();
        }
        Ok(Some(Frame { kind, ignorable, header, payload }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_come_back_however_they_are_cut(
            parts in proptest::collection::vec((any::<u8>(), any::<bool>(), "[a-z]{0,20}", ".{0,50}"), 0..6),
            step in 1..40_usize,
        ) {
            let frames: Vec<Frame> = parts
                .into_iter()
                .map(|(kind, ignorable, header, payload)| Frame {
                    kind,
                    ignorable,
                    header: header.into_bytes(),
                    payload: payload.into_bytes(),
                })
                .collect();
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| frame.write(&mut bytes));
            let (mut decoder, mut found) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(step) {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().expect("valid") {
                    found.push(frame);
                }
            }
            prop_assert_eq!(found, frames);
            prop_assert_eq!(decoder.pending(), 0);
        }

        #[test]
        fn arbitrary_bytes_never_panic_nor_grow(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }

    #[test]
    fn a_frame_that_claims_too_much_is_refused_before_it_is_there() {
        let mut decoder = Decoder::default();
        decoder.push(&[0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0]);
        assert!(matches!(decoder.next_frame(), Err(WireError::TooLong(_))));
    }
}

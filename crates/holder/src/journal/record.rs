//! One record: a header line that people can read, the payload's bytes as they were, a newline. Flags are words or
//! `key=value`, separated by commas, `-` for none. Pure.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::header::{Header, Times, Unreadable};
use crate::stamp::Stamp;

/// One record of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number; both directions share one sequence without gaps.
    pub seq: u64,
    /// When it was written.
    pub time: Stamp,
    /// What it says.
    pub body: Body<'a>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// A line the agent wrote to its standard output, without its newline, or part of one.
    Out {
        /// Which part of the line.
        part: Part,
        /// What is odd about it.
        flags: OutFlags,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// An accepted input, or part of one: it counts only once its last part is there.
    In {
        /// Which input. Apart, because most records are lines and should be small.
        head: Box<InputHead>,
        /// Which part of it.
        part: Part,
        /// The bytes, with their newline.
        bytes: &'a [u8],
    },
    /// The end of an input's way.
    InDone {
        /// Which input.
        input: u64,
        /// Where it ended.
        delivery: Delivery,
    },
    /// Something about the holder itself.
    Ctl(Ctl),
    /// A type that a newer holder writes.
    Unknown {
        /// The type's name.
        kind: String,
        /// Its payload.
        bytes: &'a [u8],
    },
}

/// Which part of a line or input a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its beginning.
    First,
    /// Neither beginning nor end.
    Middle,
    /// Its end.
    Last,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Part::Whole => "",
            Part::First => "first",
            Part::Middle => "cont",
            Part::Last => "last",
        }
    }
}

/// What is odd about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutFlags {
    /// The agent ended without a newline.
    pub unterminated: bool,
    /// It does not begin like a JSON object.
    pub noise: bool,
    /// It was longer than any line we keep; the rest is gone.
    pub truncated: bool,
}

/// What identifies an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputHead {
    /// Its number, from 1.
    pub input: u64,
    /// What it is for: `prompt`, `answer`, `cancel`, `setup`.
    pub kind: String,
    /// The SHA-256 of all its bytes.
    pub sha256: [u8; 32],
}

/// Where an input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// All of it is in the agent's pipe.
    Delivered,
    /// The agent closed its pipe before it had all of it.
    Failed,
}

/// Something about the holder itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ctl", rename_all = "snake_case")]
pub enum Ctl {
    /// The agent is about to be started.
    Start {
        /// Who asked.
        instance: String,
        /// Under which epoch.
        epoch: u64,
    },
    /// The agent runs.
    Started {
        /// Its process.
        pid: i32,
        /// When it started, in the kernel's ticks since boot.
        start_ticks: u64,
    },
    /// The agent could not be started.
    StartFailed {
        /// Why.
        error: String,
    },
    /// A controller was let in.
    Attach {
        /// Who.
        instance: String,
        /// Under which epoch.
        epoch: u64,
    },
    /// The controller left or was cut off.
    Detach {
        /// Why.
        reason: String,
    },
    /// Someone asked for an end.
    Stop {
        /// Why.
        reason: String,
        /// Who.
        actor: String,
    },
    /// The agent is to get nothing more than what was accepted.
    CloseInput {
        /// The last input before that.
        after: u64,
    },
    /// A signal arrived.
    Signal {
        /// Its name.
        name: String,
    },
    /// The journal could not be written, or can be again.
    Degraded {
        /// What is wrong; none when it is over.
        reason: Option<String>,
    },
    /// The agent ended.
    Exit {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// Something that a newer holder says.
    #[serde(other)]
    Other,
}

impl Record<'_> {
    /// Appends the header line for a payload that follows it; `time` is a stamp as it is written.
    pub(super) fn write_header(
        out: &mut Vec<u8>,
        seq: u64,
        time: &[u8; 24],
        body: &Body<'_>,
        payload: &[u8],
    ) {
        let kind = match body {
            Body::Out { .. } => "OUT",
            Body::In { .. } => "IN",
            Body::InDone { .. } => "IN_DONE",
            Body::Ctl(_) => "CTL",
            Body::Unknown { kind, .. } => kind,
        };
        Header::write(out, kind, seq, time, &flags_text(body), payload);
    }

    /// Reads the record at the beginning of `bytes`; returns it with its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Record<'_>, usize), Unreadable> {
        let (record, payload, len) = Record::scan(bytes, &mut Times::default())?;
        Ok((record.with_bytes(&bytes[payload]), len))
    }

    /// Like [`Record::read`], but says where the bytes are instead of lending them.
    pub(super) fn scan(
        bytes: &[u8],
        times: &mut Times,
    ) -> Result<(Record<'static>, Range<usize>, usize), Unreadable> {
        let header = Header::read(bytes, times)?;
        let (start, end) = (header.len, header.len + header.length);
        let Some(payload) = bytes.get(start..=end) else { return Err(Unreadable::Incomplete) };
        let (payload, newline) = payload.split_at(header.length);
        if newline != b"\n" || !header.fits(payload) {
            return Err(Unreadable::Damaged("checksum does not match"));
        }
        let body = read_body(header.kind, header.flags, payload).ok_or(Unreadable::Damaged("bad flags"))?;
        Ok((Record { seq: header.seq, time: header.time, body }, start..end, end + 1))
    }

    /// Returns the record with its bytes.
    pub(crate) fn with_bytes(self, bytes: &[u8]) -> Record<'_> {
        let body = match self.body {
            Body::Out { part, flags, .. } => Body::Out { part, flags, bytes },
            Body::In { head, part, .. } => Body::In { head, part, bytes },
            Body::Unknown { kind, .. } => Body::Unknown { kind, bytes },
            Body::InDone { input, delivery } => Body::InDone { input, delivery },
            Body::Ctl(ctl) => Body::Ctl(ctl),
        };
        Record { seq: self.seq, time: self.time, body }
    }
}

fn flags_text(body: &Body<'_>) -> Cow<'static, str> {
    const PLAIN: OutFlags = OutFlags { unterminated: false, noise: false, truncated: false };
    if let Body::Out { part: Part::Whole, flags: PLAIN, .. } = body {
        return "-".into();
    }
    let mut flags = String::new();
    let mut push = |flag: &str| {
        if !flag.is_empty() {
            if !flags.is_empty() {
                flags.push(',');
            }
            flags.push_str(flag);
        }
    };
    match body {
        Body::Out { part, flags: odd, .. } => {
            push(part.word());
            for (set, word) in
                [(odd.unterminated, "unterminated"), (odd.noise, "noise"), (odd.truncated, "truncated")]
            {
                push(if set { word } else { "" });
            }
        }
        Body::In { head, part, .. } => {
            push(&format!("input={},kind={},sha256={}", head.input, head.kind, hex(&head.sha256)));
            push(part.word());
        }
        Body::InDone { input, delivery } => {
            push(&format!("input={input}"));
            push(match delivery {
                Delivery::Delivered => "delivered",
                Delivery::Failed => "failed",
            });
        }
        Body::Ctl(_) | Body::Unknown { .. } => {}
    }
    if flags.is_empty() { "-".into() } else { flags.into() }
}

/// Flags this version does not know are passed over: a newer holder may add some.
fn read_body(kind: &[u8], flags: &[u8], payload: &[u8]) -> Option<Body<'static>> {
    let bytes: &'static [u8] = b"";
    if (kind, flags) == (b"OUT", b"-") {
        return Some(Body::Out { part: Part::Whole, flags: OutFlags::default(), bytes });
    }
    let (kind, flags) = (std::str::from_utf8(kind).ok()?, std::str::from_utf8(flags).ok()?);
    let has = |word: &str| flags.split(',').any(|flag| flag == word);
    let value = |key: &str| {
        flags.split(',').find_map(|flag| flag.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')))
    };
    let part = match (has("first"), has("cont"), has("last")) {
        (true, _, _) => Part::First,
        (_, true, _) => Part::Middle,
        (_, _, true) => Part::Last,
        _ => Part::Whole,
    };
    Some(match kind {
        "OUT" => Body::Out {
            part,
            flags: OutFlags {
                unterminated: has("unterminated"),
                noise: has("noise"),
                truncated: has("truncated"),
            },
            bytes,
        },
        "IN" => Body::In {
            head: Box::new(InputHead {
                input: value("input")?.parse().ok()?,
                kind: value("kind")?.into(),
                sha256: unhex(value("sha256")?)?,
            }),
            part,
            bytes,
        },
        "IN_DONE" => Body::InDone {
            input: value("input")?.parse().ok()?,
            delivery: if has("delivered") { Delivery::Delivered } else { Delivery::Failed },
        },
        "CTL" => Body::Ctl(serde_json::from_slice(payload).unwrap_or(Ctl::Other)),
        other => Body::Unknown { kind: other.into(), bytes },
    })
}

/// Returns bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads exactly so many bytes from hexadecimal digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(body: &Body<'_>) -> Vec<u8> {
        let ctl;
        let payload = match body {
            Body::Out { bytes, .. } | Body::In { bytes, .. } | Body::Unknown { bytes, .. } => bytes,
            Body::InDone { .. } => &b""[..],
            Body::Ctl(said) => {
                ctl = serde_json::to_vec(said).expect("plain data");
                &ctl
            }
        };
        let mut header = Vec::new();
        Record::write_header(&mut header, 7, &Stamp(1_000).text(), body, payload);
        [&header, payload, b"\n"].concat()
    }

    #[test]
    fn a_record_is_readable_by_people() {
        let out = Body::Out {
            part: Part::Whole,
            flags: OutFlags { noise: true, ..OutFlags::default() },
            bytes: b"hello",
        };
        let text = String::from_utf8(written(&out)).expect("text");
        assert_eq!(text, "OUT 7 1970-01-01T00:00:01.000Z 5 640167b0 noise\nhello\n");
    }

    #[test]
    fn every_kind_of_record_comes_back() {
        let head = Box::new(InputHead { input: 3, kind: "prompt".into(), sha256: [0xab; 32] });
        let bodies = [
            Body::Out { part: Part::First, flags: OutFlags::default(), bytes: b"{\"a\":1}" },
            Body::Out {
                part: Part::Last,
                flags: OutFlags { unterminated: true, noise: false, truncated: true },
                bytes: b"\n\xff\n",
            },
            Body::In { head: head.clone(), part: Part::Whole, bytes: b"{}\n" },
            Body::In { head, part: Part::Middle, bytes: b"" },
            Body::InDone { input: 3, delivery: Delivery::Delivered },
            Body::InDone { input: 4, delivery: Delivery::Failed },
            Body::Ctl(Ctl::Exit { code: Some(0), signal: None }),
            Body::Unknown { kind: "NEW".into(), bytes: b"?" },
        ];
        for body in bodies {
            let bytes = written(&body);
            let (record, len) = Record::read(&bytes).expect("a record");
            assert_eq!((record.seq, record.time, &record.body, len), (7, Stamp(1_000), &body, bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(Record::read(&bytes[..cut]), Err(Unreadable::Incomplete), "cut at {cut}");
            }
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let body = Body::In {
            head: Box::new(InputHead { input: 3, kind: "prompt".into(), sha256: [0xab; 32] }),
            part: Part::First,
            bytes: b"some payload",
        };
        let bytes = written(&body);
        for index in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[index / 8] ^= 1 << (index % 8);
            assert!(Record::read(&bad).is_err(), "bit {index}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Record::read(&bytes);
        }
    }
}

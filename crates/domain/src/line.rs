//! One record as one line of a log: how it is written, and how it is taken apart again.
//!
//! `{"seq":7,"ts":"…","kind":"run.started",` payload `,"more":true,"at":"…","src":["h_…",5,0,6],"h":"…"}`. The
//! fixed order makes position, source and hash readable without parsing the payload. `more` says that the next
//! record belongs to the same append, so that half an append is recognised in the log alone. `at` is the journal's
//! time of what a record was derived from, where that is not the time of writing.

use serde::{Deserialize, Serialize};

use crate::chain::{ChainHash, Link};
use crate::event::{Event, ForkedFrom, Kind};
use crate::id::{HolderId, StreamId};
use crate::time::Timestamp;

/// Length of `,"h":"0123456789abcdef"}`.
const HASH_SUFFIX: usize = 24;
const MORE: &[u8] = br#","more":true"#;
const SOURCE: &[u8] = br#","src":["#;
const AT: &str = r#","at":""#;
/// Length of a time as we write it, `2026-02-21T10:00:00.000Z`.
const TIME: usize = 24;

/// Where a record was derived from: the n-th of those derived from journal record `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source(
    /// The holder whose journal it is.
    pub HolderId,
    /// The journal record.
    pub u64,
    /// Which of the records derived from it.
    pub u64,
    /// The oldest journal record whose effect is not wholly logged yet.
    pub u64,
);

/// An event on its way into a log: everything but its place there.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What happened.
    pub event: Event<'static>,
    /// Where it was derived from.
    pub source: Option<Source>,
    /// The journal's time of what it was derived from.
    pub at: Option<Timestamp>,
}

impl<E: Into<Event<'static>>> From<E> for Draft {
    fn from(event: E) -> Draft {
        Draft { event: event.into(), source: None, at: None }
    }
}

/// The envelope of a record: its number, its times, and whether its list goes on after it.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Its number, from 1.
    pub seq: u64,
    /// Its time, as it is written.
    pub ts: &'a str,
    /// When it happened, if that was another time; written only beside a source.
    pub at: Option<Timestamp>,
    /// The next record belongs to the same append.
    pub more: bool,
}

/// Appends a record and its newline to `out` and returns its hash.
pub fn write(
    draft: &Draft,
    place: Envelope<'_>,
    link: Link,
    out: &mut Vec<u8>,
) -> Result<ChainHash, WriteError> {
    let start = out.len();
    out.extend_from_slice(br#"{"seq":"#);
    write_number(out, place.seq);
    out.extend_from_slice(br#","ts":""#);
    out.extend_from_slice(place.ts.as_bytes());
    out.extend_from_slice(br#"","kind":""#);
    out.extend_from_slice(draft.event.name().as_bytes());
    out.extend_from_slice(br#"","#);
    let fields = out.len();
    if let Err(source) = draft.event.write_fields(out) {
        out.truncate(start);
        return Err(WriteError { kind: draft.event.name().to_owned(), source });
    }
    // `{a,b}` becomes `a,b`; an empty payload leaves no comma behind.
    out.pop();
    out.remove(fields);
    if out.len() == fields {
        out.pop();
    }
    if place.more {
        out.extend_from_slice(MORE);
    }
    if let (Some(at), Some(_)) = (place.at, draft.source) {
        out.extend_from_slice(AT.as_bytes());
        out.extend_from_slice(at.to_string().as_bytes());
        out.push(b'"');
    }
    if let Some(Source(holder, seq, n, low)) = draft.source {
        out.extend_from_slice(SOURCE);
        out.push(b'"');
        out.extend_from_slice(holder.as_str().as_bytes());
        out.push(b'"');
        for number in [seq, n, low] {
            out.push(b',');
            write_number(out, number);
        }
        out.push(b']');
    }
    let hash = link.hash(&out[start..]);
    out.extend_from_slice(br#","h":""#);
    out.extend_from_slice(&hash.to_hex());
    out.extend_from_slice(b"\"}\n");
    Ok(hash)
}

/// Writes a number in decimal.
fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A payload that cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a record of kind {kind}")]
pub struct WriteError {
    kind: String,
    #[source]
    source: serde_json::Error,
}

/// A line taken apart without parsing its payload.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its number.
    pub seq: u64,
    /// Its time, as written.
    pub ts: &'a str,
    /// The journal's time of what it was derived from, if that is another.
    pub at: Option<Timestamp>,
    /// Its kind's name.
    pub kind: &'a str,
    /// Where it was derived from.
    pub source: Option<Source>,
    /// The next record belongs to the same append.
    pub more: bool,
    /// Its hash; legacy lines have none.
    pub hash: Option<ChainHash>,
    /// The whole line without its newline.
    pub text: &'a str,
}

/// Why a line is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// It is not UTF-8.
    #[error("the line is not UTF-8")]
    NotText,
    /// It is not a JSON object with `seq`, `ts` and `kind`.
    #[error("the line is not a record: {0}")]
    NotRecord(String),
}

impl<'a> Line<'a> {
    /// Takes a line apart; `bytes` is without the newline.
    pub fn parse(bytes: &'a [u8]) -> Result<Line<'a>, BadLine> {
        let text = std::str::from_utf8(bytes).map_err(|_| BadLine::NotText)?;
        let (body, hash) = split_hash(text);
        if let (Some((seq, ts, kind)), Some(_)) = (read_head(text), hash) {
            let (source, rest) = split_source(body);
            let (at, rest) = if source.is_some() { split_time(rest) } else { (None, rest) };
            let more = rest.as_bytes().ends_with(MORE);
            return Ok(Line { seq, ts, at, kind, source, more, hash, text });
        }
        Line::read_slow(text, hash)
    }

    /// Reads a line whose fields stand in another order: one that an older or foreign writer made.
    fn read_slow(text: &'a str, hash: Option<ChainHash>) -> Result<Line<'a>, BadLine> {
        #[derive(Deserialize)]
        struct Whole<'a> {
            seq: u64,
            ts: &'a str,
            kind: &'a str,
            #[serde(default)]
            src: Option<Source>,
            #[serde(default, borrow)]
            at: Option<&'a serde_json::value::RawValue>,
            #[serde(default)]
            more: bool,
        }
        let whole: Whole<'a> =
            serde_json::from_str(text).map_err(|error| BadLine::NotRecord(error.to_string()))?;
        let Whole { seq, ts, kind, src, at, more } = whole;
        // Without a source it is a field of some other writer's, whatever it may mean there.
        let at = at.filter(|_| src.is_some()).and_then(|at| serde_json::from_str(at.get()).ok());
        Ok(Line { seq, ts, at, kind, source: src, more, hash, text })
    }

    /// Returns the bytes the hash covers.
    pub fn hashed_bytes(&self) -> &'a [u8] {
        let len = if self.hash.is_some() { self.text.len() - HASH_SUFFIX } else { self.text.len() };
        &self.text.as_bytes()[..len]
    }

    /// Returns where this record goes on from the history of another session, if it is the first of a fork's own.
    pub fn forked_from(&self) -> Option<ForkedFrom> {
        #[derive(Deserialize)]
        struct Beginning {
            #[serde(default)]
            forked_from: Option<ForkedFrom>,
        }
        if self.kind != Kind::SessionCreated.as_str() {
            return None;
        }
        serde_json::from_str::<Beginning>(self.text).ok()?.forked_from
    }

    /// Tells whether this record continues a history; lines without a hash never do. The first record of a fork says itself which
    /// hash it continues.
    pub fn follows(&self, stream: impl Into<StreamId>, last: Option<ChainHash>) -> bool {
        let last = last.or_else(|| self.forked_from()?.h);
        self.hash.is_some_and(|hash| Link::new(stream, last).fits(self.hashed_bytes(), hash))
    }

    /// Reads the payload.
    pub fn event(&self) -> Result<Event<'a>, serde_json::Error> {
        Event::read(self.kind, self.text)
    }

    /// Reads the time of writing; one that cannot be read is the epoch, so that order never hangs on it.
    pub fn time(&self) -> Timestamp {
        self.ts.parse().unwrap_or_default()
    }

    /// Returns when it happened: the journal's time where there is one, else the time of writing.
    pub fn happened_at(&self) -> Timestamp {
        self.at.unwrap_or_else(|| self.time())
    }
}

/// Reads the number of a record from the fixed beginning of its line, and nothing else.
pub fn peek_seq(bytes: &[u8]) -> Option<u64> {
    let (seq, rest) = digits(bytes.strip_prefix(br#"{"seq":"#)?)?;
    rest.starts_with(b",").then_some(seq)
}

/// Reads the fields at the beginning of every record: number, time, kind.
fn read_head(text: &str) -> Option<(u64, &str, &str)> {
    let (seq, rest) = digits(text.as_bytes().strip_prefix(br#"{"seq":"#)?)?;
    let rest = &text[text.len() - rest.len()..];
    let (ts, rest) = rest.strip_prefix(r#","ts":""#)?.split_once('"')?;
    let (kind, _) = rest.strip_prefix(r#","kind":""#)?.split_once('"')?;
    (!ts.contains('\\') && !kind.contains('\\')).then_some((seq, ts, kind))
}

fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = bytes[..len]
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (len > 0).then_some((value, &bytes[len..]))
}

fn split_hash(text: &str) -> (&str, Option<ChainHash>) {
    let bytes = text.as_bytes();
    let hash = bytes.len().checked_sub(HASH_SUFFIX).and_then(|at| {
        let digits = bytes[at..].strip_prefix(br#","h":""#)?.strip_suffix(br#""}"#)?;
        // The bytes before are a character boundary: a comma begins the suffix.
        Some((&text[..at], ChainHash::from_hex(digits)?))
    });
    hash.map_or((text, None), |(body, hash)| (body, Some(hash)))
}

/// Takes `,"src":[…]` off the end of a body. Inside a string its quotes would be escaped, inside a nested
/// object a brace would follow: at the very end it can only be the record's own.
fn split_source(body: &str) -> (Option<Source>, &str) {
    let read = || {
        let inside = body.strip_suffix(']')?;
        let open = inside.bytes().rposition(|byte| byte == b'[')?;
        let at = (open + 1).checked_sub(SOURCE.len())?;
        let list =
            inside[open + 1..].strip_prefix('"').filter(|_| &inside.as_bytes()[at..=open] == SOURCE)?;
        let (holder, numbers) = list.split_once('"')?;
        let (seq, rest) = digits(numbers.as_bytes().strip_prefix(b",")?)?;
        let (n, rest) = digits(rest.strip_prefix(b",")?)?;
        let (low, rest) = digits(rest.strip_prefix(b",")?)?;
        rest.is_empty().then_some((Source(holder.parse().ok()?, seq, n, low), at))
    };
    match read() {
        Some((source, at)) => (Some(source), &body[..at]),
        None => (None, body),
    }
}

/// Takes `,"at":"…"` off the end of a body whose source was taken off. No payload of ours ends in such a field of its own.
fn split_time(body: &str) -> (Option<Timestamp>, &str) {
    let read = || {
        let from = body.len().checked_sub(AT.len() + TIME + 1)?;
        let time = body.get(from..)?.strip_prefix(AT)?.strip_suffix('"')?;
        Some((time.parse().ok()?, &body[..from]))
    };
    read().map_or((None, body), |(at, rest)| (Some(at), rest))
}

#[cfg(test)]
mod tests;

//! Harm to session logs.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use rekindle_domain::chain::Link;
use rekindle_domain::event::AgentNotice;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::{self, Draft, Envelope, Line};
use rekindle_store::layout::Layout;

use super::{Done, Target, read, write};

/// A log taken apart.
struct Log {
    session: SessionId,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where its lines are, newlines included.
    lines: Vec<Range<usize>>,
}

impl Log {
    fn open(layout: &Layout, session: SessionId) -> anyhow::Result<Log> {
        let path = layout.log(session);
        let bytes = read(&path)?;
        let mut lines = Vec::new();
        let mut start = 0;
        for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1) {
            lines.push(start..end);
            start = end;
        }
        Ok(Log { session, path, bytes, lines })
    }

    /// Chooses a line that is neither the first nor the last.
    fn middle(&self, target: &mut Target) -> usize {
        1 + target.rng.index(self.lines.len() - 2)
    }

    fn done(self, byte: usize, line: usize, what: String) -> anyhow::Result<Done> {
        write(&self.path, &self.bytes)?;
        Ok(Done { path: self.path, byte: Some(byte as u64), line: Some(line as u64 + 1), what })
    }
}

fn pick(target: &mut Target) -> anyhow::Result<Log> {
    let long = |layout: &Layout, session| Log::open(layout, session).is_ok_and(|log| log.lines.len() >= 4);
    let session = target.pick(long)?;
    Log::open(&target.layout, session)
}

pub(super) fn torn_tail(target: &mut Target) -> anyhow::Result<Done> {
    let mut log = pick(target)?;
    let (end, count) = (log.bytes.len(), log.lines.len());
    let last = log.lines[count - 1].clone();
    let half = log.bytes[last.start..last.start + last.len() / 2].to_vec();
    log.bytes.extend_from_slice(&half);
    let what = format!("appended {} bytes of half a record behind byte {end}", half.len());
    log.done(end, count, what)
}

pub(super) fn flipped_byte(target: &mut Target) -> anyhow::Result<Done> {
    let mut log = pick(target)?;
    let line = log.middle(target);
    let range = log.lines[line].clone();
    // Not the newline, and not into one.
    let at = range.start + target.rng.index(range.len() - 1);
    let old = log.bytes[at];
    log.bytes[at] ^= 0x01;
    let what = format!("byte {at} in line {} was {old:#04x} and is {:#04x}", line + 1, log.bytes[at]);
    log.done(range.start, line, what)
}

pub(super) fn missing_record(target: &mut Target) -> anyhow::Result<Done> {
    let mut log = pick(target)?;
    let line = log.middle(target);
    let range = log.lines[line].clone();
    log.bytes.drain(range.clone());
    let what = format!("took line {} out, {} bytes at byte {}", line + 1, range.len(), range.start);
    log.done(range.start, line, what)
}

pub(super) fn duplicate_record(target: &mut Target) -> anyhow::Result<Done> {
    let mut log = pick(target)?;
    let line = log.middle(target);
    let range = log.lines[line].clone();
    let copy = log.bytes[range.clone()].to_vec();
    log.bytes.splice(range.end..range.end, copy);
    let what = format!("put line {} there twice, the second at byte {}", line + 1, range.end);
    log.done(range.end, line + 1, what)
}

pub(super) fn half_list(target: &mut Target) -> anyhow::Result<Done> {
    let mut log = pick(target)?;
    let (end, count) = (log.bytes.len(), log.lines.len());
    let range = log.lines[count - 1].clone();
    let last = Line::parse(&log.bytes[range.start..range.end - 1]).context("the last line is no record")?;
    let (seq, ts, hash) = (last.seq + 1, last.ts.to_owned(), last.hash);
    let text = Some("the first of a list".into());
    let draft = Draft::from(AgentNotice { run_id: None, what: "noise".into(), text, raw: None });
    let place = Envelope { seq, ts: &ts, at: None, more: true };
    let mut record = Vec::new();
    line::write(&draft, place, Link::new(log.session, hash), &mut record)?;
    log.bytes.extend_from_slice(&record);
    let what = format!("appended record {seq}, the first of a list without its end, behind byte {end}");
    log.done(end, count, what)
}

pub(super) fn cut_below_snapshot(target: &mut Target) -> anyhow::Result<Done> {
    let fits = |layout: &Layout, session| {
        layout.snapshot(session).is_file() && Log::open(layout, session).is_ok_and(|log| log.lines.len() >= 4)
    };
    let session = target.pick(fits)?;
    let mut log = Log::open(&target.layout, session)?;
    let snapshot: serde_json::Value = serde_json::from_slice(&read(&target.layout.snapshot(session))?)?;
    let reach = snapshot["log_offset"].as_u64().context("the snapshot says no offset")?;
    let line = log.lines.len() / 2;
    let end = log.lines[line].start;
    ensure!((end as u64) < reach, "the snapshot is too early");
    log.bytes.truncate(end);
    log.done(end, line, format!("cut the log at byte {end}; its snapshot reaches byte {reach}"))
}

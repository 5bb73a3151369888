//! I3, I12, I14: the log itself. Numbers, hashes, what was seen of it before, what a subscriber heard, and that a daemon who
//! finds nothing to do adds nothing.

use std::collections::BTreeMap;

use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;

use super::super::ledger::{Heard, is_fleeting};
use super::super::matrix::Check;
use super::Evidence;

pub(super) fn judge(evidence: &Evidence) -> Vec<Check> {
    let broken = chain(evidence);
    let mut checks = vec![Check::that(3, broken.is_none(), || broken.unwrap_or_default())];
    let hashes: BTreeMap<u64, String> = evidence.lines.iter().filter_map(|line| place(line)).collect();
    for (seq, hash) in &evidence.witnesses {
        let found = hashes.get(seq);
        checks.push(Check::that(3, found == Some(hash), || match found {
            Some(found) => format!("record {seq} was {hash} and is {found}"),
            None => format!("record {seq} ({hash}) was on disk and is gone"),
        }));
    }
    checks.extend(subscriber(evidence, &hashes));
    if let Some(after) = &evidence.after_restart {
        let last = evidence.lines.iter().rfind(|line| !comes_by_itself(line)).and_then(|line| place(line));
        checks.push(Check::that(14, last.as_ref() == Some(after), || {
            let before = last.map_or(0, |(seq, _)| seq);
            format!("nothing was to be done, and a new daemon left record {} instead of {before}", after.0)
        }));
    }
    checks.push(Check::that(14, evidence.ledger.stuck.is_none(), || {
        evidence.ledger.stuck.clone().unwrap_or_default()
    }));
    checks
}

/// Returns a line's number and hash.
pub(in super::super) fn place(line: &str) -> Option<(u64, String)> {
    let line = Line::parse(line.as_bytes()).ok()?;
    let hash = line.hash?.to_hex();
    Some((line.seq, String::from_utf8_lossy(&hash).into_owned()))
}

/// Returns where the log is no chain of records without gaps.
fn chain(evidence: &Evidence) -> Option<String> {
    let session: SessionId = evidence.id.parse().ok()?;
    let mut last = None;
    for (at, text) in evidence.lines.iter().enumerate() {
        let expected = at as u64 + 1;
        let line = match Line::parse(text.as_bytes()) {
            Ok(line) => line,
            Err(bad) => return Some(format!("line {expected}: {bad}")),
        };
        if line.seq != expected {
            return Some(format!("line {expected} is record {}", line.seq));
        }
        if !line.follows(session, last) {
            return Some(format!("record {expected} does not follow the one before: its hash is another"));
        }
        last = line.hash;
    }
    if evidence.lines.is_empty() { Some("the log is empty or gone".into()) } else { None }
}

/// A subscriber hears every record once and in order, across daemons; only a power cut takes something back, and says so.
fn subscriber(evidence: &Evidence, hashes: &BTreeMap<u64, String>) -> Vec<Check> {
    if evidence.heard.is_empty() {
        return Vec::new();
    }
    let lives: Vec<&[Heard]> = evidence.heard.split(|heard| *heard == Heard::Reset).collect();
    let resets = lives.len() - 1;
    let (mut next, mut order, mut untrue) = (1, None, None);
    for (at, life) in lives.iter().enumerate() {
        next = 1;
        for heard in *life {
            let Heard::Record { seq, hash, kind } = heard else { continue };
            if *seq != next && order.is_none() {
                order = Some(format!("a subscriber heard record {seq} where {next} was to come"));
            }
            next = seq + 1;
            let taken_back = evidence.power_cut && at < resets && is_fleeting(kind);
            if hashes.get(seq) != Some(hash) && !taken_back {
                untrue =
                    Some(format!("a subscriber heard {kind} as record {seq}, which the log does not have"));
            }
        }
    }
    let last = evidence.lines.len() as u64;
    let missed = (next <= last).then(|| format!("a subscriber heard up to record {} of {last}", next - 1));
    let wrong = order.or(untrue).or(missed);
    vec![
        Check::that(3, wrong.is_none(), || wrong.unwrap_or_default()),
        Check::that(12, resets == 0 || evidence.power_cut, || {
            "a subscriber was told to begin again although nothing was lost".into()
        }),
    ]
}

/// Tells whether a line is one that a daemon adds some time after a run, with nobody asking: a checkpoint of its end, a snapshot.
pub(in super::super) fn comes_by_itself(line: &str) -> bool {
    ["\"kind\":\"run.checkpoint\"", "\"kind\":\"snapshot."].iter().any(|kind| line.contains(kind))
}

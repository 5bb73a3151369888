//! Folding a log record by record: chain, numbers, state and tokens in one pass.
//!
//! The caller brings lines and their offsets; this decides what they mean. What cannot follow is reported
//! and the fold goes on; what breaks the chain stops it, because nothing after it can be trusted by itself.

use crate::event::{Effect, Event, ForkedFrom, Kind, legacy};
use crate::id::{SessionId, StreamId};
use crate::line::{BadLine, Line};
use crate::session::{Position, SessionState};
use crate::time::Timestamp;
use crate::token::TokenIndex;

/// What is wrong with a record that breaks the history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line is no record.
    #[error(transparent)]
    BadLine(#[from] BadLine),
    /// A number is missing or comes twice.
    #[error("found record {found} where {expected} was expected")]
    Sequence {
        /// The number that belongs here.
        expected: u64,
        /// The one that stands here.
        found: u64,
    },
    /// The hash does not fit the record and what came before it.
    #[error("the hash of record {seq} does not match")]
    Hash {
        /// The record.
        seq: u64,
    },
    /// A line without a hash after one with a hash.
    #[error("record {seq} has no hash, but an earlier one has")]
    Unhashed {
        /// The record.
        seq: u64,
    },
}

impl Position {
    /// Returns where a history has come to with this line, which ends at byte `end` of the log (its newline included).
    pub fn after(&self, stream: impl Into<StreamId>, line: &Line<'_>, end: u64) -> Result<Position, Problem> {
        let next = self.after_unverified(line, end)?;
        if line.hash.is_some() && !line.follows(stream, self.base_of(line).last_hash) {
            return Err(Problem::Hash { seq: line.seq });
        }
        Ok(next)
    }

    /// Returns where the history before a line has come to: before the first line of a log nowhere, unless it is the first of a
    /// fork's own, which goes on from another log.
    fn base_of(&self, line: &Line<'_>) -> Position {
        let forked = if self.log_offset == 0 { line.forked_from() } else { None };
        forked.map_or(*self, |from| Position::forked(&from))
    }

    /// Returns the position before the first of a fork's own records.
    pub fn forked(from: &ForkedFrom) -> Position {
        Position { last_seq: from.seq, log_offset: 0, last_hash: from.h }
    }

    /// The same for a line whose hash is verified by somebody else.
    ///
    /// Legacy lines carry no hash and may begin at any number, but only before the first line with one.
    pub fn after_unverified(&self, line: &Line<'_>, end: u64) -> Result<Position, Problem> {
        let base = self.base_of(line);
        let legacy_start = base == Position::default() && line.hash.is_none();
        // A number from a disk may be the largest there is: nothing follows that one.
        if base.last_seq.checked_add(1) != Some(line.seq) && !legacy_start {
            return Err(Problem::Sequence { expected: base.last_seq.saturating_add(1), found: line.seq });
        }
        if line.hash.is_none() && base.last_hash.is_some() {
            return Err(Problem::Unhashed { seq: line.seq });
        }
        Ok(Position { last_seq: line.seq, log_offset: end, last_hash: line.hash })
    }
}

/// A fold in progress over one session's log.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The state so far.
    pub state: SessionState,
    /// The tokens so far, if they are wanted.
    pub tokens: Option<TokenIndex>,
    /// Records that cannot follow what came before them, with the reason; the first hundred.
    pub oddities: Vec<(u64, String)>,
    /// The end of the last whole list: where a log may be cut without leaving half an append.
    pub whole: Position,
    /// Records about tools that have not been folded yet, if they may be put off.
    deferred: Option<Deferred>,
}

/// Records about the tools of a run that may still be open. Most runs of a log have ended, and then nothing
/// of their tools is left in the state: such records need not be parsed at all.
#[derive(Debug, Clone, Default)]
struct Deferred {
    text: String,
    records: Vec<(u64, Timestamp, Kind, std::ops::Range<usize>)>,
}

/// Bounds what is put off; a run with more tool records than this is folded as it goes.
const MAX_DEFERRED: usize = 1 << 20;

/// Bounds the list of oddities: a log full of them is told by its first ones.
const MAX_ODDITIES: usize = 100;

impl Replay {
    /// Begins before the first record.
    pub fn new(session: SessionId) -> Replay {
        Replay::from(SessionState::empty(session), Some(TokenIndex::empty(session)))
    }

    /// Begins where caches have come to. Tokens may be behind or ahead of the state.
    pub fn from(state: SessionState, tokens: Option<TokenIndex>) -> Replay {
        let whole = state.position();
        Replay { state, tokens, oddities: Vec::new(), whole, deferred: None }
    }

    /// Puts off records about tools until [`Replay::settle`], which must be called before the state is used.
    pub fn deferring_tools(mut self) -> Replay {
        self.deferred = Some(Deferred::default());
        self
    }

    /// Folds what was put off.
    pub fn settle(&mut self) {
        let Some(Deferred { text, records }) = self.deferred.as_mut().map(std::mem::take) else { return };
        for (seq, ts, kind, range) in records {
            match Event::read(kind.as_str(), &text[range]) {
                Ok(event) => {
                    if let Err(illegal) = self.state.apply(seq, ts, &event) {
                        self.add_oddity(seq, illegal.to_string());
                    }
                }
                Err(error) => self.add_oddity(seq, format!("cannot read {}: {error}", kind.as_str())),
            }
        }
    }

    /// Puts a record off if it may be; tells whether it was.
    fn defer(&mut self, kind: Option<Kind>, line: &Line<'_>, ts: Timestamp) -> bool {
        let (Some(deferred), Some(kind @ (Kind::ToolCall | Kind::ToolUpdate))) = (&mut self.deferred, kind)
        else {
            return false;
        };
        let start = deferred.text.len();
        deferred.text.push_str(line.text);
        deferred.records.push((line.seq, ts, kind, start..deferred.text.len()));
        if deferred.text.len() > MAX_DEFERRED {
            self.settle();
        }
        true
    }

    /// The run that the records put off belong to is over, and took its tools with it.
    fn forget_deferred(&mut self) {
        if let Some(deferred) = &mut self.deferred {
            // Of a run that has ended only their number is known.
            let calls = deferred.records.iter().filter(|(_, _, kind, _)| *kind == Kind::ToolCall).count();
            self.state.count_tool_calls(calls as u32);
            deferred.text.clear();
            deferred.records.clear();
        }
    }

    /// Returns how far the fold has come.
    pub fn position(&self) -> Position {
        self.state.position()
    }

    /// Takes in one line that ends at byte `end` of the log (its newline included).
    pub fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        let position = self.position().after(self.state.id, line, end)?;
        self.take_in(line, position);
        Ok(())
    }

    /// The same for a line whose hash is verified by somebody else: what is folded counts only if all of them fit.
    pub fn push_unverified(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        let position = self.position().after_unverified(line, end)?;
        self.take_in(line, position);
        Ok(())
    }

    fn take_in(&mut self, line: &Line<'_>, position: Position) {
        self.fold(line, position);
        self.state.set_position(position);
        if !line.more {
            self.whole = position;
        }
    }

    fn fold(&mut self, line: &Line<'_>, position: Position) {
        let kind = Kind::from_name(line.kind);
        let effect = kind.map_or(Effect::Position, Kind::effect);
        let (ts, happened) = (line.time(), line.happened_at());
        let upgraded = line.hash.is_none().then(|| legacy::upgrade(line.kind, line.text)).flatten();
        if line.hash.is_none() {
            self.state.begin_legacy(ts);
        }
        if effect != Effect::Position && !self.defer(kind, line, happened) {
            match Event::read(line.kind, upgraded.as_deref().unwrap_or(line.text)) {
                Ok(event) => {
                    // A permission that was refused takes a tool call away, which must be there by then.
                    if matches!(&event, Event::RunResumed(resumed) if resumed.granted == Some(false)) {
                        self.settle();
                    }
                    let begun =
                        line.hash.is_none().then(|| self.state.begin_legacy_run(ts, &event)).flatten();
                    if let Some(run) = begun {
                        self.add_oddity(line.seq, format!("the log does not have the beginning of {run}"));
                    }
                    let tokens = self.tokens.as_mut().filter(|_| effect == Effect::Token);
                    // The state must not depend on whether tokens are wanted: both, whatever the other says.
                    let token = tokens.map_or(Ok(()), |tokens| tokens.apply(line.seq, happened, &event));
                    let outcome = self.state.apply(line.seq, happened, &event).and(token);
                    match outcome {
                        Ok(()) if ends_or_begins_a_run(&event) => self.forget_deferred(),
                        Ok(()) => {}
                        Err(illegal) => self.add_oddity(line.seq, illegal.to_string()),
                    }
                }
                Err(error) => self.add_oddity(line.seq, format!("cannot read {}: {error}", line.kind)),
            }
        }
        self.state.note(ts, line.at, line.source);
        if let Some(tokens) = &mut self.tokens {
            tokens.set_position(position);
        }
    }

    fn add_oddity(&mut self, seq: u64, why: String) {
        if self.oddities.len() < MAX_ODDITIES {
            self.oddities.push((seq, why));
        }
    }
}

fn ends_or_begins_a_run(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::RunStarted(_)
            | Event::RunCompleted(_)
            | Event::RunFailed(_)
            | Event::RunCancelled(_)
            | Event::RunInterrupted(_)
    )
}

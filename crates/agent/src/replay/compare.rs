//! The comparison: which of the prompts and answers that should be there were replayed, in order.

use rekindle_domain::event::RestoredCounts;

use super::expected::{Cut, ExpectedTurn};
use super::{Piece, Replay, fold};
use crate::said::{Request, Voice};

/// Texts in a row that may be missing before the rest counts as missing too: looking for each of them in a long replay of
/// something else would take for ever.
const MOST_MISSING: u64 = 200;

/// Shortest end of an answer that is taken for the answer: less could be anything.
const LEAST_END: usize = 4;

/// How well a conversation was brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All that was expected is there.
    Continued,
    /// Something is missing.
    Shorter,
    /// There was nothing to compare.
    Unverified,
}

impl Verdict {
    /// Returns the word for a `session.restored`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Continued => "continued",
            Verdict::Shorter => "shorter",
            Verdict::Unverified => "unverified",
        }
    }
}

/// Compares a replay with the turns that it should contain: prompts and last answers of turns that have ended, and the request
/// of one that was cut. What else the replay has does not matter, and what a cut turn had answered does not count.
///
/// `goes_on`: the agent answers first and replays the rest afterwards, so that what is missing may still come.
pub fn compare(
    method: Request,
    replay: &Replay,
    turns: &[ExpectedTurn],
    cut: Option<&Cut>,
    goes_on: bool,
) -> (Verdict, RestoredCounts) {
    let mut counts = RestoredCounts {
        prompts: replay.count(Voice::User),
        answers: replay.count(Voice::Agent),
        tools: replay.tools().count() as u64,
        ..RestoredCounts::default()
    };
    let (mut at, mut missing) = (ReplayPosition::default(), 0);
    for turn in turns {
        let prompt = turn.prompt.as_ref().filter(|_| counts.prompts > 0).map(|text| (Voice::User, text));
        let answer = turn.answer.as_ref().map(|text| (Voice::Agent, text));
        for (voice, text) in prompt.into_iter().chain(answer) {
            let wanted = fold(text);
            if wanted.is_empty() {
                continue;
            }
            counts.expected += 1;
            let found = find(replay, at, voice, &wanted).or_else(|| find_end(replay, at, voice, &wanted));
            match found.filter(|_| missing < MOST_MISSING) {
                Some(end) => (at, counts.found, missing) = (end, counts.found + 1, 0),
                None => missing += 1,
            }
        }
    }
    counts.request_shown = cut.map(|cut| {
        cut.prompts().any(|prompt| {
            let wanted = fold(prompt);
            !wanted.is_empty() && find(replay, at, Voice::User, &wanted).is_some()
        })
    });
    let silent = counts.prompts == 0 && counts.answers == 0;
    let forgotten = counts.request_shown == Some(false) && !silent;
    let expected = counts.expected > 0 || counts.request_shown.is_some();
    let verdict = match () {
        () if silent && (method != Request::Load || !expected) => Verdict::Unverified,
        () if counts.found == counts.expected && !forgotten && !silent => Verdict::Continued,
        () if goes_on => Verdict::Unverified,
        () => Verdict::Shorter,
    };
    (verdict, counts)
}

/// A place in a replay: a piece, and a byte of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReplayPosition {
    pub(super) piece: usize,
    pub(super) byte: usize,
}

/// Finds a text behind a place, said by one voice without a break; returns the place behind it.
///
/// It begins where a piece or a line does, and ends where one does: agents replay a message in pieces of their own, and some
/// join several messages into one, a line each.
pub(super) fn find(
    replay: &Replay,
    from: ReplayPosition,
    voice: Voice,
    wanted: &str,
) -> Option<ReplayPosition> {
    let mut start = from;
    while let Some(piece) = replay.pieces.get(start.piece) {
        let next_piece = ReplayPosition { piece: start.piece + 1, byte: 0 };
        let Piece::Text { voice: of, text, .. } = piece else {
            start = next_piece;
            continue;
        };
        if *of == voice {
            if let Some(end) = match_at(replay, start, voice, wanted) {
                return Some(end);
            }
            let rest = text.get(start.byte..).unwrap_or_default();
            if let Some(line) = rest.find('\n').filter(|line| line + 1 < rest.len()) {
                start.byte += line + 1;
                continue;
            }
        }
        start = next_piece;
    }
    None
}

/// Finds the end of an answer behind a place: adapters put warnings of their own in front of what a model says, and do not
/// replay them. Returns the place behind it.
fn find_end(replay: &Replay, from: ReplayPosition, voice: Voice, wanted: &str) -> Option<ReplayPosition> {
    if voice != Voice::Agent {
        return None;
    }
    let mut message = String::new();
    for (index, piece) in replay.pieces.iter().enumerate().skip(from.piece) {
        let next = replay.pieces.get(index + 1);
        match piece {
            Piece::Text { voice: Voice::Agent, text, .. } => message.push_str(text),
            _ => message.clear(),
        }
        if !message.is_empty() && !matches!(next, Some(Piece::Text { voice: Voice::Agent, .. })) {
            let said = fold(&std::mem::take(&mut message));
            let before = wanted.strip_suffix(said.as_str()).filter(|_| said.len() >= LEAST_END);
            if before.is_some_and(|before| !before.ends_with(char::is_alphanumeric)) {
                return Some(ReplayPosition { piece: index + 1, byte: 0 });
            }
        }
    }
    None
}

/// Returns where a text ends that begins at a place, if it stands there.
fn match_at(replay: &Replay, start: ReplayPosition, voice: Voice, wanted: &str) -> Option<ReplayPosition> {
    let (mut rest, mut gap, mut begun) = (wanted, false, false);
    for (index, piece) in replay.pieces.iter().enumerate().skip(start.piece) {
        let Piece::Text { voice: of, text, .. } = piece else { return None };
        if *of != voice {
            return None;
        }
        let skip = if index == start.piece { start.byte } else { 0 };
        let text = text.get(skip..)?;
        for (at, c) in text.char_indices() {
            if c.is_whitespace() {
                if c == '\n' && rest.is_empty() {
                    return Some(ReplayPosition { piece: index, byte: skip + at + 1 });
                }
                gap = begun;
                continue;
            }
            if gap {
                rest = rest.strip_prefix(' ')?;
            }
            rest = rest.strip_prefix(c)?;
            (gap, begun) = (false, true);
        }
        if rest.is_empty() {
            return Some(ReplayPosition { piece: index + 1, byte: 0 });
        }
    }
    None
}

//! What supervisors send to the agent: journaled and synced before it is accepted, delivered once, in order.
//!
//! Large inputs are not held in memory: they go into the journal part by part and are read back from there on
//! their way into the pipe. Until its last part is there, an input does not count. When nothing is to follow, that
//! is journaled and synced in the same way, and the pipe is closed behind the last of them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use sha2::{Digest, Sha256};

use crate::journal::{Appended, Body, Ctl, InputHead, JournalWriter, MAX_LINE, MAX_PAYLOAD, Part, unhex};
use crate::wire::{Input, Refusal};

/// Inputs whose hash is remembered: nobody sends again what is older.
const REMEMBERED: usize = 1024;

/// Read back from the journal at once.
const PIECE: usize = 16 << 10;

/// What became of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// More parts are to come.
    More,
    /// The input is accepted, now or before, in this record of the journal.
    Accepted { input: u64, seq: u64 },
    /// It is not.
    Refused { reason: Refusal, expected: u64 },
}

/// What a turn at the pipe brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// An input is wholly in the pipe.
    Whole(u64),
    /// The pipe is full, or there is nothing to write.
    Waiting,
    /// The agent has closed it; the input it had part of, if any.
    Closed(Option<u64>),
}

#[derive(Default)]
pub(super) struct Inputs {
    /// The last input that was accepted.
    pub(super) accepted: u64,
    /// The last input that is wholly in the pipe.
    pub(super) delivered: u64,
    remembered: VecDeque<(u64, [u8; 8], u64)>,
    arriving: Option<Arriving>,
    waiting: VecDeque<Waiting>,
    /// It is decided that nothing follows what is accepted.
    pub(super) ended: bool,
}

struct Arriving {
    head: Box<InputHead>,
    len: u64,
    hash: Sha256,
    parts: Vec<Piece>,
}

#[derive(Clone, Copy)]
struct Piece {
    at: Appended,
    len: u64,
}

struct Waiting {
    input: u64,
    parts: Vec<Piece>,
    index: usize,
    /// Bytes of the current part that are in the pipe.
    skip: u64,
}

impl Inputs {
    /// Decides that nothing follows what is accepted, durably: then the pipe is closed behind it, whatever becomes
    /// of the one who said so.
    pub(super) fn end(&mut self, journal: &mut JournalWriter) -> io::Result<()> {
        self.arriving = None;
        let ctl = Ctl::CloseInput { after: self.accepted };
        let note = serde_json::to_vec(&ctl).map_err(io::Error::other)?;
        append_synced(journal, &Body::Ctl(ctl), &note)?;
        self.ended = true;
        Ok(())
    }

    /// Tells whether anything waits for the pipe.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the oldest record of the journal that is still to be read back.
    pub(super) fn oldest_needed(&self) -> Option<u64> {
        self.waiting.front().and_then(|input| input.parts.first()).map(|part| part.at.seq)
    }

    /// Forgets an input of which only some parts came: its sender is gone.
    pub(super) fn drop_arriving(&mut self) {
        self.arriving = None;
    }

    /// Takes in a part.
    pub(super) fn accept_part(
        &mut self,
        journal: &mut JournalWriter,
        part: &Input,
        bytes: &[u8],
    ) -> Result<Outcome, io::Error> {
        let expected = self.accepted + 1;
        let refused = |reason| Ok(Outcome::Refused { reason, expected });
        let Some(sha256) = unhex::<32>(&part.sha256) else { return refused(Refusal::Malformed) };
        if part.input <= self.accepted {
            let known = self.remembered.iter().find(|(input, ..)| *input == part.input);
            return match known {
                Some((input, hash, seq)) if *hash == sha256[..8] => {
                    Ok(Outcome::Accepted { input: *input, seq: *seq })
                }
                _ => refused(Refusal::Conflict),
            };
        }
        if part.input > expected {
            return refused(Refusal::Gap);
        }
        let fits = part.offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= part.len);
        if !fits || part.len == 0 || part.len > MAX_LINE || !is_word(&part.kind) {
            return refused(Refusal::Malformed);
        }
        if part.offset == 0 {
            let head = Box::new(InputHead { input: part.input, kind: part.kind.clone(), sha256 });
            self.arriving = Some(Arriving { head, len: part.len, hash: Sha256::new(), parts: Vec::new() });
        }
        let Some(mut arriving) = self.arriving.take() else { return refused(Refusal::Gap) };
        if arriving.head.sha256 != sha256 || arriving.len != part.len || arriving.got() != part.offset {
            return refused(Refusal::Malformed);
        }
        let done = arriving.append(journal, bytes)?;
        match done {
            Done::No => {
                self.arriving = Some(arriving);
                Ok(Outcome::More)
            }
            Done::BadHash => refused(Refusal::Hash),
            Done::Yes(seq) => {
                self.accepted = part.input;
                if self.remembered.len() == REMEMBERED {
                    self.remembered.pop_front();
                }
                let mut short = [0; 8];
                short.copy_from_slice(&sha256[..8]);
                self.remembered.push_back((part.input, short, seq));
                self.waiting.push_back(Waiting {
                    input: part.input,
                    parts: arriving.parts,
                    index: 0,
                    skip: 0,
                });
                Ok(Outcome::Accepted { input: part.input, seq })
            }
        }
    }

    /// Writes as much as the pipe takes, until an input is wholly in it.
    pub(super) fn deliver(&mut self, journal: &JournalWriter, pipe: BorrowedFd<'_>) -> Delivered {
        let mut piece = [0; PIECE];
        while let Some(input) = self.waiting.front_mut() {
            let Some(part) = input.parts.get(input.index).copied() else {
                self.delivered = input.input;
                self.waiting.pop_front();
                return Delivered::Whole(self.delivered);
            };
            let want = usize::try_from(part.len - input.skip).map_or(PIECE, |left| left.min(PIECE));
            // The segment is kept while it is needed; were it gone, the pipe could never be given a whole line.
            let read = match journal.read_back(part.at, input.skip, &mut piece[..want]) {
                Ok(read) if read > 0 => read,
                _ => return self.close(),
            };
            match rustix::io::write(pipe, &piece[..read]) {
                Ok(written) => {
                    input.skip += written as u64;
                    if input.skip == part.len {
                        (input.index, input.skip) = (input.index + 1, 0);
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Delivered::Waiting,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return self.close(),
            }
        }
        if self.ended { self.close() } else { Delivered::Waiting }
    }

    /// Nothing more can be delivered.
    pub(super) fn close(&mut self) -> Delivered {
        let unfinished = self.waiting.front().map(|input| input.input);
        self.waiting.clear();
        Delivered::Closed(unfinished)
    }
}

enum Done {
    No,
    Yes(u64),
    BadHash,
}

impl Arriving {
    fn got(&self) -> u64 {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Puts bytes into the journal. The last part is synced before it counts.
    fn append(&mut self, journal: &mut JournalWriter, bytes: &[u8]) -> io::Result<Done> {
        for piece in bytes.chunks(MAX_PAYLOAD) {
            self.hash.update(piece);
            let got = self.got();
            let ends = got + piece.len() as u64 == self.len;
            if ends && self.hash.clone().finalize()[..] != self.head.sha256 {
                return Ok(Done::BadHash);
            }
            let part = match (got == 0, ends) {
                (true, true) => Part::Whole,
                (true, false) => Part::First,
                (false, false) => Part::Middle,
                (false, true) => Part::Last,
            };
            let body = Body::In { head: self.head.clone(), part, bytes: b"" };
            let at =
                if ends { append_synced(journal, &body, piece)? } else { journal.append(&body, piece)? };
            self.parts.push(Piece { at, len: piece.len() as u64 });
            if ends {
                return Ok(Done::Yes(at.seq));
            }
        }
        Ok(Done::No)
    }
}

/// Appends what counts only when it is on disk; where it cannot be synced, it is taken back and written again into
/// a segment that can be trusted.
fn append_synced(journal: &mut JournalWriter, body: &Body<'_>, payload: &[u8]) -> io::Result<Appended> {
    let at = journal.append(body, payload)?;
    if journal.sync().is_ok() {
        return Ok(at);
    }
    journal.take_back()?;
    journal.rotate()?;
    let at = journal.append(body, payload)?;
    if let Err(error) = journal.sync() {
        // Whoever reads the journal must not find what nobody was told counts. Its number goes to something that a
        // reader who has seen it already may pass over.
        journal.take_back()?;
        journal.ctl(&Ctl::Degraded { reason: Some(format!("a sync failed twice ({error})")) })?;
        return Err(error);
    }
    Ok(at)
}

/// Kinds stand in a header line of the journal.
fn is_word(kind: &str) -> bool {
    (1..=32).contains(&kind.len()) && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

//! What a supervisor can ask of a holder, and the news it gets from one.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::connect::{ConnectError, connect, read_launch};
use super::handshake::{Visitor, Welcomed};
use super::talk::{Picked, RequestError, Talk};
use crate::dir::{HolderDir, Launch};
use crate::identity::Identity;
use crate::journal::{MAX_LINE, hex};
use crate::wire::{CLOSE_INPUT, Challenge, Event, Input, Marks, Mode, Request, Start};

/// Most bytes of an input in one frame: one record of the journal, so that the holder need not hold more.
pub const PART_BYTES: usize = 64 << 10;

/// Longest reason or actor: what people read, not what they keep.
const MOST_WORDS: usize = 4096;

/// An input that the holder has journaled and synced: it will reach the agent, or its end will be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Its number.
    pub input: u64,
    /// The record of the journal that made it count.
    pub seq: u64,
}

/// What a supervisor knows of the turn and the holder cannot: whether silence means work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnHint {
    /// Nothing is being done.
    Idle,
    /// A turn is under way.
    Busy,
    /// An answer is awaited.
    Waiting,
}

impl TurnHint {
    fn word(self) -> &'static str {
        match self {
            TurnHint::Idle => "idle",
            TurnHint::Busy => "busy",
            TurnHint::Waiting => "waiting",
        }
    }
}

/// A connection to a holder.
#[derive(Debug)]
pub struct Control {
    talk: Talk,
    mode: Mode,
    epoch: u64,
    challenge: Challenge,
    marks: Marks,
    features: u32,
}

impl Control {
    /// Connects to a holder and is let in. `timeout` is for all of this, and later for each answer.
    pub fn connect(
        dir: &HolderDir,
        mode: Mode,
        instance: &str,
        epoch: u64,
        timeout: Duration,
    ) -> Result<Control, ConnectError> {
        Control::connect_to(dir, &read_launch(dir)?, mode, instance, epoch, timeout)
    }

    /// Like [`Control::connect`], for someone who has looked at the directory already.
    pub fn connect_to(
        dir: &HolderDir,
        launch: &Launch,
        mode: Mode,
        instance: &str,
        epoch: u64,
        timeout: Duration,
    ) -> Result<Control, ConnectError> {
        let visitor = Visitor { mode, instance: instance.into(), epoch };
        let (link, welcomed) = connect(dir, launch, visitor, timeout)?;
        let Welcomed { challenge, marks, decoder, features, .. } = welcomed;
        Ok(Control { talk: Talk::new(link, decoder, timeout), mode, epoch, challenge, marks, features })
    }

    /// Returns what the holder said of itself first.
    pub fn challenge(&self) -> &Challenge {
        &self.challenge
    }

    /// Returns how far everything had come when we were let in.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Returns what else the holder can do.
    pub fn features(&self) -> u32 {
        self.features
    }

    /// Has the agent started, with this whole environment. Asked again, the agent that runs is the answer.
    pub fn start(&mut self, env: BTreeMap<String, String>) -> Result<Identity, RequestError> {
        let payload = serde_json::to_vec(&Start { env }).map_err(io::Error::other)?;
        let start = Request::Start { epoch: self.commanding()? };
        self.talk.ask(&start, payload, |event| match event {
            Event::Started { agent } => Picked::Break(Ok(agent)),
            Event::StartFailed { error } => Picked::Break(Err(RequestError::StartFailed { error })),
            other => Picked::Continue(other),
        })?
    }

    /// Gives the agent an input; returns when it is safe with the holder. A number that was accepted before is
    /// accepted again without effect, if the bytes are the same.
    pub fn input(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<Accepted, RequestError> {
        let epoch = self.commanding()?;
        if bytes.is_empty() || bytes.len() as u64 > MAX_LINE {
            return Err(RequestError::Invalid("an input has at least one byte and at most 64 MiB"));
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if !(1..=32).contains(&kind.len()) || !kind.bytes().all(is_word) {
            return Err(RequestError::Invalid("the kind of an input is a word of at most 32 small letters"));
        }
        let sha256 = hex(&Sha256::digest(bytes));
        let mine = |event: Event| match event {
            Event::Accepted { input, seq } if input == number => Picked::Break(Ok(Accepted { input, seq })),
            // Without a number it is about who we are, whatever was asked.
            Event::Refused(refused) if refused.input.is_none_or(|input| input == number) => {
                Picked::Break(Err(RequestError::Refused(refused)))
            }
            other => Picked::Continue(other),
        };
        let (mut answer, mut parts) = (None, 0);
        for (index, part) in bytes.chunks(PART_BYTES).enumerate() {
            let part_of = Input {
                input: number,
                kind: kind.into(),
                sha256: sha256.clone(),
                len: bytes.len() as u64,
                offset: (index * PART_BYTES) as u64,
            };
            self.talk.send(&Request::Input { epoch, part: part_of }, part.to_vec())?;
            parts += 1;
            // Whoever has it already, or does not want the beginning, need not be sent the rest.
            answer = self.talk.poll_events(mine)?;
            if answer.is_some() {
                break;
            }
        }
        let answer = match answer {
            Some(answer) => answer,
            None => self.talk.wait(mine)?,
        };
        if parts > 1 {
            // Each part may have had an answer of its own: none of them may be taken for that to a later try.
            let _ = self.talk.barrier(Some(number));
        }
        answer
    }

    /// Has the agent's input closed once it has everything up to the input `after`, which must be the newest that was
    /// accepted. Success means that this is decided and on disk: it comes about whatever becomes of us. Asked
    /// again, it is decided already.
    pub fn close_input(&mut self, after: u64) -> Result<(), RequestError> {
        let close = Request::CloseInput { epoch: self.commanding()?, after };
        if self.features & CLOSE_INPUT == 0 {
            return Err(RequestError::TooOld("close its agent's input"));
        }
        self.talk.ask(&close, Vec::new(), done)
    }

    /// Tells that everything up to a record is safe, so that its journal may be trimmed. There is no answer.
    pub fn ack(&mut self, seq: u64) -> Result<(), RequestError> {
        let epoch = self.commanding()?;
        self.talk.send(&Request::Ack { epoch, seq }, Vec::new())
    }

    /// Begins the agent's end: its input is closed; after `grace` it is asked, after as long again killed. Success
    /// means that this has begun; the end itself is told by [`Event::Exited`] and `exit.json`.
    pub fn stop(&mut self, reason: &str, actor: &str, grace: Duration) -> Result<(), RequestError> {
        let epoch = self.commanding()?;
        if reason.len() > MOST_WORDS || actor.len() > MOST_WORDS {
            return Err(RequestError::Invalid("a reason and an actor are at most 4096 bytes"));
        }
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let stop = Request::Stop { epoch, reason: reason.into(), actor: actor.into(), grace_ms };
        match self.talk.ask(&stop, Vec::new(), done) {
            // It was ending anyway, and ended before it read our word.
            Err(RequestError::Closed) if self.talk.has_exited() => Ok(()),
            outcome => outcome,
        }
    }

    /// Ends an agent that is idle; the holder refuses if anything has passed since it was told so.
    pub fn retire(&mut self) -> Result<(), RequestError> {
        let retire = Request::Retire { epoch: self.commanding()? };
        self.talk.ask(&retire, Vec::new(), done)
    }

    /// Sends the agent an interrupt, as a terminal would.
    pub fn interrupt(&mut self) -> Result<(), RequestError> {
        let interrupt = Request::Interrupt { epoch: self.commanding()? };
        self.talk.ask(&interrupt, Vec::new(), done)
    }

    /// Asks how far everything has come.
    pub fn status(&mut self) -> Result<Marks, RequestError> {
        self.talk.ask(&Request::Status {}, Vec::new(), |event| match event {
            Event::Status(marks) => Picked::Break(marks),
            other => Picked::Continue(other),
        })
    }

    /// Asks for a sign of life; returns how long it took.
    pub fn ping(&mut self) -> Result<Duration, RequestError> {
        let sent = Instant::now();
        self.talk.barrier(None)?;
        Ok(sent.elapsed())
    }

    /// Asks for a sign of life without waiting for it: it comes as [`Event::Pong`] among the news.
    pub fn beat(&mut self) -> Result<(), RequestError> {
        self.talk.send_ping()
    }

    /// Tells what the turn is at, and how long the agent may be left alone. There is no answer; anything that
    /// passes afterwards makes it void.
    pub fn hint(&mut self, turn: TurnHint, max_detached: Option<Duration>) -> Result<(), RequestError> {
        let epoch = self.commanding()?;
        let max_detached_ms = max_detached.map(|most| u64::try_from(most.as_millis()).unwrap_or(u64::MAX));
        self.talk.send(&Request::Hint { epoch, state: turn.word().into(), max_detached_ms }, Vec::new())
    }

    /// Returns the next thing the holder tells; none if it tells nothing in time. After [`Event::Fenced`] nothing
    /// can be asked any more. Whoever never asks for news is hung up on once the socket is full of them.
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, RequestError> {
        self.talk.next_event(timeout)
    }

    fn commanding(&self) -> Result<u64, RequestError> {
        if self.mode == Mode::Control { Ok(self.epoch) } else { Err(RequestError::NotInControl) }
    }
}

fn done(event: Event) -> Picked<()> {
    if matches!(event, Event::Done {}) { Picked::Break(()) } else { Picked::Continue(event) }
}

impl AsFd for Control {
    /// For polling. When it is readable, call [`Control::next_event`] with no time until there is nothing more;
    /// after any other request do that once as well, because news may be queued already.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.talk.as_fd()
    }
}

#[cfg(test)]
mod tests;

//! A conversation with a holder: one question at a time, each with a deadline. What the holder tells meanwhile is
//! queued for whoever asks for news.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::socket::{Activity, Socket};
use crate::wire::{Decoder, Event, MAX_FRAME, Refusal, Refused, Request, WireError};

/// Why a request had no success.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The holder said no.
    #[error("the holder refused ({:?}): {}", .0.reason, advice(.0.reason))]
    Refused(Refused),
    /// A supervisor with a higher epoch, or another connection of this one, commands now.
    #[error("epoch {by} commands this holder now: stop commanding, and write nothing more for its session")]
    Fenced {
        /// Its epoch.
        by: u64,
    },
    /// The agent could not be started; the holder ends.
    #[error("the agent could not be started: {error}")]
    StartFailed {
        /// Why not.
        error: String,
    },
    /// The holder hung up.
    #[error("the connection to the holder has ended: check its lock, then connect again or harvest it")]
    Closed,
    /// It did not answer in time. Whether it did what was asked is told by its journal and status.
    #[error("the holder did not answer within {} ms: connect again with the same instance and epoch, and ask how far it is", .after.as_millis())]
    Timeout {
        /// How long it had.
        after: Duration,
    },
    /// An answer was given up on before: the next one could not be told from it.
    #[error("an earlier answer is still due: connect again with the same instance and epoch")]
    OutOfStep,
    /// Only one who commands may do this.
    #[error("only a connection in control mode may do this")]
    NotInControl,
    /// The holder could not take it; it was not asked.
    #[error("{0}")]
    Invalid(&'static str),
    /// The holder is older than what is wanted of it; it was not asked.
    #[error("the holder is too old to {0}: its agent goes on as it is")]
    TooOld(&'static str),
    /// It cannot be understood.
    #[error("the holder sent something that is not valid: follow its journal, and report this")]
    Wire(#[from] WireError),
    /// The connection failed.
    #[error("the connection to the holder failed: connect again")]
    Io(#[from] io::Error),
}

fn advice(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Proof => "the secret in its directory is not its own",
        Refusal::Stale => "another supervisor commands; stop commanding",
        Refusal::Busy => "try again in a moment",
        Refusal::NotNow => "its agent is not in a state for this; ask for its status",
        Refusal::Conflict => "this number was used for other bytes; read the journal to see which",
        Refusal::Gap => "send the inputs from the expected number on",
        Refusal::NoSpace => {
            "its disk is full and nothing was accepted; free some disk space and send it again"
        }
        Refusal::Hash => "the bytes were changed on their way; send them again",
        Refusal::Malformed => "it does not understand this; check the versions",
    }
}

/// What is said of an event: an answer, or the event back because it is none.
pub(super) type Picked<T> = ControlFlow<T, Event>;

#[derive(Debug)]
pub(super) struct Talk {
    link: Socket,
    decoder: Decoder,
    queue: VecDeque<Event>,
    /// How long each answer may take.
    pub(super) patience: Duration,
    fenced: Option<u64>,
    out_of_step: bool,
    /// The last word that was sent to come back.
    word: u64,
}

impl Talk {
    /// Goes on after a handshake; the decoder may have the first words already.
    pub(super) fn new(link: Socket, decoder: Decoder, patience: Duration) -> Talk {
        Talk { link, decoder, queue: VecDeque::new(), patience, fenced: None, out_of_step: false, word: 0 }
    }

    /// Asks and waits for the answer.
    pub(super) fn ask<T>(
        &mut self,
        request: &Request,
        payload: Vec<u8>,
        mut pick: impl FnMut(Event) -> Picked<T>,
    ) -> Result<T, RequestError> {
        self.send(request, payload)?;
        self.wait(move |event| match pick(event) {
            Picked::Continue(Event::Refused(refused)) if refused.input.is_none() => {
                Picked::Break(Err(RequestError::Refused(refused)))
            }
            Picked::Continue(other) => Picked::Continue(other),
            Picked::Break(answer) => Picked::Break(Ok(answer)),
        })?
    }

    pub(super) fn send(&mut self, request: &Request, payload: Vec<u8>) -> Result<(), RequestError> {
        if let Some(by) = self.fenced {
            return Err(RequestError::Fenced { by });
        }
        if self.out_of_step {
            return Err(RequestError::OutOfStep);
        }
        let frame = request.frame(payload);
        let mut bytes = Vec::with_capacity(frame.header.len() + frame.payload.len() + 8);
        frame.write(&mut bytes);
        if bytes.len() > MAX_FRAME || frame.header.len() > usize::from(u16::MAX) {
            return Err(RequestError::Invalid(
                "this is longer than 1 MiB, which is the most that can be sent",
            ));
        }
        self.link.queue(&bytes);
        match self.link.flush(Instant::now() + self.patience)? {
            // What it said before it hung up is read by whoever waits for the answer.
            Activity::Moved | Activity::Closed => Ok(()),
            Activity::Late => Err(self.late()),
        }
    }

    /// Waits for what is picked; everything else is queued.
    pub(super) fn wait<T>(&mut self, mut pick: impl FnMut(Event) -> Picked<T>) -> Result<T, RequestError> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(answer) = self.poll_events(&mut pick)? {
                return Ok(answer);
            }
            match self.link.receive(deadline)? {
                Activity::Moved => {}
                Activity::Closed => return Err(RequestError::Closed),
                Activity::Late => return Err(self.late()),
            }
        }
    }

    /// Looks through what has come, without waiting.
    pub(super) fn poll_events<T>(
        &mut self,
        mut pick: impl FnMut(Event) -> Picked<T>,
    ) -> Result<Option<T>, RequestError> {
        self.decoder.push(&self.link.take_received());
        while let Some(frame) = self.decoder.next_frame()? {
            match Event::read(&frame)? {
                None => {}
                Some(Event::Fenced { by }) => {
                    self.fenced = Some(by);
                    return Err(RequestError::Fenced { by });
                }
                Some(event) => match pick(event) {
                    Picked::Break(answer) => return Ok(Some(answer)),
                    Picked::Continue(other) => self.queue_event(other),
                },
            }
        }
        Ok(None)
    }

    /// Returns the next thing that is told; none if nothing is in time.
    pub(super) fn next_event(&mut self, timeout: Duration) -> Result<Option<Event>, RequestError> {
        if let Some(event) = self.queue.pop_front() {
            return Ok(Some(event));
        }
        let deadline = Instant::now() + timeout;
        loop {
            match self.poll_events(Picked::Break) {
                Ok(None) => {}
                // Here it is news like any other.
                Err(RequestError::Fenced { by }) => return Ok(Some(Event::Fenced { by })),
                told => return told,
            }
            match self.link.receive(deadline)? {
                Activity::Moved => {}
                Activity::Closed => return Err(RequestError::Closed),
                Activity::Late => return Ok(None),
            }
        }
    }

    /// Tells whether the end of the agent was told and nobody has asked for it yet.
    pub(super) fn has_exited(&self) -> bool {
        self.queue.iter().any(|event| matches!(event, Event::Exited { .. }))
    }

    /// Asks for a sign of life and does not wait for it: it is told like news.
    pub(super) fn send_ping(&mut self) -> Result<(), RequestError> {
        self.word += 1;
        self.send(&Request::Ping { word: self.word }, Vec::new())
    }

    /// Waits until everything said before has been answered; answers about this input are dropped.
    pub(super) fn barrier(&mut self, input: Option<u64>) -> Result<(), RequestError> {
        self.word += 1;
        let word = self.word;
        self.send(&Request::Ping { word }, Vec::new())?;
        loop {
            let event = self.wait(|event| match event {
                Event::Pong { .. } | Event::Accepted { .. } | Event::Refused(_) => Picked::Break(event),
                other => Picked::Continue(other),
            })?;
            match event {
                Event::Pong { word: back } if back == word => return Ok(()),
                Event::Accepted { input: of, .. } if Some(of) == input => {}
                Event::Refused(Refused { input: of @ Some(_), .. }) if of == input => {}
                other => self.queue_event(other),
            }
        }
    }

    fn queue_event(&mut self, event: Event) {
        // The last word on the head is the only one that counts.
        if let (Event::Wake { .. }, Some(last @ Event::Wake { .. })) = (&event, self.queue.back_mut()) {
            *last = event;
        } else {
            self.queue.push_back(event);
        }
    }

    fn late(&mut self) -> RequestError {
        self.out_of_step = true;
        RequestError::Timeout { after: self.patience }
    }
}

impl AsFd for Talk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

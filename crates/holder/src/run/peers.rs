//! Those who come to the socket: bytes in, frames out, never waiting for anyone. What they may do is decided in
//! `requests`.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use super::log::Log;
use crate::identity::{Identity, Stat};
use crate::journal::hex;
use crate::wire::{Decoder, Event, Frame, Mode, PREAMBLE_LEN, Preamble, WireError};

/// Each step of the handshake, and anything we have to say, must be done with within this.
pub(super) const STEP: Duration = Duration::from_secs(2);

/// Most connections that have not proven anything yet.
const MOST_STRANGERS: usize = 8;

/// Most connections in all.
const MOST_PEERS: usize = 24;

pub(super) enum Stage {
    /// The other side's first bytes are awaited.
    Preamble,
    /// Its proof is.
    Challenged { nonce: String },
    /// It has been let in.
    In { mode: Mode },
    /// What is queued is sent, then it is over.
    Closing,
}

pub(super) struct Peer {
    pub(super) stream: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    pub(super) stage: Stage,
    /// When this stage began, or when what is queued could last be sent.
    since: Instant,
    /// The last head it was told of.
    pub(super) woken: u64,
    /// More than news waits to be sent.
    owes: bool,
    gone: bool,
}

impl Peer {
    /// Lets someone in, as far as the first question.
    fn accept(stream: UnixStream, own: &Identity) -> io::Result<Peer> {
        stream.set_nonblocking(true)?;
        let credentials = rustix::net::sockopt::socket_peercred(&stream)?;
        if credentials.uid != rustix::process::geteuid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user"));
        }
        if descends_from(credentials.pid.as_raw_nonzero().get(), own) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the agent itself"));
        }
        let mut peer = Peer {
            stream,
            decoder: Decoder::default(),
            out: Vec::new(),
            stage: Stage::Preamble,
            since: Instant::now(),
            woken: 0,
            owes: false,
            gone: false,
        };
        peer.out.extend_from_slice(&Preamble::OURS.write());
        Ok(peer)
    }

    pub(super) fn wants_to_write(&self) -> bool {
        !self.out.is_empty()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone || (matches!(self.stage, Stage::Closing) && self.out.is_empty())
    }

    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.stage, Stage::Preamble | Stage::Challenged { .. })
    }

    /// Tells whether it commands.
    pub(super) fn is_controller(&self) -> bool {
        matches!(self.stage, Stage::In { mode: Mode::Control })
    }

    pub(super) fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.since = Instant::now();
    }

    /// When it will have been waited for long enough, if we wait for it. One that is stopped, or busy, may be so for as
    /// long as it likes: news are a single word, which waits. Anything else that cannot be said is a reason to hang up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.is_stranger() || self.owes).then(|| self.since + STEP)
    }

    pub(super) fn drop_if_late(&mut self, now: Instant) {
        self.gone |= self.deadline().is_some_and(|at| now >= at);
    }

    pub(super) fn send(&mut self, event: &Event) {
        if !self.owes {
            self.since = Instant::now();
        }
        self.owes = true;
        event.frame(Vec::new()).write(&mut self.out);
    }

    /// Tells of news, unless the last word is not even sent: then the next one will do.
    pub(super) fn wake(&mut self, head: u64) {
        let listens = matches!(self.stage, Stage::In { mode: Mode::Control | Mode::Observe });
        if listens && self.out.is_empty() && self.woken < head {
            self.woken = head;
            Event::Wake { head }.frame(Vec::new()).write(&mut self.out);
        }
    }

    /// Takes in what has come. After the end of the stream, what came before it still counts.
    pub(super) fn receive(&mut self) -> Result<(), WireError> {
        let mut bytes = [0; 8192];
        // Bounded, so that nobody keeps us from the agent.
        for _ in 0..16 {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.gone = true,
                Ok(count) => {
                    self.decoder.push(&bytes[..count]);
                    // Less than there was room for is all there is; an end that follows is told by the next look.
                    if count == bytes.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.gone = true,
            }
            break;
        }
        if matches!(self.stage, Stage::Preamble)
            && let Some(bytes) = self.decoder.take::<PREAMBLE_LEN>()
        {
            Preamble::OURS.common(Preamble::read(&bytes)?)?;
            self.enter(Stage::Challenged { nonce: random_word() });
        }
        Ok(())
    }

    /// Returns the next whole frame.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        match self.stage {
            Stage::Preamble | Stage::Closing => Ok(None),
            Stage::Challenged { .. } | Stage::In { .. } => self.decoder.next_frame(),
        }
    }

    /// Sends what can be sent.
    pub(super) fn flush(&mut self) {
        while !self.out.is_empty() && !self.gone {
            match self.stream.write(&self.out) {
                Ok(0) => self.gone = true,
                Ok(count) => {
                    self.out.drain(..count);
                    self.since = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
        if self.out.is_empty() {
            (self.out, self.owes) = (Vec::new(), false);
        }
    }

    /// Sends the last words even to someone slow, within a moment.
    pub(super) fn send_last_words(&mut self) {
        let _ = self.stream.set_nonblocking(false);
        let _ = self.stream.set_write_timeout(Some(Duration::from_millis(200)));
        let _ = self.stream.write_all(&std::mem::take(&mut self.out));
    }
}

/// Accepts the connections that wait at the socket. False if the system gives us none just now, though somebody waits: to ask again
/// at once would be in vain.
pub(super) fn accept(listener: &UnixListener, peers: &mut Vec<Peer>, own: &Identity, log: &mut Log) -> bool {
    for _ in 0..MOST_PEERS {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => {
                log.write_line(&format!("cannot accept: {error}"));
                return false;
            }
        };
        if peers.iter().filter(|peer| peer.is_stranger()).count() >= MOST_STRANGERS
            || peers.len() >= MOST_PEERS
        {
            // Closing it is the answer: whoever means it comes again.
            continue;
        }
        match Peer::accept(stream, own) {
            Ok(peer) => peers.push(peer),
            Err(error) => log.write_line(&format!("refused a connection: {error}")),
        }
    }
    true
}

/// Everything below us is the agent's: orphans of its tree come to us too. Nobody who is below us started before us,
/// so that the search ends with the first one who did.
fn descends_from(pid: i32, ancestor: &Identity) -> bool {
    let mut pid = pid;
    // A chain of parents is never longer than there are pids; a bound ends the search in a changing tree.
    for _ in 0..1024 {
        if pid == ancestor.pid {
            return true;
        }
        match Stat::read(pid) {
            Ok(stat) if stat.parent > 1 && stat.start_ticks >= ancestor.start_ticks => pid = stat.parent,
            _ => return false,
        }
    }
    true
}

fn random_word() -> String {
    let mut bytes = [0; 16];
    // Without randomness no proof is worth anything: an empty word is refused by everyone.
    match getrandom::fill(&mut bytes) {
        Ok(()) => hex(&bytes),
        Err(_) => String::new(),
    }
}

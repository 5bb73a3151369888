//! From a holder's directory to a connection that both sides trust, or the reason why there is none.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::handshake::{Handshake, HandshakeError, Visitor, Welcomed};
use super::socket::{Activity, Socket};
use crate::dir::{HolderDir, Launch};
use crate::wire::{Refused, WireError};

/// Why there is no connection. None of these is proof that the holder is dead: only its lock is.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// What is needed to speak to it cannot be read.
    #[error("cannot read {path}: the holder cannot be reached, but its journal can still be followed")]
    Files {
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Nobody listens.
    #[error(
        "nothing listens at {socket}: if the lock is held, try again in a few seconds, because the holder binds its socket again; if it is free, harvest it"
    )]
    NoSocket {
        /// Where.
        socket: PathBuf,
    },
    /// The holder said no; for a stale epoch, compare with the `epoch` file and stop commanding.
    #[error("the holder refused: {:?}, and epoch {} commands", .0.reason, .0.epoch)]
    Refused(Refused),
    /// Whoever answers is not the holder; it was told nothing.
    #[error(
        "the process that answers at {socket} is not the holder ({why}): find out which process listens there, and do not remove the socket"
    )]
    NotTheHolder {
        /// Where.
        socket: PathBuf,
        /// How that was noticed.
        why: &'static str,
    },
    /// It does not answer in time.
    #[error("the holder did not answer within {} ms: it may be stopped or the machine overloaded; follow its journal and try again later", .after.as_millis())]
    Timeout {
        /// How long it had.
        after: Duration,
    },
    /// There is no version that both sides speak.
    #[error(
        "the holder speaks versions {low} to {high} of the protocol: follow its journal, and control it with the version of Rekindle that started it"
    )]
    NoCommonVersion {
        /// Its lowest.
        low: u16,
        /// Its highest.
        high: u16,
    },
    /// It hung up in the middle: it is busy, ending, or has become another's.
    #[error(
        "the holder closed the connection before it answered: check its lock, and try again if it is held"
    )]
    HungUp,
    /// It cannot be understood.
    #[error("the holder sent something that is not valid: follow its journal, and report this")]
    Wire(#[source] WireError),
    /// The connection failed.
    #[error("cannot connect to {socket}")]
    Io {
        /// Where.
        socket: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Reads what a holder is for.
pub(super) fn read_launch(dir: &HolderDir) -> Result<Launch, ConnectError> {
    HolderDir::read(&dir.launch()).map_err(|source| ConnectError::Files { path: dir.launch(), source })
}

/// Connects to a holder and is let in.
pub(super) fn connect(
    dir: &HolderDir,
    launch: &Launch,
    visitor: Visitor,
    timeout: Duration,
) -> Result<(Socket, Welcomed), ConnectError> {
    let secret = dir.read_secret().map_err(|source| ConnectError::Files { path: dir.secret(), source })?;
    let socket = launch.socket.clone();
    let handshake = Handshake::new(&launch.holder_id, secret, visitor).map_err(|e| refusal(&socket, e))?;
    let deadline = Instant::now() + timeout;
    let link = Socket::connect(&socket, deadline).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ConnectError::NoSocket { socket: socket.clone() }
        }
        io::ErrorKind::TimedOut => ConnectError::Timeout { after: timeout },
        _ => ConnectError::Io { socket: socket.clone(), source },
    })?;
    let uid = link.peer_uid().map_err(|source| ConnectError::Io { socket: socket.clone(), source })?;
    if uid != rustix::process::geteuid().as_raw() {
        return Err(ConnectError::NotTheHolder { socket, why: "it belongs to another user" });
    }
    shake_hands(link, handshake, &socket, deadline, timeout)
}

/// Carries a handshake through.
pub(super) fn shake_hands(
    mut link: Socket,
    mut handshake: Handshake,
    socket: &Path,
    deadline: Instant,
    timeout: Duration,
) -> Result<(Socket, Welcomed), ConnectError> {
    loop {
        link.queue(&handshake.outgoing());
        let sent = link.flush(deadline);
        let turn =
            sent.and_then(|turn| if turn == Activity::Moved { link.receive(deadline) } else { Ok(turn) });
        let turn = turn.map_err(|source| ConnectError::Io { socket: socket.into(), source })?;
        let bytes = link.take_received();
        // Even of someone who has hung up: it may have said why.
        if !bytes.is_empty() {
            match handshake.receive(&bytes) {
                Ok(Some(welcomed)) => return Ok((link, welcomed)),
                Ok(None) => {}
                Err(error) => return Err(refusal(socket, error)),
            }
        }
        match turn {
            Activity::Moved => {}
            Activity::Closed => return Err(ConnectError::HungUp),
            Activity::Late => return Err(ConnectError::Timeout { after: timeout }),
        }
    }
}

fn refusal(socket: &Path, error: HandshakeError) -> ConnectError {
    match error {
        HandshakeError::NotTheHolder(why) => ConnectError::NotTheHolder { socket: socket.into(), why },
        HandshakeError::Refused(refused) => ConnectError::Refused(refused),
        HandshakeError::Wire(WireError::NotOurs) => {
            ConnectError::NotTheHolder { socket: socket.into(), why: "it does not speak the protocol" }
        }
        HandshakeError::Wire(WireError::NoCommonVersion { low, high }) => {
            ConnectError::NoCommonVersion { low, high }
        }
        HandshakeError::Wire(error) => ConnectError::Wire(error),
        HandshakeError::NoRandomness => ConnectError::Io {
            socket: socket.into(),
            source: io::Error::other("the system cannot provide random numbers"),
        },
    }
}

//! What the frames say. The kinds are one table; fields are only ever added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Frame, WireError};
use crate::identity::Identity;

/// What a supervisor comes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// To command; one at a time, the highest epoch wins.
    Control,
    /// To be told of news.
    Observe,
    /// To ask how it is, once.
    Probe,
}

impl Mode {
    /// Returns the word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Control => "control",
            Mode::Observe => "observe",
            Mode::Probe => "probe",
        }
    }
}

/// Where a holder is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It has no agent yet.
    AwaitingStart,
    /// The agent runs.
    Running,
    /// The agent runs but is not read from: the disk is full or the journal at its bound.
    Blocked,
    /// It is ending its agent.
    Stopping,
    /// The agent is gone.
    Exited,
}

/// How far everything has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The phase.
    pub phase: Phase,
    /// The epoch that commands.
    pub epoch: u64,
    /// The last record of the journal.
    pub head: u64,
    /// The last record that was acknowledged.
    pub acked: u64,
    /// The last input that was accepted.
    pub accepted: u64,
    /// The last input that is wholly in the agent's pipe.
    pub delivered: u64,
    /// The agent, once it runs.
    #[serde(default)]
    pub agent: Option<Identity>,
    /// What is wrong with the journal or the delivery, if anything.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// The holder's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// A random word.
    pub nonce: String,
    /// The holder.
    pub holder_id: String,
    /// What it was launched for, as a hash.
    pub fingerprint: String,
    /// Its phase.
    pub phase: Phase,
    /// The epoch that commands.
    pub epoch: u64,
}

/// The supervisor's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auth {
    /// What it comes for.
    pub mode: Mode,
    /// Which supervisor: one life of a daemon.
    pub instance: String,
    /// The epoch it wants to command under.
    pub epoch: u64,
    /// A random word.
    pub nonce2: String,
    /// Its proof.
    pub proof: String,
}

/// The holder's consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The holder's proof.
    pub proof: String,
    /// How far everything has come.
    pub marks: Marks,
}

/// Why a holder says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The secret is not known.
    Proof,
    /// A higher epoch commands, or the same one of another supervisor.
    Stale,
    /// Too many come at once.
    Busy,
    /// This mode or phase does not allow it.
    NotNow,
    /// The number was used for other bytes.
    Conflict,
    /// A number was left out.
    Gap,
    /// The disk is full: nothing was accepted, try again.
    NoSpace,
    /// The bytes do not have the hash they should.
    Hash,
    /// It is not understood.
    Malformed,
}

/// The holder's refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub reason: Refusal,
    /// The epoch that commands.
    pub epoch: u64,
    /// The input it is about, if it is about one.
    #[serde(default)]
    pub input: Option<u64>,
    /// The input that is expected next.
    #[serde(default)]
    pub expected: Option<u64>,
}

/// What the agent is started with beyond what the holder's directory says; values are on no disk.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The whole environment of the agent.
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("env", &self.env.keys()).finish()
    }
}

/// Which input a part belongs to; the bytes are the frame's payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its number, from 1.
    pub input: u64,
    /// What it is for.
    pub kind: String,
    /// The SHA-256 of all its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Length of all its bytes.
    pub len: u64,
    /// Where this part begins.
    pub offset: u64,
}

/// How a holder is, told when it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// What is wrong; none when it is over.
    pub trouble: Option<String>,
}

macro_rules! messages {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $({ $($(#[$fmeta:meta])* $field:ident: $type:ty),* $(,)? })? $(($payload:ty))? = $kind:literal, $ignorable:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "is", rename_all = "snake_case")]
        pub enum $name {
            $(#[doc = concat!("Frame kind ", $kind, ".")] $variant $({ $($(#[$fmeta])* #[doc = "See the protocol."] $field: $type),* })? $(($payload))?,)*
        }

        impl $name {
            /// Returns the frame that says it, with raw bytes behind it.
            pub fn frame(&self, payload: Vec<u8>) -> Frame {
                let (kind, ignorable) = match self {
                    $($name::$variant { .. } => ($kind, $ignorable),)*
                };
                // Plain data with string keys cannot fail to be written.
                let header = serde_json::to_vec(self).unwrap_or_default();
                Frame { kind, ignorable, header, payload }
            }

            /// Reads a frame; none if it is of an unknown kind that may be passed over.
            pub fn read(frame: &Frame) -> Result<Option<$name>, WireError> {
                match frame.kind {
                    $($kind => serde_json::from_slice(&frame.header)
                        .map(Some)
                        .map_err(|error| WireError::Malformed { kind: $kind, why: error.to_string() }),)*
                    _ if frame.ignorable => Ok(None),
                    kind => Err(WireError::UnknownKind(kind)),
                }
            }
        }
    };
}

messages! {
    /// What a supervisor says.
    Request {
        Auth(Auth) = 1, false;
        // The environment is the payload, as JSON, because a header is at most 64 KiB.
        Start { epoch: u64 } = 2, false;
        Input { epoch: u64, part: Input } = 3, false;
        Ack { epoch: u64, seq: u64 } = 4, false;
        Stop { epoch: u64, reason: String, actor: String, grace_ms: u64 } = 5, false;
        Retire { epoch: u64 } = 6, false;
        Interrupt { epoch: u64 } = 7, false;
        Status {} = 8, false;
        Ping { word: u64 } = 9, true;
        Hint { epoch: u64, state: String, #[serde(default)] max_detached_ms: Option<u64> } = 10, true;
        // Only for a holder with the feature of this name.
        CloseInput { epoch: u64, after: u64 } = 11, false;
    }
}

messages! {
    /// What a holder says.
    Event {
        Challenge(Challenge) = 101, false;
        Welcome(Welcome) = 102, false;
        Refused(Refused) = 103, false;
        Started { agent: Identity } = 104, false;
        StartFailed { error: String } = 105, false;
        Accepted { input: u64, seq: u64 } = 106, false;
        Delivered { input: u64 } = 107, true;
        Wake { head: u64 } = 108, true;
        Status(Marks) = 109, false;
        Pong { word: u64 } = 110, true;
        Health(Health) = 111, true;
        Exited { #[serde(default)] code: Option<i32>, #[serde(default)] signal: Option<i32> } = 112, true;
        Fenced { by: u64 } = 113, true;
        Done {} = 114, true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_newer_ones_are_survived() {
        let stop = Request::Stop { epoch: 2, reason: "user".into(), actor: "cli".into(), grace_ms: 5000 };
        let mut frame = stop.frame(Vec::new());
        assert_eq!(Request::read(&frame), Ok(Some(stop)));
        frame.header = br#"{"is":"stop","epoch":2,"reason":"r","actor":"a","grace_ms":1,"new":[1]}"#.to_vec();
        assert!(Request::read(&frame).is_ok(), "an unknown field");
        let unknown = Frame { kind: 77, ignorable: true, header: Vec::new(), payload: Vec::new() };
        assert_eq!(Event::read(&unknown), Ok(None));
        assert_eq!(Event::read(&Frame { ignorable: false, ..unknown }), Err(WireError::UnknownKind(77)));
    }

    #[test]
    fn values_of_the_environment_are_not_printed() {
        let start = Start { env: [("KEY".to_owned(), "hunter2".to_owned())].into() };
        assert!(!format!("{start:?}").contains("hunter2"));
    }
}

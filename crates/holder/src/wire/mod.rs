//! The conversation between a holder and those who come to it: a preamble that never changes, then frames.
//!
//! Nothing here does I/O: bytes in, messages out. `docs/holder-protocol.md` has the format.

mod auth;
mod frame;
#[cfg(test)]
mod golden;
mod message;
mod preamble;

pub use auth::{Proof, Secret};
pub use frame::{Decoder, Frame, MAX_FRAME};
pub use message::{
    Auth, Challenge, Event, Health, Input, Marks, Mode, Phase, Refusal, Refused, Request, Start, Welcome,
};
pub use preamble::{CLOSE_INPUT, MAJOR, PREAMBLE_LEN, Preamble};

/// Why bytes from the other side cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The other side is no holder, or no supervisor.
    #[error("the other side does not speak this protocol")]
    NotOurs,
    /// There is no version that both sides speak.
    #[error("the other side speaks versions {low} to {high}, we speak {MAJOR}")]
    NoCommonVersion {
        /// Its lowest.
        low: u16,
        /// Its highest.
        high: u16,
    },
    /// A frame is longer than any may be.
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// A frame's parts do not fit together, or its header is not what its kind wants.
    #[error("a frame of kind {kind} cannot be read: {why}")]
    Malformed {
        /// Its kind.
        kind: u8,
        /// What is wrong.
        why: String,
    },
    /// A frame that must be understood is not.
    #[error("a frame of the unknown kind {0} may not be passed over")]
    UnknownKind(u8),
}

//! What an agent knows of its session: everything while it lives, nothing when it is new, and in between what its own load
//! has shown.

use crate::event::SessionRestored;

/// What an agent knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The turns that have ended.
    pub past: bool,
    /// The request of the turn that was cut, provably: it was there, or has replayed that very prompt.
    pub request: bool,
}

impl Default for Memory {
    /// A session's first agent lacks nothing.
    fn default() -> Memory {
        Memory::WHOLE
    }
}

impl Memory {
    /// It was there, or was told.
    pub const WHOLE: Memory = Memory { past: true, request: true };
    /// It is new.
    pub const NOTHING: Memory = Memory { past: false, request: false };

    /// Tells whether it knows nothing at all.
    pub fn is_nothing(self) -> bool {
        self == Memory::NOTHING
    }

    /// Returns what an agent knows whose conversation was brought back in this way. A load that succeeds proves nothing: what
    /// it has replayed does. An agent that brings its session back without a replay is taken at its word for what was ended,
    /// but not for a turn that was cut, which many forget.
    pub(super) fn after(restored: &SessionRestored<'_>) -> Memory {
        let counts = restored.counts();
        let shown = counts.request_shown != Some(false);
        match restored.verdict.as_ref() {
            "reprimed" => Memory::WHOLE,
            "unverified" => Memory { past: true, request: counts.request_shown == Some(true) },
            "continued" => Memory { past: true, request: shown },
            "shorter" if counts.is_empty() => Memory::NOTHING,
            "shorter" => Memory { past: counts.found >= counts.expected, request: shown },
            _ => Memory::NOTHING,
        }
    }
}

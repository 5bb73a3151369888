//! Turns of requests about one session: only so many at the same time may block, and the others wait without a thread. One
//! session whose log hangs keeps nobody waiting who asks for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::id::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests about one session that may block at the same time: more than a session is ever asked at once in earnest, and a small
/// part of the threads on which requests may block.
const AT_ONCE: usize = 32;

/// Sessions that are kept before those that nobody asks about are forgotten.
const KEPT: usize = 256;

/// The turns of all sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<SessionId, Arc<Semaphore>>>>);

impl Turns {
    /// Waits for a turn.
    pub(crate) async fn of(&self, session: SessionId) -> Option<OwnedSemaphorePermit> {
        // It is never closed; without it nobody would be kept from asking.
        self.semaphore(session).acquire_owned().await.ok()
    }

    fn semaphore(&self, session: SessionId) -> Arc<Semaphore> {
        // Changed in single steps: a panic elsewhere leaves it whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.retain(|_, one| Arc::strong_count(one) > 1);
        }
        all.entry(session).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_session_has_only_so_many_turns_and_others_have_their_own() {
        let turns = Turns::default();
        let (one, other) = ("sess_a".parse().expect("an id"), "sess_b".parse().expect("an id"));
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(turns.of(one).await);
        }
        assert_eq!(turns.semaphore(one).available_permits(), 0);
        assert!(turns.of(other).await.is_some());
        held.pop();
        assert!(turns.of(one).await.is_some(), "a turn that is over is another's");
    }

    #[tokio::test]
    async fn who_is_not_asked_about_is_forgotten() {
        let turns = Turns::default();
        let kept = turns.of("sess_kept".parse().expect("an id")).await;
        for number in 0..2 * KEPT {
            drop(turns.of(format!("sess_{number}").parse().expect("an id")).await);
        }
        let all = turns.0.lock().expect("a lock");
        assert!(all.len() <= KEPT && all.contains_key(&"sess_kept".parse().expect("an id")));
        drop(kept);
    }
}

//! A rate limit: so many in a minute, so that what callers can make us write is bounded.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// A rate limit: counts what happens in the current minute.
#[derive(Debug)]
pub(crate) struct RateLimit {
    most: u32,
    minute: Mutex<Minute>,
}

#[derive(Debug)]
struct Minute {
    begun: Instant,
    taken: u32,
    /// How many were refused since one was let through.
    refused: u32,
}

impl RateLimit {
    /// Makes one that lets so many through in a minute.
    pub(crate) fn new(most: u32) -> RateLimit {
        RateLimit { most, minute: Mutex::new(Minute { begun: Instant::now(), taken: 0, refused: 0 }) }
    }

    /// Takes one, and tells how many were refused since the last; none if there are no more in this minute.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        if minute.begun.elapsed() >= MINUTE {
            (minute.begun, minute.taken) = (Instant::now(), 0);
        }
        if minute.taken == self.most {
            minute.refused = minute.refused.saturating_add(1);
            return None;
        }
        minute.taken += 1;
        Some(std::mem::take(&mut minute.refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_in_a_minute_and_the_rest_is_counted() {
        let limit = RateLimit::new(2);
        let five: Vec<_> = (0..5).map(|_| limit.take()).collect();
        assert_eq!(five, [Some(0), Some(0), None, None, None]);
        tokio::time::advance(MINUTE).await;
        assert_eq!([limit.take(), limit.take(), limit.take()], [Some(3), Some(0), None]);
    }
}

//! The rate limit of a sink: a bucket that fills with time and from which every message takes its share. Pure: time is handed in.

use std::num::NonZeroU32;

use rekindle_domain::time::Timestamp;

/// What the bucket holds at most, in milliseconds of refilling: an hour's worth of messages.
const FULL: u64 = 60 * 60 * 1000;

/// How full an empty bucket must be again before anything is let through. While much happens that makes four summaries an hour, rather
/// than one for every message that the limit has room for.
const REOPENS: u64 = FULL / 4;

/// Whether a message may be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Now; it has been counted.
    Now,
    /// Not before this: with what else happens until then, as one summary.
    Later(Timestamp),
}

/// The state of a limit.
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// What one message takes; nothing where there is no limit.
    share: u64,
    level: u64,
    closed: bool,
    seen: Option<Timestamp>,
}

impl RateLimit {
    /// Returns a limit of so many messages an hour, or none.
    pub fn new(per_hour: Option<NonZeroU32>) -> RateLimit {
        let share = per_hour.map_or(0, |most| FULL / u64::from(most.get()).min(FULL));
        RateLimit { share, level: FULL, closed: false, seen: None }
    }

    /// Decides about the next message, and counts it if it is let through.
    pub fn admit(&mut self, now: Timestamp) -> Admission {
        // A clock that was set back fills nothing.
        let passed = self.seen.map_or(0, |seen| now.millis_since(seen));
        self.seen = Some(now);
        self.level = (self.level + passed).min(FULL);
        let wanted = if self.closed { self.share.max(REOPENS) } else { self.share };
        if self.level >= wanted {
            self.level -= self.share;
            self.closed = false;
            return Admission::Now;
        }
        self.closed = true;
        let missing = self.share.max(REOPENS) - self.level;
        Admission::Later(now.plus_millis(i64::try_from(missing).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(per_hour: u32) -> RateLimit {
        RateLimit::new(NonZeroU32::new(per_hour))
    }

    #[test]
    fn an_hours_worth_goes_at_once_and_the_rest_as_few_summaries() {
        let mut limit = limit(30);
        let start = Timestamp::from_millis(1_000_000);
        assert!((0..30).all(|_| limit.admit(start) == Admission::Now));
        let later = start.plus_millis(15 * 60 * 1000);
        assert_eq!(limit.admit(start), Admission::Later(later));
        // What comes meanwhile waits for the same moment.
        assert_eq!(limit.admit(start.plus_millis(1000)), Admission::Later(later));
        assert_eq!(limit.admit(later.plus_millis(-1)), Admission::Later(later));
        assert_eq!(limit.admit(later), Admission::Now);
    }

    #[test]
    fn a_flood_of_a_day_is_held_to_the_limit() {
        let mut limit = limit(30);
        let start = Timestamp::from_millis(0);
        let seconds = (0..24 * 60 * 60).map(|second| start.plus_millis(second * 1000));
        let through = seconds.filter(|now| limit.admit(*now) == Admission::Now).count();
        assert!((700..=30 * 25).contains(&through), "{through}");
    }

    #[test]
    fn rare_limits_none_and_clocks_that_jump_are_kept_to() {
        let mut rare = limit(1);
        let start = Timestamp::from_millis(0);
        assert_eq!(rare.admit(start), Admission::Now);
        assert_eq!(rare.admit(start), Admission::Later(start.plus_millis(FULL as i64)));
        assert_eq!(
            rare.admit(start.plus_millis(-5_000_000)),
            Admission::Later(start.plus_millis(FULL as i64 - 5_000_000))
        );
        let mut none = limit(0);
        assert!((0..100_000).all(|_| none.admit(start) == Admission::Now));
        let mut many = limit(u32::MAX);
        assert!((0..100_000).all(|_| many.admit(start) == Admission::Now));
    }
}

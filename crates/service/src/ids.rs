//! What ids and secrets are made of: random bytes, and the time as ids have it.

use std::cell::RefCell;

use rekindle_domain::id::{TokenId, WaitId};
use rekindle_domain::time::Timestamp;

/// There are no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system cannot provide random numbers")]
pub struct NoRandomness;

/// Random numbers for ids that are drawn at a time: the system takes hardly longer for all of them than for one.
const DRAWN_AT_A_TIME: usize = 32;

thread_local! {
    /// Random numbers that this thread has drawn, and not used yet.
    static DRAWN: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

/// Returns 128 random bits for an id, which is no secret.
pub(crate) fn random() -> Result<u128, NoRandomness> {
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.is_empty() {
            let bytes: [u8; 16 * DRAWN_AT_A_TIME] = random_bytes()?;
            drawn.extend(bytes.as_chunks().0.iter().copied().map(u128::from_le_bytes));
        }
        drawn.pop().ok_or(NoRandomness)
    })
}

/// Returns random bytes straight from the system, for a secret.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// Returns the names of a new wait: its own, that of its token, and the token's secret.
pub(crate) fn wait_names(now: Timestamp) -> Result<(WaitId, TokenId, [u8; 32]), NoRandomness> {
    let now = millis(now);
    Ok((WaitId::mint(now, random()?), TokenId::mint(now, random()?), random_bytes()?))
}

/// Returns the time as ids have it.
pub(crate) fn millis(now: Timestamp) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_number_is_drawn_twice_by_any_thread() {
        let draw = || (0..5 * DRAWN_AT_A_TIME).map(|_| random().expect("drawn")).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw)).collect();
        let drawn = threads.into_iter().flat_map(|thread| thread.join().expect("ended"));
        assert_eq!(drawn.collect::<HashSet<_>>().len(), 4 * 5 * DRAWN_AT_A_TIME);
    }
}

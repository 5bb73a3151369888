//! What ids and secrets are made of: random bytes, and the time as ids have it.

use rekindle_domain::id::{TokenId, WaitId};
use rekindle_domain::time::Timestamp;

/// There are no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct NoRandomness;

/// Returns 128 random bits for an id.
pub(crate) fn random() -> Result<u128, NoRandomness> {
    Ok(u128::from_le_bytes(random_bytes()?))
}

/// Returns random bytes: those of an id, or the secret of a token.
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

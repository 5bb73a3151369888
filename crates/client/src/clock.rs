//! Time and chance: the system's clock and random numbers, which the libraries below never ask for.

use std::time::{SystemTime, UNIX_EPOCH};

use rekindle_domain::id::BootId;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::Opener;

use crate::failure::Failure;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
        };
        Timestamp::from_millis(millis.saturating_add(set_ahead()))
    }
}

/// How far a test has set the clock, in milliseconds: what the file says that `REKINDLE_CLOCK_AHEAD` names. Nothing can set
/// it in builds without debug assertions.
#[cfg(debug_assertions)]
fn set_ahead() -> i64 {
    let file = std::env::var_os("REKINDLE_CLOCK_AHEAD");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[cfg(not(debug_assertions))]
fn set_ahead() -> i64 {
    0
}

/// Returns the milliseconds that an id minted now begins with.
pub fn id_millis() -> u64 {
    u64::try_from(SystemClock.now().as_millis()).unwrap_or(0)
}

/// Returns 128 bits from the system's random numbers.
pub fn random() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::failed("no_random_numbers", anyhow::Error::msg(error.to_string())))?;
    Ok(u128::from_le_bytes(bytes))
}

/// Returns this process as one that opens a home.
pub fn opener() -> Result<Opener, Failure> {
    Ok(Opener { pid: std::process::id(), boot_id: BootId::mint(id_millis(), random()?) })
}

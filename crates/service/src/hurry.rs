//! Times that a test shortens, in builds with debug assertions only: nobody waits half a minute to see that a limit holds.

use std::time::Duration;

/// Returns the milliseconds that the variable `REKINDLE_` with this name behind it has, or the usual time.
#[cfg(debug_assertions)]
pub(crate) fn hurried(name: &str, usual: Duration) -> Duration {
    let wanted = std::env::var(format!("REKINDLE_{name}")).ok().and_then(|text| text.parse().ok());
    wanted.map_or(usual, Duration::from_millis)
}

#[cfg(not(debug_assertions))]
pub(crate) fn hurried(_name: &str, usual: Duration) -> Duration {
    usual
}

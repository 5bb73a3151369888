//! Named places where a test has the daemon die, in builds with debug assertions only.

/// Dies here, without a last word, if `REKINDLE_CRASH_AT` names this place.
#[cfg(debug_assertions)]
pub(crate) fn crash_point(name: &str) {
    if std::env::var_os("REKINDLE_CRASH_AT").is_some_and(|wanted| wanted == name) {
        use rustix::process::{Signal, getpid, kill_process};
        let _ = kill_process(getpid(), Signal::KILL);
        // Until it arrives.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn crash_point(_name: &str) {}

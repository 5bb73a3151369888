//! The daemon's panic hook: whatever panics ends the whole process, in every build, and the session that was being worked on is
//! reported, so that it cannot end every daemon after this one too.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::path::Path;

use rekindle_client::clock::SystemClock;
use rekindle_domain::id::BootId;
use rekindle_domain::quarantine::Crash;
use rekindle_domain::time::Clock;
use rekindle_service::error::chain;
use rekindle_service::session_span;
use rekindle_store::crash_report;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;

/// Has panics reported below a home from now on, and logged; `flush` waits for the log to be written.
pub(crate) fn install(
    disk: SharedDisk,
    home: &Path,
    boot_id: BootId,
    flush: impl Fn() + Send + Sync + 'static,
) {
    let layout = Layout::new(home);
    std::panic::set_hook(Box::new(move |panic| {
        let work = crash_report::current();
        let crash = crash(panic, boot_id, work.map_or("no particular session", |work| work.doing));
        // Best effort: whoever dies cannot wait for room on a disk.
        let reported = work.map(|work| crash_report::report(&*disk, &layout, work.session, crash.clone()));
        let _in_session = work.map(|work| session_span(work.session).entered());
        let Crash { doing, thread, location, message, .. } = &crash;
        let backtrace =
            Some(Backtrace::capture()).filter(|trace| trace.status() == BacktraceStatus::Captured);
        let backtrace = backtrace.map(|trace| trace.to_string());
        tracing::error!(doing, thread, location, backtrace, "a bug, please report it: {message}");
        if let Some(Err(error)) = reported {
            tracing::error!("the crash could not be reported: {}", chain(&error));
        }
        flush();
        std::process::abort();
    }));
}

fn crash(panic: &PanicHookInfo<'_>, boot_id: BootId, doing: &str) -> Crash {
    let location = panic.location().map(ToString::to_string);
    Crash {
        at: SystemClock.now(),
        boot_id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        doing: doing.to_owned(),
        thread: std::thread::current().name().unwrap_or("?").to_owned(),
        location: location.unwrap_or_else(|| "?".to_owned()),
        message: panic.payload_as_str().unwrap_or("it panicked").to_owned(),
    }
}

//! The daemon's panic hook: whatever panics ends the whole process, in every build, and the session that was being worked on is
//! reported, so that it cannot end every daemon after this one too.

use std::io::{Write, stderr};
use std::panic::PanicHookInfo;
use std::path::Path;

use rekindle_client::clock::SystemClock;
use rekindle_domain::id::BootId;
use rekindle_domain::quarantine::Crash;
use rekindle_domain::time::Clock;
use rekindle_store::crash_report::{self, Work};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;

/// Has panics reported below a home from now on.
pub(super) fn install(disk: SharedDisk, home: &Path, boot_id: BootId) {
    let layout = Layout::new(home);
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if let Some(work) = crash_report::current() {
            let crash = crash(panic, boot_id, work);
            // Best effort: whoever dies cannot wait for room on a disk.
            if let Err(error) = crash_report::report(&*disk, &layout, work.session, crash) {
                let _ = writeln!(stderr(), "the crash over {} could not be reported: {error}", work.session);
            }
        }
        print(panic);
        std::process::abort();
    }));
}

fn crash(panic: &PanicHookInfo<'_>, boot_id: BootId, work: Work) -> Crash {
    let location = panic.location().map(ToString::to_string);
    Crash {
        at: SystemClock.now(),
        boot_id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        doing: work.doing.to_owned(),
        thread: std::thread::current().name().unwrap_or("?").to_owned(),
        location: location.unwrap_or_else(|| "?".to_owned()),
        message: panic.payload_as_str().unwrap_or("it panicked").to_owned(),
    }
}

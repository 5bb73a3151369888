//! Becoming a home's owner right behind someone who was killed. A child that it was just starting has the lock too, until
//! it becomes another program: a moment, but on a busy machine one that can be met.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::time::Clock;
use rekindle_store::disk::SharedDisk;
use rekindle_store::home::HomeError;
use rekindle_store::{OpenError, Opener, Store};

/// How long such a child may take.
const MOST: Duration = Duration::from_secs(2);

/// Opens a home; one whose owner is gone is tried again for a moment.
pub fn open(
    disk: &SharedDisk,
    home: &Path,
    opener: Opener,
    clock: &Arc<dyn Clock>,
) -> Result<Store, OpenError> {
    let begin = Instant::now();
    loop {
        match Store::open(disk.clone(), home, opener, clock.clone()) {
            Err(OpenError::Home(HomeError::Locked { owner, .. }))
                if begin.elapsed() < MOST && owner.pid.is_some_and(is_gone) =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

fn is_gone(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

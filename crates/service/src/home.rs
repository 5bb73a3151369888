//! The home and who owns it: becoming its owner right behind someone who was killed. A child that it was just starting has
//! the lock too, until it becomes another program: a moment, but on a busy machine one that can be met. And the epoch under
//! which its new owner commands.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::time::Clock;
use rekindle_store::disk::{Disk, SharedDisk, is_shortage, read_all, replace};
use rekindle_store::home::HomeError;
use rekindle_store::{OpenError, Opener, Store};
use serde::{Deserialize, Serialize};

use crate::error::chain;
use crate::test_knobs::crash_point;

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

/// The file in a home that has the highest epoch under which anyone commanded there.
const EPOCH: &str = "epoch";

/// More than such a file ever has.
const MOST_EPOCH: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct EpochFile {
    epoch: u64,
}

/// Raises the epoch of a home whose lock we have: to one more than the highest in the home and in any holder's directory, which
/// the caller has looked for.
/// It is on disk before anyone commands under it. A file that cannot be read or written stops nobody, because no holder obeys
/// an epoch below its own: the file keeps epochs rising when holders are gone.
///
/// On a full disk `make_room` is called, and then it is tried again: a file that lags behind would give two daemons the same
/// epoch.
pub fn next_epoch(disk: &dyn Disk, home: &Path, highest: u64, make_room: impl FnOnce()) -> u64 {
    let path = home.join(EPOCH);
    let kept = match read_epoch(disk, &path) {
        Ok(epoch) => epoch,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => {
            tracing::warn!("{} cannot be read and is rewritten: {}", path.display(), chain(&error));
            0
        }
    };
    let epoch = kept.max(highest).saturating_add(1);
    crash_point("epoch.before");
    let bytes = serde_json::to_vec(&EpochFile { epoch }).unwrap_or_default();
    let mut written = replace(disk, &path, &bytes);
    if written.as_ref().is_err_and(is_shortage) {
        make_room();
        written = replace(disk, &path, &bytes);
    }
    if let Err(error) = written {
        tracing::warn!(epoch, "{} cannot be written: {}", path.display(), chain(&error));
    }
    crash_point("epoch.after");
    epoch
}

fn read_epoch(disk: &dyn Disk, path: &Path) -> io::Result<u64> {
    let file: EpochFile = serde_json::from_slice(&read_all(disk, path, MOST_EPOCH)?)?;
    Ok(file.epoch)
}

fn is_gone(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

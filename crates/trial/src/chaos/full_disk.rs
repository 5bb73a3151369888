//! A disk that becomes full: a small file system in memory, where that can be had. It fills up at any moment, with a daemon
//! at work or before one starts, and has room again without anybody being restarted.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rekindle_client::failure::Failure;
use rekindle_seeded::Rng;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;

use super::processes::Processes;
use super::shortage::{Lack, play};
use crate::ground::end_all;

/// The size of the disk: room for a home, and not for much more.
const OPTIONS: &std::ffi::CStr = c"size=64m,mode=0700";

/// Room that may be left for writes when everything else is taken.
const LEFT: u64 = 256 << 10;

/// A file system of our own, which goes when it is dropped.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        end_all(&self.0.join("home"));
        // Whoever still has something open there keeps it until they end.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Lack for Disk {
    fn words(&self) -> &'static str {
        "a full disk"
    }

    fn begin(&mut self, _: &Processes, rng: &mut Rng) -> std::io::Result<()> {
        // To the last page, or with a little left that runs out later.
        let left = if rng.chance(2, 3) { 0 } else { rng.below(LEFT) };
        fill_up(&self.0.join(BALLAST), left)
    }

    fn end(&mut self, _: &Processes) -> std::io::Result<()> {
        std::fs::remove_file(self.0.join(BALLAST))
    }

    fn newcomers(&self) -> usize {
        1
    }
}

/// What takes the room.
const BALLAST: &str = "ballast";

/// Fills a disk; says why not if there is none to fill.
pub(super) fn fill(
    at: &Path,
    runtime: &Path,
    request: &Value,
    told: PathBuf,
    processes: &mut Processes,
    pick: u64,
) -> Result<Result<(), String>, Failure> {
    std::fs::create_dir(at).map_err(|error| Failure::failed("tiny_disk", error))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    if let Err(error) = mount("rekindle-chaos", at, "tmpfs", flags, Some(OPTIONS)) {
        let _ = std::fs::remove_dir(at);
        return Ok(Err(format!("no small file system can be mounted here ({error}): that takes root")));
    }
    let mut disk = Disk(at.to_owned());
    let mut own = Processes::new(&disk.0.join("home"), runtime, &processes.cancel);
    // Agents pause long before a disk is full; on one as small as this they would never begin.
    own.more.push(("REKINDLE_MIN_FREE_BYTES", PathBuf::from("0")));
    let played = play(&mut own, &mut disk, request, told, &mut Rng::new(pick));
    processes.sights.append(&mut own.sights);
    own.kill_all();
    played.map(Ok)
}

/// Takes all room of a disk but a little.
fn fill_up(ballast: &Path, left: u64) -> std::io::Result<()> {
    let mut file = File::create(ballast)?;
    let piece = vec![0x5a; 1 << 16];
    let mut len = 0;
    while let Ok(written) = file.write(&piece) {
        len += written as u64;
    }
    if left > 0 { file.set_len(len.saturating_sub(left)) } else { Ok(()) }
}

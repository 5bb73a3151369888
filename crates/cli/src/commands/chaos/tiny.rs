//! A disk that becomes full: a small file system in memory, where that can be had. What was acknowledged is there, the rest is
//! refused with a word, and when there is room again everything goes on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};

use super::super::ground::end_all;
use super::super::ground::look::lines;
use super::ask::{PATIENCE, Reply};
use super::oracle::Sight;
use super::troupe::Troupe;
use crate::failure::Failure;

/// The size of the disk: room for a home, and not for much more.
const OPTIONS: &std::ffi::CStr = c"size=64m,mode=0700";

/// Room that is left for writes when everything else is taken.
const LEFT: u64 = 256 << 10;

/// Most writes before the disk has to be full.
const MOST_WRITES: usize = 2000;

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

/// Fills a disk; says why not if there is none to fill.
pub(super) fn fill(
    at: &Path,
    runtime: &Path,
    request: &Value,
    troupe: &mut Troupe,
) -> Result<Result<(), String>, Failure> {
    std::fs::create_dir(at).map_err(|error| Failure::failed("tiny_disk", error))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    if let Err(error) = mount("rekindle-chaos", at, "tmpfs", flags, Some(OPTIONS)) {
        let _ = std::fs::remove_dir(at);
        return Ok(Err(format!("no small file system can be mounted here ({error}): that takes root")));
    }
    let disk = Disk(at.to_owned());
    let mut own = Troupe::new(&disk.0.join("home"), runtime, &troupe.leaving);
    if let Some(sight) = filled(&disk, &mut own, request)? {
        troupe.sights.push(sight);
    }
    own.kill_all();
    Ok(Ok(()))
}

fn filled(disk: &Disk, own: &mut Troupe, request: &Value) -> Result<Option<Sight>, Failure> {
    let failed = |error: std::io::Error| Failure::failed("tiny_disk", error);
    if !own.start() {
        return Ok(None);
    }
    let asker = own.asker()?;
    let Some(id) = asker.post("/api/sessions", request).and_then(|reply| reply.text("id")) else {
        return Ok(None);
    };
    // The next daemon finds no room to reserve: what it writes has to fit into what is left.
    own.leave();
    let ballast = disk.0.join("ballast");
    fill_up(&ballast).map_err(failed)?;
    if !own.start() {
        return Ok(None);
    }
    let path = format!("/api/sessions/{id}");
    let (mut given, mut announced) = (BTreeSet::new(), false);
    for number in 0..MOST_WRITES {
        let title = format!("{number} {}", "x".repeat(180));
        match asker.insist("PATCH", &path, Some(&json!({"title": title})), None) {
            Some(reply) if reply.is_yes() => given.insert(title),
            Some(reply) => {
                announced = reply.status == 507;
                break;
            }
            None => break,
        };
    }
    std::fs::remove_file(&ballast).map_err(failed)?;
    let goes_on = own.leaving.wait_for(PATIENCE / 4, || {
        asker.once("PATCH", &path, Some(&json!({"title": "room again"})), None).filter(Reply::is_yes)
    });
    own.kill();
    own.start();
    let lines = lines(&own.home, &id)?;
    let title =
        |line: &String| serde_json::from_str::<Value>(line).ok()?["title"].as_str().map(str::to_owned);
    let titles: BTreeSet<String> = lines.iter().filter_map(title).collect();
    let kept = given.intersection(&titles).count();
    Ok(Some(Sight::FullDisk { acknowledged: given.len(), kept, announced, goes_on: goes_on.is_some() }))
}

/// Takes all room of a disk but a little.
fn fill_up(ballast: &Path) -> std::io::Result<()> {
    let mut file = File::create(ballast)?;
    let piece = vec![0x5a; 1 << 16];
    let mut len = 0;
    while let Ok(written) = file.write(&piece) {
        len += written as u64;
    }
    file.set_len(len.saturating_sub(LEFT))
}

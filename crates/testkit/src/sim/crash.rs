//! What is left of a disk when the power goes or the process is killed: a new disk, drawn from a seed.

use super::content::Content;
use super::disk::SimDisk;
use super::image::Image;
use super::survive;
use crate::rng::Rng;

/// Writes of a killed process end at a boundary of a page.
const PAGE: usize = 4096;

/// How likely the outcomes of a crash are, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Physics {
    /// The whole disk keeps all that is pending.
    pub disk_keeps_all: u64,
    /// The whole disk keeps nothing that is pending.
    pub disk_keeps_nothing: u64,
    /// Otherwise: one file or directory keeps all that is pending.
    pub keeps_all: u64,
    /// Otherwise: one file or directory keeps nothing that is pending.
    pub keeps_nothing: u64,
    /// Of the files that keep some: the changes up to one of them are kept, in order, instead of a mix of
    /// blocks.
    pub prefix: u64,
    /// Of the mixed files: blocks that grew without being written may hold rubbish instead of zeros.
    pub stale: u64,
    /// Of the stale blocks: they come from some file of the disk instead of being noise.
    pub recycled: u64,
    /// A kill right after a write that crosses pages tears it.
    pub torn_by_kill: u64,
    /// The sizes of blocks that survive or vanish together; one is drawn for each file.
    pub blocks: &'static [usize],
}

impl Default for Physics {
    /// Both extremes are common, because most faults in recovery show at one of them.
    fn default() -> Physics {
        Physics {
            disk_keeps_all: 5,
            disk_keeps_nothing: 5,
            keeps_all: 30,
            keeps_nothing: 30,
            prefix: 30,
            stale: 15,
            recycled: 25,
            torn_by_kill: 70,
            blocks: &[16, 64, 512, 4096],
        }
    }
}

/// What becomes of the pending changes of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Nothing,
    Everything,
    Mixed,
}

impl Physics {
    /// Draws the fate of one file.
    pub(super) fn fate(&self, rng: &mut Rng) -> Fate {
        draw(rng, self.keeps_all, self.keeps_nothing)
    }

    /// Draws the fate of one file or directory of a disk that met its own.
    pub(super) fn fate_within(&self, disk: Fate, rng: &mut Rng) -> Fate {
        match disk {
            Fate::Nothing | Fate::Everything => disk,
            Fate::Mixed => self.fate(rng),
        }
    }
}

fn draw(rng: &mut Rng, everything: u64, nothing: u64) -> Fate {
    match rng.below(100) {
        n if n < everything => Fate::Everything,
        n if n < everything + nothing => Fate::Nothing,
        _ => Fate::Mixed,
    }
}

impl SimDisk {
    /// Returns a disk as a power cut at this moment may leave this one.
    ///
    /// What was synced is there. Of the rest, each file keeps all, nothing, or a mix of blocks, and each
    /// directory a prefix of its changes, independently. On the new disk nothing is pending, open or locked,
    /// operations count from 0, and there are no faults.
    pub fn power_cut(&self, rng: &mut Rng) -> SimDisk {
        let mut image = self.image();
        image.lose_power(rng);
        SimDisk::from_image(image)
    }

    /// Returns a disk as a kill of the process at this moment may leave this one.
    ///
    /// The page cache outlives the process, so all live bytes and names are there and stay pending; only if
    /// the last operation was a write may its end be missing, from a 4096-byte boundary of the file on.
    /// Nothing is open or locked, operations count from 0, and there are no faults.
    pub fn process_kill(&self, rng: &mut Rng) -> SimDisk {
        let mut image = self.image();
        image.tear_last_write(rng);
        image.restart(rng);
        SimDisk::from_image(image)
    }
}

impl Image {
    fn lose_power(&mut self, rng: &mut Rng) {
        let physics = self.physics;
        let disk = draw(rng, physics.disk_keeps_all, physics.disk_keeps_nothing);
        let others: Vec<_> = self.files.values().map(|file| file.content.live().clone()).collect();
        self.tree.lose_power(disk, &physics, rng);
        self.collect(|_| false);
        for file in self.files.values_mut() {
            let fate = physics.fate_within(disk, rng);
            let left = survive::after_power_cut(&file.content, (fate, &physics), &others, rng);
            file.content = Content::settled(left);
        }
        self.restart(rng);
    }

    fn tear_last_write(&mut self, rng: &mut Rng) {
        let Some((inode, undo)) = self.last_write.take() else { return };
        let end = undo.offset + undo.len;
        let boundaries: Vec<usize> =
            (undo.offset / PAGE + 1..end.div_ceil(PAGE)).map(|page| page * PAGE).collect();
        if boundaries.is_empty() || !rng.chance(self.physics.torn_by_kill, 100) {
            return;
        }
        let keep = rng.pick(&boundaries) - undo.offset;
        if let Some(file) = self.files.get_mut(&inode) {
            file.content.tear(&undo, keep);
        }
    }

    fn restart(&mut self, rng: &mut Rng) {
        self.ops = 0;
        self.bytes_written = 0;
        self.last_write = None;
        self.rng = rng.fork();
    }
}

//! What is left of a disk when the power goes or the process is killed: a new disk, drawn from a seed.

use super::content::Content;
use super::disk::SimDisk;
use super::image::Image;
use super::physics::draw;
use super::survive;
use crate::rng::Rng;

/// Writes of a killed process end at a boundary of a page.
const PAGE: usize = 4096;

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

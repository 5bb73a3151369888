//! How likely the outcomes of a crash are, and the fate that is drawn from that for each file and directory.

use crate::rng::Rng;

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

pub(super) fn draw(rng: &mut Rng, everything: u64, nothing: u64) -> Fate {
    match rng.below(100) {
        n if n < everything => Fate::Everything,
        n if n < everything + nothing => Fate::Nothing,
        _ => Fate::Mixed,
    }
}

//! What tells one state of a file from another without reading it, and when that can be trusted.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Size, times, inode and mode of a file. Two states of a file that differ in content differ in this, unless the second was
/// written within the granularity of the file system's clock: see [`FileStamp::is_settled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    /// Length in bytes.
    pub(crate) size: u64,
    /// Last change of the content, in nanoseconds since 1970. Anyone may set it.
    pub(crate) mtime_ns: i64,
    /// Last change of content or properties, in nanoseconds since 1970. Nobody sets it but the kernel.
    pub(crate) ctime_ns: i64,
    /// Number of the inode.
    pub(crate) inode: u64,
    /// Type and permission bits.
    pub(crate) mode: u32,
}

/// How far a file's times may lag behind the clock: they are those of the last timer interrupt, of which there are at least
/// 100 a second; twice that to be sure.
const FINE_GRANULARITY_NS: i64 = 20_000_000;

/// The same on file systems that keep whole seconds, or only even ones.
const COARSE_GRANULARITY_NS: i64 = 2_000_000_000;

impl FileStamp {
    /// Returns the stamp that the kernel reports.
    pub(crate) fn of(stat: &Stat) -> FileStamp {
        FileStamp {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
            mode: stat.st_mode,
        }
    }

    /// Returns true if the file cannot change any more without its stamp changing too, given a moment before it was opened.
    ///
    /// A file written just before that moment could be written again within the same tick of the clock and look the same.
    pub(crate) fn is_settled(&self, before_open_ns: i64) -> bool {
        // A time of change without a fraction is one of a file system that keeps none, or one in a billion.
        let is_coarse = self.ctime_ns % 1_000_000_000 == 0;
        let granularity = if is_coarse { COARSE_GRANULARITY_NS } else { FINE_GRANULARITY_NS };
        self.mtime_ns.max(self.ctime_ns) < before_open_ns.saturating_sub(granularity)
    }
}

/// What tells one list of a directory's names from another: its times and its inode. A name that comes, goes or changes what it
/// stands for changes the directory's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryStamp(pub(crate) [u8; DirectoryStamp::BYTES]);

impl DirectoryStamp {
    pub(crate) const BYTES: usize = 24;

    pub(crate) fn of(stamp: &FileStamp) -> DirectoryStamp {
        let mut bytes = [0; DirectoryStamp::BYTES];
        bytes[..8].copy_from_slice(&stamp.mtime_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&stamp.ctime_ns.to_le_bytes());
        bytes[16..].copy_from_slice(&stamp.inode.to_le_bytes());
        DirectoryStamp(bytes)
    }
}

/// File systems whose directories change their times whenever their names change, by the numbers that the kernel has for them:
/// ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs. Elsewhere (networks, layers, other systems' disks) nobody promises it.
const EXACT_FILE_SYSTEMS: [u64; 7] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

/// Returns true if the times of directories can be trusted on a file system of this type.
pub(crate) fn has_exact_directories(file_system: u64) -> bool {
    EXACT_FILE_SYSTEMS.contains(&file_system)
}

/// Returns the clock that file times are compared with, in nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    // Before 1970 nothing is settled, which is safe.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn nanoseconds(seconds: i64, fraction: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_settled_once_both_times_are_older_than_the_clock_can_tell() {
        let opened = 1_000_000_000_000_000_001;
        let stamp = |mtime_ns, ctime_ns| FileStamp { size: 1, mtime_ns, ctime_ns, inode: 1, mode: 0o644 };
        let old = opened - FINE_GRANULARITY_NS - 1;
        assert!(stamp(old, old).is_settled(opened));
        assert!(!stamp(old + 1, old).is_settled(opened), "written just before");
        assert!(!stamp(old, old + 1).is_settled(opened), "renamed or its mode changed just before");
        assert!(!stamp(opened + 5, old).is_settled(opened), "a time in the future");
        // Whole seconds: another write in the same second would look the same.
        let second = opened - opened % 1_000_000_000 - 2_000_000_000;
        assert!(!stamp(second - 5, second + 1_000_000_000).is_settled(opened));
        assert!(stamp(second - 5, second - 1_000_000_000).is_settled(opened));
        assert!(stamp(old, second + 7).is_settled(opened));
    }
}

//! SQLite needs locks and a log beside its file that all see alike, which file systems over a network do not promise: there it is not
//! opened at all.

use std::path::Path;

/// Returns the name of a file system over a network, by the number that the system has for it (`statfs(2)`). What is behind FUSE
/// is not known, and is taken for a disk.
fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517B | 0xFE53_4D42 => "SMB",
        0xFF53_4D42 => "CIFS",
        // OpenAFS, and the kernel's own.
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x00C3_6400 => "Ceph",
        0x0102_1997 => "9P",
        0x0000_564C => "NCP",
        0x7375_7245 => "Coda",
        _ => return None,
    })
}

/// Returns the number of the file system that a file is on, or will be. None if that cannot be told: whoever opens it hears why.
fn magic_of(path: &Path) -> Option<u32> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = rustix::fs::statfs(path).or_else(|_| rustix::fs::statfs(directory)).ok()?;
    // All have 32 bits, in a number that is longer on some machines and has a sign on others.
    Some(found.f_type as u32)
}

/// Returns why a database must not be in a file, and where else it could be; none if it may.
pub(super) fn refusal(path: &Path) -> Option<String> {
    let name = network_name(magic_of(path)?)?;
    Some(format!(
        "{} is on a network file system ({name}), where SQLite can lose rows; set [tasks] path in config.toml to a \
         local disk",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        // As in linux/magic.h, cifs and the manual of statfs.
        let cases = [
            (0x6969, Some("NFS")),
            (0x517B, Some("SMB")),
            (0xFE53_4D42, Some("SMB")),
            (0xFF53_4D42, Some("CIFS")),
            (0x5346_414F, Some("AFS")),
            (0x6B41_4653, Some("AFS")),
            (0x00C3_6400, Some("Ceph")),
            (0x0102_1997, Some("9P")),
            (0x564C, Some("NCP")),
            (0x7375_7245, Some("Coda")),
            // ext, XFS, Btrfs, ZFS, tmpfs, overlayfs, FUSE.
            (0xEF53, None),
            (0x5846_5342, None),
            (0x9123_683E, None),
            (0x2FC1_2FC1, None),
            (0x0102_1994, None),
            (0x794C_7630, None),
            (0x6573_5546, None),
        ];
        for (magic, name) in cases {
            assert_eq!(network_name(magic), name, "{magic:#x}");
        }
    }

    #[test]
    fn the_file_system_of_a_file_is_known_before_there_is_one() {
        let proc = Some(rustix::fs::PROC_SUPER_MAGIC as u32);
        assert_eq!(magic_of(Path::new("/proc/self/status")), proc);
        assert_eq!(magic_of(Path::new("/proc/tasks.db")), proc);
        assert_eq!(magic_of(Path::new("/proc/no/such/tasks.db")), None);
        assert_eq!(magic_of(Path::new("tasks.db")), magic_of(Path::new(".")));
        assert_eq!(refusal(Path::new("/proc/tasks.db")), None);
    }
}

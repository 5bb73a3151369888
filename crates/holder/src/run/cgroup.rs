//! A control group for the agent, where one can be made: the only thing that no child can leave unseen. Without
//! one the tree is found by ancestry, process group and mark.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Makes a group below our own; none where the file system does not let us. Returns its directory and where a process writes `0`
/// to enter: its children are born inside.
pub(super) fn make(holder_id: &str) -> Option<(PathBuf, File)> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    make_below(&place(&own, &mounts)?, holder_id)
}

fn make_below(parent: &Path, holder_id: &str) -> Option<(PathBuf, File)> {
    let path = parent.join(format!("rekindle-{holder_id}"));
    std::fs::create_dir(&path).ok()?;
    // A file that is not there is none that the kernel made.
    let door =
        File::options().write(true).open(path.join("cgroup.procs")).inspect_err(|_| remove(&path)).ok()?;
    Some((path, door))
}

/// Removes the group; it must be empty.
pub(super) fn remove(cgroup: &Path) {
    let _ = std::fs::remove_dir(cgroup);
}

/// Tells whether nobody is in the group; of one that is gone, nobody is.
pub(super) fn is_empty(cgroup: &Path) -> bool {
    match std::fs::read_to_string(cgroup.join("cgroup.events")) {
        Ok(events) => events.lines().any(|line| line == "populated 0"),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Returns the directory of our own group, by what the kernel says of groups and mounts. Next to the old hierarchies the
/// new one may be mounted anywhere, and from any of its groups on.
fn place(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut words = mount.split(' ').skip(3);
        let (root, at) = (words.next()?, words.next()?);
        let below = own.strip_prefix(root.trim_end_matches('/'))?;
        let inside = below.is_empty() || below.starts_with('/');
        inside.then(|| Path::new(at).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURE: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                        35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn our_own_group_is_found_wherever_the_hierarchy_is_mounted() {
        let place = |own, mounts| place(own, mounts).map(|path| path.display().to_string());
        let user = "0::/user.slice/user-1000.slice\n";
        assert_eq!(place(user, PURE).as_deref(), Some("/sys/fs/cgroup/user.slice/user-1000.slice"));
        let mixed = "9:memory:/old\n1:name=systemd:/old\n0::/\n";
        let mounts = "40 31 0:37 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(place(mixed, mounts).as_deref(), Some("/sys/fs/cgroup/unified/"));
        let below = "35 24 0:30 /pods/one /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(place("0::/pods/one/us\n", below).as_deref(), Some("/sys/fs/cgroup/us"));
        assert_eq!(place("0::/pods/onemore\n", below), None, "it is not below what is mounted");
        assert_eq!(place("9:memory:/old\n", PURE), None, "there are only old hierarchies");
        assert_eq!(place(user, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"), None, "it is not mounted");
    }

    #[test]
    fn where_the_kernel_makes_no_group_nothing_is_left() {
        let parent = tempfile::tempdir().expect("a directory");
        assert!(make_below(parent.path(), "h_1").is_none(), "an ordinary directory");
        assert_eq!(std::fs::read_dir(parent.path()).expect("a directory").count(), 0);
        assert!(make_below(&parent.path().join("missing"), "h_1").is_none());
        std::fs::create_dir(parent.path().join("rekindle-h_2")).expect("made");
        assert!(make_below(parent.path(), "h_2").is_none(), "somebody else's");
        assert!(parent.path().join("rekindle-h_2").exists());
    }
}

//! A control group for the agent, where one can be made: the only thing that no child can leave unseen. Without
//! one the tree is found by ancestry, process group and mark.

use std::path::{Path, PathBuf};

/// Makes a group below our own; none where the file system does not let us.
pub(super) fn make(holder_id: &str) -> Option<PathBuf> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let path =
        Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/')).join(format!("rekindle-{holder_id}"));
    std::fs::create_dir(&path).ok()?;
    if !path.join("cgroup.procs").exists() {
        let _ = std::fs::remove_dir(&path);
        return None;
    }
    Some(path)
}

/// Puts a process into the group; its children are born there.
pub(super) fn enter(cgroup: &Path, pid: i32) -> bool {
    std::fs::write(cgroup.join("cgroup.procs"), pid.to_string()).is_ok()
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

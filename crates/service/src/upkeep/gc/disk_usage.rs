//! The room that a home takes, by what holds it.

use std::path::Path;

use rekindle_store::layout::{Layout, SessionFile, session_file};
use rekindle_wire::view::Space;

use super::size_of;

/// Measures what the parts of a home take; which blobs checkpoints hold is not told by their files.
pub(super) fn measure(layout: &Layout) -> Space {
    let mut space = Space::default();
    for path in entries(layout.home()) {
        let bytes = size_of(&path);
        match path.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            "sessions" => (space.sessions, space.kept_snapshots) = sessions(&path),
            "blobs" => space.blobs = bytes,
            "workspaces" => space.workspaces = bytes,
            "holders" => space.holders = bytes,
            "imports" => space.imports = bytes,
            "wal" => space.wal = bytes,
            _ => space.other += bytes,
        }
    }
    space
}

/// Measures logs and what stands beside them, and kept snapshots.
fn sessions(directory: &Path) -> (u64, u64) {
    let (mut logs, mut kept) = (0, 0);
    for path in entries(directory) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match session_file(name) {
            SessionFile::History(_) => kept += size_of(&path),
            _ => logs += size_of(&path),
        }
    }
    (logs, kept)
}

fn entries(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_by_what_holds_it() {
        let home = tempfile::tempdir().expect("a directory");
        for (path, bytes) in [
            ("sessions/sess_1.jsonl", 10),
            ("sessions/sess_1.json", 5),
            ("sessions/index.json", 2),
            ("sessions/sess_1.snapshots/000007-1.json.zst", 300),
            ("blobs/ab/cd.zst", 40),
            ("blobs/packs/1.pack", 60),
            ("workspaces/stat/1", 7),
            ("holders/h_1/journal", 1000),
            ("imports/x/y", 3),
            ("wal/00000001.wal", 9),
            ("logs/daemon.log", 20),
            ("home.json", 4),
        ] {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, vec![b'x'; bytes]).expect("written");
        }
        let expected = Space {
            sessions: 17,
            kept_snapshots: 300,
            checkpoints: None,
            blobs: 100,
            workspaces: 7,
            holders: 1000,
            imports: 3,
            wal: 9,
            other: 24,
        };
        assert_eq!(measure(&Layout::new(home.path())), expected);
    }
}

//! Captures of real directories: what is in the tree, what is left out, what is read again.

mod changing;
mod random;
mod repositories;
mod warm;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use crate::objects::{MemoryObjects, ObjectSource};
use crate::tree::{Limits, OwnedNode, TreeWalk};

/// A directory to capture, and where its objects go.
struct Lab {
    place: tempfile::TempDir,
    objects: MemoryObjects,
}

impl Lab {
    fn new() -> Lab {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir(place.path().join("root")).expect("a directory");
        Lab { place, objects: MemoryObjects::new() }
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn at(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root().join(OsStr::from_bytes(path.as_ref()))
    }

    fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn options(&self) -> CaptureOptions<'static> {
        CaptureOptions::new(self.root())
    }

    fn capture(&self) -> Captured {
        capture(&self.options(), &self.objects, &StatCache::new()).expect("captured")
    }

    /// Returns the tree as lines: type, path, and the content or target.
    fn show(&self, tree: BlobId) -> Vec<String> {
        let line = |entry: crate::tree::WalkedEntry| {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            match entry.node {
                OwnedNode::File { mode, size, content } => {
                    let bytes = self.objects.get(&content, u64::MAX).expect("kept");
                    assert_eq!(bytes.len() as u64, size, "{path}");
                    format!("{} {path} {}", mode.letter() as char, String::from_utf8_lossy(&bytes))
                }
                OwnedNode::Link { target } => format!("l {path} {}", String::from_utf8_lossy(&target)),
                OwnedNode::Directory { .. } => format!("d {path}"),
            }
        };
        TreeWalk::new(&self.objects, tree, Limits::default())
            .map(|entry| line(entry.expect("valid")))
            .collect()
    }

    fn skipped(captured: &Captured) -> Vec<(String, SkipReason)> {
        let line = |skip: &Skip| (String::from_utf8_lossy(&skip.path).into_owned(), skip.reason);
        captured.skipped.first.iter().map(line).collect()
    }

    /// Captures until nothing has to be read any more, and returns that cache.
    fn warm(&self) -> StatCache {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut cache = StatCache::new();
        loop {
            let captured = capture(&self.options(), &self.objects, &cache).expect("captured");
            cache = captured.cache.unwrap_or(cache);
            if captured.files_read == 0 {
                return cache;
            }
            assert!(Instant::now() < deadline, "files never settle");
        }
    }
}

#[test]
fn a_directory_becomes_a_tree_of_everything_that_counts() {
    let lab = Lab::new();
    lab.write("a/plain", "text");
    lab.write("a/run", "#!");
    lab.mode("a/run", 0o755);
    lab.write("a/secret", "key");
    lab.mode("a/secret", 0o600);
    lab.write("a/tool", "bin");
    lab.mode("a/tool", 0o700);
    lab.write(b"a/\xff\xfe", "odd");
    lab.write("empty file", "");
    fs::create_dir_all(lab.at("b/empty")).expect("directories");
    symlink("../nowhere", lab.at("b/dangling")).expect("a link");
    symlink(".", lab.at("b/loop")).expect("a link");
    symlink("/etc/passwd", lab.at("out")).expect("a link");
    lab.write(".git/config", "never");
    lab.write(".rekindle-0a.tmp", "never");
    lab.write(".hidden", "yes");
    let captured = lab.capture();
    assert_eq!(
        lab.show(captured.tree),
        [
            "f .hidden yes",
            "d a",
            "f a/plain text",
            "x a/run #!",
            "p a/secret key",
            "q a/tool bin",
            "f a/\u{fffd}\u{fffd} odd",
            "d b",
            "l b/dangling ../nowhere",
            "d b/empty",
            "l b/loop .",
            "f empty file ",
            "l out /etc/passwd",
        ]
    );
    assert_eq!(captured.totals, Totals { files: 7, links: 3, directories: 3, bytes: 4 + 2 + 3 + 3 + 3 + 3 });
    assert_eq!((captured.skipped.total(), captured.git, captured.notes), (0, None, vec![]));
}

#[test]
fn equal_contents_have_equal_hashes_whatever_the_order_the_times_and_the_threads() {
    let (one, two) = (Lab::new(), Lab::new());
    let paths: Vec<String> = (0..40).map(|index| format!("d{}/{}/f{index}", index % 3, index % 7)).collect();
    for path in &paths {
        one.write(path, path);
    }
    for path in paths.iter().rev() {
        two.write(path, "another first");
        two.write(path, path);
        let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000);
        fs::File::open(two.at(path)).and_then(|file| file.set_modified(long_ago)).expect("a time");
        two.mode(path, 0o664);
    }
    let expected = one.capture();
    for threads in [1, 2, 5] {
        let options = CaptureOptions { threads: Some(threads), ..two.options() };
        let captured = capture(&options, &two.objects, &StatCache::new()).expect("captured");
        assert_eq!((captured.tree, captured.totals), (expected.tree, expected.totals));
    }
    two.write("d0/extra", "");
    assert_ne!(two.capture().tree, expected.tree);
}

#[test]
fn what_cannot_be_captured_is_skipped_with_its_reason() {
    let lab = Lab::new();
    lab.write("kept", "x");
    lab.write("large", vec![7; 1001]);
    lab.write("at the limit", vec![7; 1000]);
    lab.write("a/.GIT/config", "on some file systems this is .git");
    lab.write("git~1", "so is this");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(lab.at("socket")).expect("a socket");
    lab.write("locked/x", "x");
    lab.write("unreadable", "x");
    lab.mode("locked", 0o000);
    lab.mode("unreadable", 0o000);
    // Permissions say nothing to root.
    let is_root = fs::File::open(lab.at("unreadable")).is_ok();
    let options = CaptureOptions { max_file: 1000, ..lab.options() };
    let captured = capture(&options, &lab.objects, &StatCache::new()).expect("captured");
    let mut expected = vec![
        ("a/.GIT".to_owned(), SkipReason::Name),
        ("git~1".to_owned(), SkipReason::Name),
        ("large".to_owned(), SkipReason::TooLarge),
        ("locked".to_owned(), SkipReason::Unreadable),
        ("pipe".to_owned(), SkipReason::Special),
        ("socket".to_owned(), SkipReason::Special),
        ("unreadable".to_owned(), SkipReason::Unreadable),
    ];
    expected.retain(|(_, reason)| !is_root || *reason != SkipReason::Unreadable);
    lab.mode("locked", 0o700);
    assert_eq!(Lab::skipped(&captured), expected);
    assert_eq!(captured.skipped.total(), expected.len() as u64);
    assert_eq!(captured.skipped.totals[&SkipReason::Special], 2);
    let paths = lab.show(captured.tree).iter().filter(|line| line.starts_with("f kept")).count();
    assert_eq!((paths, captured.skipped.all), (1, None));
}

#[test]
fn many_skipped_paths_are_an_object_of_their_own() {
    let lab = Lab::new();
    for index in 0..MAX_TOLD + 5 {
        lab.write(format!("{index:04}"), "xx");
    }
    lab.write(b"\xff", "xx");
    let options = CaptureOptions { max_file: 1, ..lab.options() };
    let skipped = capture(&options, &lab.objects, &StatCache::new()).expect("captured").skipped;
    assert_eq!((skipped.total(), skipped.first.len()), (MAX_TOLD as u64 + 6, MAX_TOLD));
    let all = lab.objects.get(&skipped.all.expect("an object"), u64::MAX).expect("kept");
    let lines: Vec<&[u8]> = all.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), MAX_TOLD + 6);
    assert_eq!(lines[0], br#"{"path":"0000","reason":"too_large"}"#);
    assert_eq!(lines[MAX_TOLD + 5], br#"{"path_b64":"/w==","reason":"too_large"}"#);
}

#[test]
fn directories_deeper_than_trees_go_are_skipped_and_named() {
    let lab = Lab::new();
    // Longer than any path that the kernel takes at once.
    let mut here =
        rustix::fs::open(lab.root(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).expect("open");
    let name = "d".repeat(20);
    for _ in 0..MAX_DEPTH_TESTED {
        rustix::fs::mkdirat(&here, &*name, rustix::fs::Mode::RWXU).expect("a directory");
        here = rustix::fs::openat(&here, &*name, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty())
            .expect("open");
    }
    let captured = lab.capture();
    let deepest = vec![name; crate::tree::MAX_DEPTH + 1].join("/");
    assert_eq!(Lab::skipped(&captured), [(deepest, SkipReason::TooDeep)]);
    assert_eq!(captured.totals.directories, crate::tree::MAX_DEPTH as u64);
}

/// A few levels more than trees go.
const MAX_DEPTH_TESTED: usize = crate::tree::MAX_DEPTH + 5;

#[test]
fn limits_stops_and_missing_roots_end_a_capture_with_an_error() {
    let lab = Lab::new();
    for index in 0..20 {
        lab.write(format!("{index}/f"), "12345");
    }
    let run = |options: CaptureOptions<'_>| {
        capture(&options, &lab.objects, &StatCache::new()).map(|c| c.totals.files)
    };
    assert_eq!(
        run(CaptureOptions { max_files: 20, max_bytes: 100, ..lab.options() }).expect("within limits"),
        20
    );
    let over = run(CaptureOptions { max_files: 19, ..lab.options() });
    assert!(matches!(over, Err(CaptureError::OverLimit { max_files: 19, .. })));
    let over = run(CaptureOptions { max_bytes: 99, ..lab.options() });
    assert!(matches!(over, Err(CaptureError::OverLimit { max_bytes: 99, .. })));
    assert!(matches!(
        run(CaptureOptions { stop: &|| true, ..lab.options() }),
        Err(CaptureError::Stopped { .. })
    ));
    for root in [lab.at("missing"), lab.at("0/f")] {
        assert!(
            matches!(run(CaptureOptions::new(&root)), Err(CaptureError::Root { .. })),
            "{}",
            root.display()
        );
    }
}

#[test]
fn a_root_may_be_named_through_a_link_and_no_other_link_is_followed() {
    let lab = Lab::new();
    lab.write("a", "x");
    let link = lab.place.path().join("link");
    symlink("root", &link).expect("a link");
    let through = capture(&CaptureOptions::new(&link), &lab.objects, &StatCache::new()).expect("captured");
    assert_eq!(through.tree, lab.capture().tree);
    assert_eq!(lab.show(through.tree), ["f a x"]);
}

#[test]
fn the_home_and_directories_of_other_sessions_are_no_part_of_a_workspace() {
    let lab = Lab::new();
    lab.write("state/rekindle/home.json", "{}");
    lab.write("other/x", "x");
    lab.write("mine", "x");
    let options = CaptureOptions {
        home: Some(lab.at("state/rekindle")),
        // Its own directory, given too, is not apart from itself; one that is gone is nowhere.
        others: vec![lab.at("other"), lab.root(), lab.at("gone")],
        ..lab.options()
    };
    let captured = capture(&options, &lab.objects, &StatCache::new()).expect("captured");
    assert_eq!(lab.show(captured.tree), ["f mine x", "d state"]);
    assert_eq!(Lab::skipped(&captured), [("other".to_owned(), SkipReason::Worktree)]);
    // Inside the home everything is as elsewhere.
    let inside = CaptureOptions { root: lab.at("state/rekindle"), ..options };
    let inside = capture(&inside, &lab.objects, &StatCache::new()).expect("captured");
    assert_eq!(lab.show(inside.tree), ["f home.json {}"]);
}

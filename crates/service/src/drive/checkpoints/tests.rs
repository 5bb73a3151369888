//! Captures for checkpoints: limits, what is left out, and what is said of the files that changed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::{CheckpointAt, CheckpointHow, FilesTouched, TouchedFile};
use rekindle_domain::id::RunId;
use rekindle_store::disk::RealDisk;
use rekindle_store::home::prepare;
use rekindle_store::layout::Layout;
use tempfile::TempDir;

use super::*;

/// A home, and a directory that is captured.
struct Place {
    captures: DirectoryCaptures,
    home: TempDir,
    directory: TempDir,
    others: Arc<Mutex<Vec<PathBuf>>>,
}

impl Place {
    fn new() -> Place {
        Place::limited(CaptureLimits::default())
    }

    fn limited(limits: CaptureLimits) -> Place {
        let (home, directory) = (temporary(), temporary());
        let (disk, layout) = (Arc::new(RealDisk), Layout::new(home.path()));
        prepare(&*disk, &layout).expect("a home");
        let others: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
        let known = others.clone();
        let mut captures = DirectoryCaptures::new(
            Workspaces::new(disk, layout),
            CheckpointSettings::default(),
            Some("/home/somebody"),
            Box::new(move |_, _| known.lock().expect("no panic").clone()),
        );
        Arc::get_mut(&mut captures.shared).expect("ours alone").limits = limits;
        Place { captures, home, directory, others }
    }

    fn path(&self, name: &[u8]) -> PathBuf {
        self.directory.path().join(OsStr::from_bytes(name))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name.as_bytes());
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    fn take(&self, mode: Option<CheckpointMode>, start: Option<&Capture>) -> Result<Capture, NotTaken> {
        self.take_as(CaptureRequest { mode, start: start.map(recorded), ..self.asked() })
    }

    fn asked(&self) -> CaptureRequest {
        let root = self.directory.path().to_owned();
        let (session, stop) = (SessionId::mint(1, 1), StopFlag::default());
        CaptureRequest { session, root, mode: None, start: None, before: None, stop }
    }

    fn take_as(&self, asked: CaptureRequest) -> Result<Capture, NotTaken> {
        self.captures.take_now(&asked).map(|taken| taken.capture).map_err(|missed| missed.not_taken)
    }

    /// Captures the directory, changes it, and tells what is different.
    fn touched(&self, change: impl FnOnce(&Place)) -> FilesTouched {
        let start = self.take(None, None).expect("captured");
        change(self);
        let end = self.take(None, Some(&start)).expect("captured");
        end.files_touched.expect("compared")
    }
}

/// Returns a capture as a record has it.
fn recorded(capture: &Capture) -> Box<RunCheckpoint> {
    Box::new(RunCheckpoint {
        run_id: RunId::mint(1, 1),
        at: CheckpointAt::Start,
        how: CheckpointHow::Live,
        root: String::new(),
        tree: Some(capture.tree),
        not_taken: None,
        git: None,
        rules: Some(capture.rules),
        skipped: Some(Box::new(capture.skipped.clone())),
        files_touched: None,
        directory: capture.directory,
        files_changed: None,
    })
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes what was touched in one line: path, change, lines.
fn shown(touched: &FilesTouched) -> String {
    let file = |file: &TouchedFile| {
        let path = String::from_utf8_lossy(&file.path.bytes().expect("a path")).into_owned();
        let lines = file.lines_added.zip(file.lines_removed);
        let lines = lines.map_or("?".to_owned(), |(added, removed)| format!("+{added} -{removed}"));
        format!("{path} {} {lines}", file.change.as_str())
    };
    touched.first.iter().map(file).collect::<Vec<_>>().join("; ")
}

#[test]
fn every_change_of_a_file_is_told_with_its_lines() {
    let place = Place::new();
    place.write("same", "same\n");
    place.write("below/changed", "one\ntwo\nthree\n");
    place.write("gone", "a\nb\n");
    place.write("binary", b"\0\x01");
    place.write("mode", "x\n");
    let touched = place.touched(|place| {
        place.write("below/changed", "one\n2\nthree\nfour\n");
        place.write("come", "new\n");
        place.write("binary", b"\0\x02");
        place.write("large", "line\n".repeat(300_000));
        std::fs::remove_file(place.path(b"gone")).expect("removed");
        std::fs::write(place.path(b"\xff"), "odd\n").expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path(b"mode"), mode).expect("set");
    });
    assert_eq!(
        shown(&touched),
        "below/changed modified +2 -1; binary modified ?; come added +1 -0; gone deleted +0 -2; large added ?; \
         mode modified +0 -0; \u{fffd} added +1 -0"
    );
    assert_eq!((touched.total, touched.lines_added, touched.lines_removed, touched.uncounted), (7, 4, 3, 2));
    assert!(!touched.rules_differ && touched.all.is_none());
    assert_eq!(touched.first.last().and_then(|odd| odd.path.path_b64.as_deref()), Some("/w=="));
    assert_eq!(place.touched(|_| {}), FilesTouched::default());
}

#[test]
fn many_files_are_counted_and_the_first_are_told() {
    let place = Place::new();
    let touched = place.touched(|place| {
        for number in 0..250 {
            place.write(&format!("{number:03}"), "line\n");
        }
    });
    assert_eq!((touched.total, touched.lines_added, touched.first.len()), (250, 250, 200));
    let list = place.captures.shared.workspaces.source().get(&touched.all.expect("an object"), 1 << 20);
    let list = String::from_utf8(list.expect("it is there")).expect("text");
    assert_eq!(list.lines().count(), 250);
    assert!(list.contains(r#"{"path":"249","change":"added","lines_added":1,"lines_removed":0}"#), "{list}");
}

#[test]
fn other_rules_are_told() {
    let place = Place::new();
    place.write("log.txt", "a\n");
    let touched = place.touched(|place| place.write(".gitignore", "*.txt\n"));
    assert!(touched.rules_differ);
    assert_eq!(shown(&touched), ".gitignore added +1 -0", "what is ignored now is still there");
}

// Nobody knows what became of a file that one of the two captures did not look at.
#[test]
fn what_another_session_works_on_is_not_told() {
    let place = Place::new();
    place.write("mine", "a\n");
    place.write("below/theirs", "b\n");
    let touched = place.touched(|place| {
        place.write("mine", "c\n");
        place.write("below/theirs", "d\n");
        place.others.lock().expect("no panic").push(place.path(b"below"));
    });
    assert_eq!(shown(&touched), "mine modified +1 -1");
    let touched = place.touched(|place| place.others.lock().expect("no panic").clear());
    assert_eq!(touched.total, 0);
}

#[test]
fn a_directory_that_is_too_large_is_not_walked_again() {
    let place = Place::limited(CaptureLimits { files: 3, bytes: 1 << 20 });
    for name in ["a", "b", "c"] {
        place.write(name, name);
    }
    place.take(None, None).expect("as many as are allowed");
    place.write("d", "d");
    let reason = |taken: Result<Capture, NotTaken>| taken.expect_err("too large").reason;
    assert_eq!(reason(place.take(None, None)), NotTakenReason::TooLarge);
    std::fs::remove_file(place.path(b"d")).expect("removed");
    let told = place.take(None, None).expect_err("remembered");
    assert!(
        told.detail.contains("more than 3 files") && told.detail.contains("restarted"),
        "{}",
        told.detail
    );
    // Which directory it is, and where HEAD is, is known all the same.
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    let missed = place.captures.take_now(&place.asked()).map(drop).expect_err("remembered");
    let seen = missed.git.and_then(|git| git.reference);
    assert_eq!((missed.directory.is_some(), seen.as_deref()), (true, Some("refs/heads/main")));
    // Whoever wants it gets it.
    place.take(Some(CheckpointMode::On), None).expect("captured");
    let large = Place::limited(CaptureLimits { files: 10, bytes: 5 });
    large.write("a", "sixsix");
    assert_eq!(reason(large.take(None, None)), NotTakenReason::TooLarge);
}

#[test]
fn why_a_directory_was_not_captured_is_told() {
    let place = Place::new();
    place.write("a", "a");
    let journal = Layout::new(place.home.path())
        .restore_journal(&place.directory.path().canonicalize().expect("a directory"));
    std::fs::create_dir_all(journal.parent().expect("a directory")).expect("made");
    std::fs::write(&journal, "{}").expect("written");
    assert_eq!(place.take(None, None).expect_err("restoring").reason, NotTakenReason::Restoring);
    std::fs::remove_file(&journal).expect("removed");
    place.take(None, None).expect("captured");
    std::fs::remove_dir_all(place.directory.path()).expect("removed");
    assert_eq!(place.take(None, None).expect_err("gone").reason, NotTakenReason::Unreadable);
    std::fs::create_dir(place.directory.path()).expect("made");

    let stop = StopFlag::default();
    stop.raise();
    let stopped = place.take_as(CaptureRequest { stop, ..place.asked() });
    assert_eq!(stopped.expect_err("stopped").reason, NotTakenReason::TimedOut);
}

#[test]
fn home_directories_are_captured_only_if_someone_says_so() {
    let place = Place::new();
    let mut state = SessionState::empty(SessionId::mint(1, 1));
    for (directory, mode, expected) in [
        ("/repo", None, true),
        ("/repo", Some(CheckpointMode::Off), false),
        ("/home/somebody", None, false),
        ("/home/somebody/", None, false),
        ("/home/somebody/project", None, true),
        ("/home/somebody", Some(CheckpointMode::Auto), false),
        ("/home/somebody", Some(CheckpointMode::On), true),
        ("/", None, false),
        ("/", Some(CheckpointMode::On), true),
    ] {
        (state.working_dir, state.options.checkpoints) = (directory.to_owned(), mode);
        assert_eq!(place.captures.is_on(&state), expected, "{directory} {mode:?}");
    }
}

#[test]
fn what_was_changed_between_two_turns_is_told_and_only_if_somebody_asks() {
    let place = Place::new();
    place.write("a", "a");
    place.write("gone", "b");
    let before = place.take(None, None).expect("captured");
    assert_eq!(before.files_changed, None);
    let changed = |place: &Place| {
        let asked = CaptureRequest { before: Some(recorded(&before)), ..place.asked() };
        place.take_as(asked).expect("captured")
    };
    let same = changed(&place);
    assert_eq!((same.files_changed.expect("compared").total, same.directory), (0, before.directory));
    place.write("a", "another");
    place.write("directory/new", "c");
    std::fs::remove_file(place.path(b"gone")).expect("removed");
    let found = changed(&place).files_changed.expect("compared");
    let told: Vec<String> = found
        .first
        .iter()
        .map(|file| format!("{} {}", file.path.path.as_deref().expect("text"), file.change.as_str()))
        .collect();
    assert_eq!((found.total, told.join("; ").as_str()), (3, "a modified; directory/new added; gone deleted"));
    assert!(!found.rules_differ);

    for number in 0..250 {
        place.write(&format!("many/{number}"), "x");
    }
    let many = changed(&place).files_changed.expect("compared");
    assert_eq!((many.total, many.first.len()), (253, 200));

    // What is no longer kept cannot be compared: the capture is taken all the same.
    let expired = RunCheckpoint { tree: Some(BlobId::of(b"never kept")), ..*recorded(&before) };
    let taken = place.take_as(CaptureRequest { before: Some(Box::new(expired)), ..place.asked() });
    assert_eq!(taken.expect("captured").files_changed, None);

    // Another directory of the same name is not the same one.
    let path = place.directory.path();
    std::fs::rename(path, path.with_extension("was")).expect("moved");
    std::fs::create_dir(path).expect("made");
    let now = place.take(None, None).expect("captured");
    let (was, is) = (before.directory.expect("known"), now.directory.expect("known"));
    assert!(was.file_system == is.file_system && was.inode != is.inode, "{was:?} {is:?}");
    std::fs::remove_dir_all(path.with_extension("was")).expect("removed");
}

#[test]
fn a_file_that_counts_no_longer_and_is_still_there_was_not_deleted() {
    let place = Place::new();
    place.write("kept.log", "a\n");
    place.write("gone.log", "b\n");
    let touched = place.touched(|place| {
        place.write(".gitignore", "*.log\n");
        std::fs::remove_file(place.path(b"gone.log")).expect("removed");
    });
    assert_eq!(shown(&touched), ".gitignore added +1 -0; gone.log deleted +0 -1");
    assert!(touched.rules_differ);
}

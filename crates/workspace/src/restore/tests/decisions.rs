//! What is changed, what is removed and what is left alone: decided from trees, rules and skipped paths.

use super::sim::SimRoot;
use super::things::{Thing, Things, all, directory, file, keep, link, make, read};
use super::*;
use crate::tree::{FileMode, OwnedNode, WalkError};

/// Restores one directory into another under given rules and skips, and returns what is there then with what was left.
struct Situation {
    now_ignores: fn(&[u8], bool) -> bool,
    wanted_ignores: fn(&[u8], bool) -> bool,
    now_skipped: &'static [&'static str],
    wanted_skipped: &'static [&'static str],
}

impl Default for Situation {
    fn default() -> Situation {
        Situation { now_ignores: ignores, wanted_ignores: ignores, now_skipped: &[], wanted_skipped: &[] }
    }
}

impl Situation {
    fn restore(
        &self,
        root: &SimRoot,
        now: &Things,
        wanted: &Things,
    ) -> (Things, Vec<(String, LeftWhy)>, Things) {
        let objects = MemoryObjects::new();
        let skipped = |paths: &[&str]| paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        let (now_skipped, wanted_skipped): (SkippedPaths, SkippedPaths) =
            (skipped(self.now_skipped), skipped(self.wanted_skipped));
        let (now, wanted) = (keep(&objects, now), keep(&objects, wanted));
        let now = Side { ignores: &self.now_ignores, skipped: &now_skipped, ..side(now) };
        let wanted = Side { ignores: &self.wanted_ignores, skipped: &wanted_skipped, ..side(wanted) };
        let tools =
            Tools { root, source: &objects, sink: &objects, journal: root, limits: Limits::default() };
        let restored = restore(&tools, &now, &wanted).expect("restored");
        let left = restored.left.into_iter();
        let left = left.map(|left| (String::from_utf8(left.path).expect("UTF-8"), left.why)).collect();
        let after = read(root, b"");
        // The way back is taken in a directory of its own.
        let undone = SimRoot::new();
        let tools = Tools { root: &undone, journal: &undone, ..tools };
        let empty = Side { ignores: &ignores_nothing, ..side(keep(&objects, &Things::new())) };
        restore(&tools, &empty, &Side { tree: restored.undo, ..empty }).expect("restored");
        (after, left, read(&undone, b""))
    }
}

fn root_with(things: &Things) -> SimRoot {
    let root = SimRoot::new();
    make(&root, b"", things);
    root
}

#[test]
fn what_the_wanted_side_ignores_or_skipped_is_not_removed() {
    let now = all([
        ("was-ignored", file("1")),
        ("was-skipped", directory([("x", file("2"))])),
        ("dir", directory([("a", file("3")), ("was-ignored", directory([("b", file("4"))]))])),
        ("new", file("5")),
    ]);
    let situation = Situation {
        wanted_ignores: |path, _| path.windows(11).any(|part| part == b"was-ignored"),
        wanted_skipped: &["was-skipped"],
        ..Situation::default()
    };
    let (after, left, undone) = situation.restore(&root_with(&now), &now, &all([("x", file("x"))]));
    let expected = all([
        ("was-ignored", file("1")),
        ("was-skipped", directory([("x", file("2"))])),
        ("dir", directory([("was-ignored", directory([("b", file("4"))]))])),
        ("x", file("x")),
    ]);
    assert_eq!(after, expected);
    let named = |path: &str, why: LeftWhy| (path.to_owned(), why);
    assert_eq!(
        left,
        [
            named("dir/was-ignored", LeftWhy::Ignored),
            named("was-ignored", LeftWhy::Ignored),
            named("was-skipped", LeftWhy::Skipped)
        ]
    );
    assert_eq!(undone, now);
}

#[test]
fn a_directory_with_unknown_files_is_never_replaced() {
    for unknown in [file("ignored"), directory([("deep", file("x"))]), link("nowhere")] {
        let inside = [("known", file("1")), ("sub", directory([("ignored-x", unknown.clone())]))];
        let disk = all([("d", directory(inside))]);
        let now = all([("d", directory([("known", file("1")), ("sub", directory([]))]))]);
        for wanted in [file("a file"), link("a link")] {
            let wanted = all([("d", wanted)]);
            let (after, left, undone) = Situation::default().restore(&root_with(&disk), &now, &wanted);
            assert_eq!(after, disk, "whole, or not at all");
            assert_eq!(left, [("d".to_owned(), LeftWhy::UnknownFiles)]);
            assert_eq!(undone, now);
        }
        // Where nothing takes its place, what is known goes and the rest stays.
        let (after, left, _) = Situation::default().restore(&root_with(&disk), &now, &Things::new());
        assert_eq!(after, all([("d", directory([("sub", directory([("ignored-x", unknown)]))]))]));
        assert_eq!(left, [("d/sub".to_owned(), LeftWhy::UnknownFiles)]);
    }
}

#[test]
fn what_one_side_skipped_keeps_a_directory_from_being_replaced() {
    let now = all([("d", directory([("big", file("1")), ("x", file("2"))]))]);
    let situation = Situation { wanted_skipped: &["d/big"], ..Situation::default() };
    let (after, left, _) = situation.restore(&root_with(&now), &now, &all([("d", file("a file"))]));
    assert_eq!((after, left), (now, vec![("d".to_owned(), LeftWhy::UnknownFiles)]));
}

#[test]
fn an_ignored_file_in_the_way_is_captured_before_it_is_replaced() {
    let disk = all([
        ("ignored-file", file("precious")),
        ("ignored-dir", directory([("a", file("precious too")), ("b", file("stays"))])),
        ("x", file("1")),
    ]);
    let now = all([("x", file("1"))]);
    let wanted = all([
        ("ignored-file", file("wanted")),
        ("ignored-dir", directory([("a", file("wanted too")), ("c", directory([("d", file("new"))]))])),
        ("x", file("1")),
    ]);
    let (after, left, undone) = Situation::default().restore(&root_with(&disk), &now, &wanted);
    let inside = [("a", file("wanted too")), ("b", file("stays")), ("c", directory([("d", file("new"))]))];
    assert_eq!(
        after,
        all([("ignored-file", file("wanted")), ("ignored-dir", directory(inside)), ("x", file("1"))])
    );
    assert_eq!(left, []);
    assert_eq!(
        undone,
        all([
            ("ignored-file", file("precious")),
            ("ignored-dir", directory([("a", file("precious too"))])),
            ("x", file("1"))
        ])
    );
}

#[test]
fn what_changed_after_the_capture_is_in_the_way_back() {
    let now = all([("changed", file("captured")), ("gone", file("captured")), ("same", file("wanted"))]);
    let disk = all([("changed", file("newer")), ("gone", file("newer")), ("same", file("newer"))]);
    let wanted = all([("changed", file("wanted")), ("same", file("wanted"))]);
    let (after, left, undone) = Situation::default().restore(&root_with(&disk), &now, &wanted);
    assert_eq!(left, []);
    // The plan knows of no difference there; a restore looks at what it changes, not at everything.
    assert_eq!(after, all([("changed", file("wanted")), ("same", file("newer"))]));
    assert_eq!(undone, all([("changed", file("newer")), ("gone", file("newer")), ("same", file("wanted"))]));
}

#[test]
fn what_cannot_be_captured_is_left_and_named() {
    let root = root_with(&all([("d", directory([("x", file("1"))]))]));
    root.make_special(b"socket");
    root.make_special(b"d/socket");
    let now = all([("d", directory([("x", file("1"))]))]);
    let situation = Situation { now_skipped: &["socket", "d/socket"], ..Situation::default() };
    let wanted =
        all([("socket", file("wanted")), ("d", directory([("x", file("1")), ("socket", link("x"))]))]);
    let (_, left, _) = situation.restore(&root, &now, &wanted);
    let special = |path: &str| (path.to_owned(), LeftWhy::Special);
    assert_eq!(left, [special("d/socket"), special("socket")]);
}

#[test]
fn a_directory_that_was_skipped_is_not_written_into() {
    let disk = all([("worktree", directory([("x", file("another session's"))])), ("big", file("too large"))]);
    let situation = Situation { now_skipped: &["worktree", "big"], ..Situation::default() };
    let wanted = all([("worktree", directory([("x", file("wanted"))])), ("big", file("small"))]);
    let (after, left, undone) = situation.restore(&root_with(&disk), &Things::new(), &wanted);
    assert_eq!(
        after,
        all([("worktree", directory([("x", file("another session's"))])), ("big", file("small"))])
    );
    assert_eq!(left, [("worktree".to_owned(), LeftWhy::SkippedNow)]);
    assert_eq!(undone, all([("big", file("too large"))]), "a large file is captured all the same");
}

#[test]
fn names_that_collide_are_refused_where_the_file_system_folds_case() {
    let objects = MemoryObjects::new();
    let inside = directory([("README", file("1")), ("readme", file("2"))]);
    for wanted in
        [all([("a", file("1")), ("A", file("2"))]), all([("new", inside.clone())]), all([("d", inside)])]
    {
        let now = all([("d", directory([("x", file("1"))])), ("y", file("1"))]);
        let wanted = keep(&objects, &wanted);
        let root = root_with(&now);
        root.fold_case();
        let refused = restore_to(&root, &objects, &root, wanted).expect_err("refused");
        assert!(matches!(refused, RestoreError::NameCollision { .. }), "{refused:?}");
        assert_eq!(read(&root, b""), now);
        assert_eq!(JournalFile::read(&root).expect("read"), None);

        let root = root_with(&now);
        restore_to(&root, &objects, &root, wanted).expect("told apart here");
        assert_eq!(keep(&objects, &read(&root, b"")), wanted);
    }
}

#[test]
fn a_name_that_changes_its_case_survives_where_case_is_folded() {
    let objects = MemoryObjects::new();
    let root = root_with(&all([("README", file("1"))]));
    root.fold_case();
    let wanted = keep(&objects, &all([("Readme", file("1"))]));
    restore_to(&root, &objects, &root, wanted).expect("restored");
    assert_eq!(read(&root, b""), all([("Readme", file("1"))]));
}

#[test]
fn a_plan_has_what_differs_and_looks_into_nothing_that_is_equal() {
    let objects = MemoryObjects::new();
    let same = directory([("deep", directory([("x", file("1"))]))]);
    let lost = keep(
        &objects,
        match &same {
            Thing::Directory(things) => things,
            _ => unreachable!("a directory"),
        },
    );
    let now = all([
        ("same", same.clone()),
        ("a", file("1")),
        ("m", file("m")),
        ("d", directory([("x", file("x"))])),
    ]);
    let wanted = all([
        ("same", same),
        ("a", file("2")),
        ("m", Thing::File(b"m".to_vec(), FileMode::Private)),
        ("d", link("a")),
    ]);
    let (now, wanted) = (keep(&objects, &now), keep(&objects, &wanted));
    objects.forget(&lost);
    let plan = plan(&objects, &side(now), &side(wanted), None, Limits::default()).expect("planned");
    let changes: Vec<(&[u8], usize, usize)> = plan
        .changes
        .iter()
        .map(|change| (change.path.as_slice(), change.removes.len(), change.creates.len()))
        .collect();
    assert_eq!(changes, [(b"a".as_slice(), 0, 1), (b"d", 2, 1), (b"m", 0, 1)]);
    assert_eq!((plan.left, plan.collisions), (Vec::new(), Vec::new()));
    let order: Vec<&[u8]> = plan.changes[1].removes.iter().map(|entry| entry.path.as_slice()).collect();
    assert_eq!(order, [b"d/x".as_slice(), b"d"], "what is in a directory goes before it");
    assert!(matches!(plan.changes[1].before, Some(OwnedNode::Directory { .. })));
}

#[test]
fn a_moved_head_is_reported() {
    let objects = MemoryObjects::new();
    let root = SimRoot::new();
    let tree = keep(&objects, &Things::new());
    let tools =
        Tools { root: &root, source: &objects, sink: &objects, journal: &root, limits: Limits::default() };
    for (now, then, moved) in
        [(Some("1"), Some("2"), true), (Some("1"), Some("1"), false), (None, Some("1"), false)]
    {
        let restored =
            restore(&tools, &Side { git_head: now, ..side(tree) }, &Side { git_head: then, ..side(tree) });
        assert_eq!(restored.expect("restored").head_moved, moved);
    }
}

#[test]
fn a_tree_above_the_limits_is_refused_before_anything_is_written() {
    let objects = MemoryObjects::new();
    let root = SimRoot::new();
    let now = keep(&objects, &Things::new());
    let inside = directory([("a", directory([("b", file("12345"))])), ("c", file("12345"))]);
    let wanted = keep(&objects, &all([("d", inside), ("e", file("12345"))]));
    let restored = |limits| {
        let tools = Tools { root: &root, source: &objects, sink: &objects, journal: &root, limits };
        restore(&tools, &side(now), &side(wanted))
    };
    let limits = Limits::default();
    for limits in
        [Limits { entries: 4, ..limits }, Limits { depth: 1, ..limits }, Limits { bytes: 14, ..limits }]
    {
        let refused = restored(limits).expect_err("refused");
        assert!(matches!(refused, RestoreError::Tree(WalkError::Limit(_))), "{refused:?}");
        assert_eq!((root.operations(), read(&root, b"")), (0, Things::new()));
    }
    restored(Limits { entries: 100, depth: 2, bytes: 15 }).expect("within the limits");
}

//! Captures and restores together, in real directories, with rules that are files of the workspace.

use std::collections::BTreeMap;

use rekindle_seeded::Rng;

use super::super::lookup::Lookup;
use super::tapped::Tapped;
use super::things::{Thing, Things, all, change, directory, draw, file, make, read};
use super::*;
use crate::capture::{CaptureOptions, Captured, capture};
use crate::rules::Selection;
use crate::stat_cache::StatCache;
use crate::test_git::git;

fn captured(objects: &MemoryObjects, root: &std::path::Path) -> Captured {
    capture(&CaptureOptions::new(root), objects, &StatCache::default()).expect("captured")
}

fn restore_here(
    path: &std::path::Path,
    objects: &MemoryObjects,
    journal: &dyn JournalFile,
    wanted: (BlobId, &SkippedPaths),
    tap: &tapped::Tap<'_>,
) -> Result<Restored, RestoreError> {
    let opened = DirRoot::open(path).expect("opened");
    let now = captured(objects, path);
    let skipped = SkippedPaths::of(&now.skipped, objects).expect("all of them");
    let rules = TreeRules::new(objects, wanted.0, &Selection::default());
    let root = Tapped::new(&opened, tap);
    let tools = Tools { root: &root, source: objects, sink: objects, journal, limits: Limits::default() };
    let now = Side { tree: now.tree, ignores: &ignores_nothing, skipped: &skipped, git_head: None };
    let ignores = |path: &[u8], is_dir: bool| rules.ignores(path, is_dir);
    restore(&tools, &now, &Side { tree: wanted.0, ignores: &ignores, skipped: wanted.1, git_head: None })
}

/// Returns every file and link of a directory, by path.
fn flat(things: &Things) -> BTreeMap<Vec<u8>, Thing> {
    fn add(at: &[u8], things: &Things, found: &mut BTreeMap<Vec<u8>, Thing>) {
        for (name, thing) in things {
            let path = super::super::paths::join(at, name);
            match thing {
                Thing::Directory(things) => add(&path, things, found),
                thing => _ = found.insert(path, thing.clone()),
            }
        }
    }
    let mut found = BTreeMap::new();
    add(b"", things, &mut found);
    found
}

/// Returns every file and link of a tree, by path.
fn files_of(objects: &MemoryObjects, tree: BlobId) -> BTreeMap<Vec<u8>, Thing> {
    let root = sim::SimRoot::new();
    let tools =
        Tools { root: &root, source: objects, sink: objects, journal: &root, limits: Limits::default() };
    let side = |tree| Side { ignores: &ignores_nothing, ..side(tree) };
    restore(&tools, &side(things::keep(objects, &Things::new())), &side(tree)).expect("restored");
    flat(&read(&root, b""))
}

#[test]
fn what_was_captured_comes_back_and_what_was_not_stays() {
    const RULES: &[&str] = &["", "ignored*\n", "ignored*\n!ignoreda\n", "*\n!*/\n!.gitignore\n", "b\n"];
    let base = scratch();
    let objects = MemoryObjects::new();
    let none = SkippedPaths::default();
    let (mut same, mut resumed) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut wanted = draw(&mut rng, 2, true);
        let mut now = change(&mut rng, &wanted, 2, true);
        for things in [&mut wanted, &mut now] {
            if rng.chance(3, 4) {
                things.insert(b".gitignore".to_vec(), file(RULES[rng.index(RULES.len())]));
            }
        }
        let [old, new] = ["wanted", "now"].map(|name| base.path().join(format!("{seed}-{name}")));
        for (path, things) in [(&old, &wanted), (&new, &now)] {
            std::fs::create_dir(path).expect("made");
            make(&DirRoot::open(path).expect("opened"), b"", things);
        }
        let (tree, before) = (captured(&objects, &old).tree, captured(&objects, &new).tree);
        let journal = MemoryJournal::default();
        // Cut short somewhere: half-way the rules are those of before, or those that are wanted.
        let cut_at = rng.index(30);
        let count = std::cell::Cell::new(0);
        let cut = |_: &'static str, _: &[u8]| {
            count.set(count.get() + 1);
            if count.get() > cut_at { Err(rustix::io::Errno::IO.into()) } else { Ok(()) }
        };
        let quiet = |_: &'static str, _: &[u8]| Ok(());
        let restored = restore_here(&new, &objects, &journal, (tree, &none), &cut)
            .or_else(|_| restore_here(&new, &objects, &journal, (tree, &none), &quiet))
            .expect("restored");
        resumed += usize::from(restored.resumed);
        same += usize::from(captured(&objects, &new).tree == tree);

        let after = flat(&read(&DirRoot::open(&new).expect("opened"), b""));
        let (now, wanted, seen) = (flat(&now), files_of(&objects, tree), files_of(&objects, before));
        let rules = TreeRules::new(&objects, tree, &Selection::default());
        let is_left = |path: &[u8]| {
            let covers = |left: &Left| {
                path.strip_prefix(left.path.as_slice())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            };
            restored.left.iter().any(covers)
        };
        for (path, thing) in &wanted {
            let is_there = after.get(path) == Some(thing);
            assert!(is_there || is_left(path), "seed {seed}: {} is not restored", path.escape_ascii());
        }
        for (path, thing) in after.iter().filter(|(path, _)| !wanted.contains_key(*path)) {
            assert_eq!(now.get(path), Some(thing), "seed {seed}: {} came from nowhere", path.escape_ascii());
            // After an interruption the rules that are wanted may hold already: what they ignore is not even looked at.
            let is_excused = is_left(path) || !seen.contains_key(path) || rules.ignores(path, false);
            assert!(is_excused, "seed {seed}: {} is not removed", path.escape_ascii());
        }
        for (path, thing) in now.iter().filter(|(path, _)| !seen.contains_key(*path)) {
            // Something that the tree has takes its place: all that may happen to it.
            let is_wanted = || Lookup::new(&objects, tree).get(path).expect("a tree").is_some();
            let is_kept = after.get(path) == Some(thing) || is_wanted();
            assert!(is_kept, "seed {seed}: {} was not seen and is gone", path.escape_ascii());
        }
        let undo = files_of(&objects, restored.undo);
        for (path, thing) in now.iter().filter(|(path, _)| after.get(*path) != now.get(*path)) {
            assert_eq!(undo.get(path), Some(thing), "seed {seed}: {} has no way back", path.escape_ascii());
        }
    }
    assert!(same > 100 && resumed > 50, "{same} came back with the same hash, {resumed} were cut short");
}

#[test]
fn rules_that_are_mixed_half_way_hide_nothing_from_a_rerun() {
    // Neither side ignores `d/x`: before nothing does, and in the wanted tree the inner rules take back what the outer say.
    let now = all([("d", directory([("x", file("to be removed"))]))]);
    let inner = directory([(".gitignore", file("!x\n"))]);
    let wanted = all([(".gitignore", file("x\n")), ("d", inner)]);
    for cut_at in 0.. {
        let base = scratch();
        let objects = MemoryObjects::new();
        let root = DirRoot::open(base.path()).expect("opened");
        make(&root, b"", &now);
        let tree = things::keep(&objects, &wanted);
        let count = std::cell::Cell::new(0);
        // The removal of `d/x` fails on a disk that is failing; so does everything after some operation.
        let cut = |operation: &'static str, _: &[u8]| {
            count.set(count.get() + 1);
            let fails = operation == "remove_file" || count.get() > cut_at;
            if fails { Err(rustix::io::Errno::ACCESS.into()) } else { Ok(()) }
        };
        let (none, journal) = (SkippedPaths::default(), MemoryJournal::default());
        let before = captured(&objects, base.path()).tree;
        // What was refused is done again as if the process had been killed after it.
        _ = restore_here(base.path(), &objects, &journal, (tree, &none), &cut);
        journal.write(&Journal { from: before, to: tree, abandoned: Vec::new() }).expect("written");
        let quiet = |_: &'static str, _: &[u8]| Ok(());
        restore_here(base.path(), &objects, &journal, (tree, &none), &quiet).expect("restored");
        assert_eq!(read(&root, b""), wanted, "cut at {cut_at}");
        if cut_at > 12 {
            break;
        }
    }
}

#[test]
fn skipped_files_stay_where_they_are() {
    let base = scratch();
    let root = base.path();
    let objects = MemoryObjects::new();
    let opened = DirRoot::open(root).expect("opened");
    make(&opened, b"", &all([("d", directory([("x", file("1"))])), ("y", file("1"))]));
    let first = captured(&objects, root);
    let _socket = std::os::unix::net::UnixListener::bind(root.join("d/socket")).expect("bound");
    make(&opened, b"", &all([("new", directory([("z", file("2"))]))]));
    let _other = std::os::unix::net::UnixListener::bind(root.join("new/socket")).expect("bound");
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let none = SkippedPaths::default();
    let journal = MemoryJournal::default();
    let restored = restore_here(root, &objects, &journal, (first.tree, &none), &quiet).expect("restored");
    assert_eq!(restored.left, [Left { path: b"new".to_vec(), why: LeftWhy::UnknownFiles }]);
    assert!(root.join("d/socket").exists() && root.join("new/socket").exists());
    assert!(!root.join("new/z").exists());
}

/// What git tracks today says nothing about what was ignored when the wanted tree was captured.
#[test]
fn ignored_files_that_git_tracks_since_stay_where_they_are() {
    let base = scratch();
    let root = base.path();
    if !git(root, &["init"]) {
        eprintln!("no git here: not tested");
        return;
    }
    let objects = MemoryObjects::new();
    let built = directory([("user.db", file("rows"))]);
    let before = all([(".gitignore", file("build/\n*.log\n")), ("x.log", file("1")), ("build", built)]);
    make(&DirRoot::open(root).expect("opened"), b"", &before);
    let wanted = captured(&objects, root).tree;
    std::fs::write(root.join("new"), "made since").expect("written");
    assert!(git(root, &["add", "-f", "build/user.db", "x.log", "new"]));
    assert!(git(root, &["commit", "-qm", "everything"]));
    let (none, journal) = (SkippedPaths::default(), MemoryJournal::default());
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let restored = restore_here(root, &objects, &journal, (wanted, &none), &quiet).expect("restored");
    let left = |path: &str| Left { path: path.into(), why: LeftWhy::Ignored };
    assert_eq!(restored.left, [left("build"), left("x.log")]);
    assert_eq!(std::fs::read_to_string(root.join("build/user.db")).expect("still there"), "rows");
    assert!(root.join("x.log").exists() && !root.join("new").exists());
}

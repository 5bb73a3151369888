//! Real directories: links out of the root, a directory that is swapped for a link, permissions, several names of one file.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::io::Errno;
use tempfile::TempDir;

use super::tapped::Tapped;
use super::things::{Thing, Things, all, capture, directory, file, keep, link, make, read};
use super::*;
use crate::tree::FileMode;

/// A root beside a directory that must never be touched.
struct Place {
    base: TempDir,
    objects: MemoryObjects,
    journal: MemoryJournal,
}

impl Place {
    fn new() -> Place {
        let base = scratch();
        for name in ["root", "outside"] {
            fs::create_dir(base.path().join(name)).expect("made");
        }
        fs::write(base.path().join("outside/x"), "outside").expect("written");
        Place { base, objects: MemoryObjects::new(), journal: MemoryJournal::default() }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.base.path().join(path)
    }

    /// Returns both ways to open the root.
    fn roots(&self) -> [DirRoot; 2] {
        let path = self.path("root");
        [DirRoot::open(&path).expect("opened"), DirRoot::open_step_by_step(&path).expect("opened")]
    }

    fn assert_outside_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.path("outside")).expect("listed").collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(fs::read(self.path("outside/x")).expect("read"), b"outside");
    }
}

#[test]
fn no_call_goes_through_a_link_or_out_of_the_root() {
    let place = Place::new();
    symlink("../outside", place.path("root/link")).expect("linked");
    fs::create_dir(place.path("root/d")).expect("made");
    symlink(place.path("outside"), place.path("root/d/link")).expect("linked");
    symlink("../../outside/x", place.path("root/d/file")).expect("linked");
    for root in place.roots() {
        let refused: &[&[u8]] = &[
            b"link/x",
            b"link/new",
            b"d/link/x",
            b"../outside/x",
            b"d/../../outside/x",
            b"..",
            b"d/..",
            b".",
        ];
        for path in refused {
            let nothing = &mut |_: &mut dyn io::Write| Ok(());
            let all = [
                root.write_file(path, FileMode::Plain, nothing).err(),
                root.make_dir(path).err(),
                root.make_link(path, b"x").err(),
                root.remove_file(path).err(),
                root.remove_dir(path).err(),
                root.open(path).err(),
                root.set_mode(path, FileMode::Private).err(),
                root.stat(path).err(),
            ];
            assert!(all.iter().all(Option::is_some), "{}: {all:?}", String::from_utf8_lossy(path));
        }
        for directory in [b"link".as_slice(), b"d/link", b"..", b"d/../.."] {
            root.list(directory).expect_err("not followed");
            root.rename(directory, b"x", b"y").expect_err("not followed");
            root.sync_dir(directory).expect_err("not followed");
        }
        assert!(root.open(b"d/file").is_err(), "a link is no file");
        assert_eq!(root.read_link(b"d/file").expect("read"), b"../../outside/x");
        assert_eq!(root.stat(b"d/file").expect("seen").map(|seen| seen.kind), Some(SeenKind::Link));
        assert_eq!(root.stat(b"d/nothing").expect("seen"), None);
        assert_eq!(root.stat(b"nothing/at/all").expect("seen"), None);
        place.assert_outside_untouched();
    }
}

#[test]
fn links_are_replaced_and_never_followed() {
    for which in 0..2 {
        let place = Place::new();
        let root = &place.roots()[which];
        let nothing = |_: &'static str, _: &[u8]| Ok(());
        let root = Tapped::new(root, &nothing);
        let now = all([
            ("x", link("../outside/x")),
            ("d", link("../outside")),
            ("gone", link("../outside")),
            ("loop", link("loop")),
        ]);
        make(&root, b"", &now);
        let wanted =
            all([("x", file("inside")), ("d", directory([("x", file("inside"))])), ("loop", directory([]))]);
        let tree = keep(&place.objects, &wanted);
        let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
        assert_eq!((restored.left, read(&root, b"")), (Vec::new(), wanted));
        place.assert_outside_untouched();
        restore_to(&root, &place.objects, &place.journal, restored.undo).expect("restored");
        assert_eq!(read(&root, b""), now);
        place.assert_outside_untouched();
    }
}

#[test]
fn a_directory_swapped_for_a_link_in_mid_restore_is_never_written_through() {
    let now = all([
        (
            "d",
            directory([("x", file("old")), ("gone", file("gone")), ("e", directory([("y", file("old"))]))]),
        ),
        ("other", file("old")),
    ]);
    let wanted = all([
        ("d", directory([("x", file("new")), ("new", file("new")), ("e", directory([("y", file("new"))]))])),
        ("other", file("new")),
    ]);
    let mut named = 0;
    for which in 0..2 {
        for swap_at in 0.. {
            let place = Place::new();
            let opened = &place.roots()[which];
            let count = Cell::new(0);
            let swap = |_: &'static str, _: &[u8]| {
                if count.replace(count.get() + 1) == swap_at {
                    fs::rename(place.path("root/d"), place.path("moved")).expect("moved");
                    symlink("../outside", place.path("root/d")).expect("linked");
                }
                Ok(())
            };
            let quiet = |_: &'static str, _: &[u8]| Ok(());
            make(&Tapped::new(opened, &quiet), b"", &now);
            let tree = keep(&place.objects, &wanted);
            let outcome = restore_to(&Tapped::new(opened, &swap), &place.objects, &place.journal, tree);
            place.assert_outside_untouched();
            if count.get() <= swap_at {
                outcome.expect("restored");
                break;
            }
            assert_eq!(fs::read_link(place.path("root/d")).expect("a link"), Path::new("../outside"));
            match outcome {
                Ok(restored) => {
                    let is_below = |left: &Left| left.path.starts_with(b"d");
                    named += usize::from(restored.left.iter().any(is_below));
                    assert_eq!(fs::read(place.path("root/other")).expect("read"), b"new");
                }
                Err(error) => panic!("one directory that is moved away concerns no other path: {error:?}"),
            }
        }
    }
    assert!(named > 10, "only {named} swaps were noticed");
}

#[test]
fn a_file_that_changes_during_the_restore_is_left() {
    let place = Place::new();
    let [opened, _] = place.roots();
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    make(
        &Tapped::new(&opened, &quiet),
        b"",
        &all([("a", file("old")), ("b", file("old")), ("c", file("old"))]),
    );
    let edit = |operation: &'static str, _: &[u8]| match operation {
        "sync_file_systems" => {
            fs::write(place.path("root/a"), "edited meanwhile")?;
            fs::write(place.path("root/c"), "edited meanwhile")?;
            fs::write(place.path("root/d"), "made meanwhile")
        }
        _ => Ok(()),
    };
    let wanted = keep(&place.objects, &all([("a", file("new")), ("b", file("new")), ("d", file("new"))]));
    let root = Tapped::new(&opened, &edit);
    let restored = restore_to(&root, &place.objects, &place.journal, wanted).expect("restored");
    let changed = |path: &[u8]| Left { path: path.to_vec(), why: LeftWhy::Changed };
    assert_eq!(restored.left, [changed(b"a"), changed(b"c"), changed(b"d")]);
    let meanwhile = || file("edited meanwhile");
    let expected =
        all([("a", meanwhile()), ("b", file("new")), ("c", meanwhile()), ("d", file("made meanwhile"))]);
    assert_eq!(read(&opened, b""), expected, "and no temporary is left");
}

#[test]
fn modes_are_those_of_the_tree_whatever_the_bits_were() {
    let place = Place::new();
    let [opened, _] = place.roots();
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let root = Tapped::new(&opened, &quiet);
    let modes = [FileMode::Plain, FileMode::Executable, FileMode::Private, FileMode::PrivateExecutable];
    let with = |shift: usize, content: &str| -> Things {
        let thing = |at: usize| Thing::File(content.as_bytes().to_vec(), modes[(at + shift) % 4]);
        (0..4).map(|at| (format!("f{at}").into_bytes(), thing(at))).collect()
    };
    make(&root, b"", &with(0, "same"));
    // Read-only and shared with a group: bits that do not count.
    fs::set_permissions(place.path("root/f2"), PermissionsExt::from_mode(0o400)).expect("set");
    for (shift, content) in [(1, "same"), (2, "same"), (3, "other"), (3, "same")] {
        let wanted = with(shift, content);
        let tree = keep(&place.objects, &wanted);
        let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
        assert_eq!((restored.left, read(&root, b"")), (Vec::new(), wanted));
        let only_modes = restored.done.iter().all(|done| done.what == DoneWhat::ModeChanged);
        assert_eq!(only_modes, shift < 3);
    }
}

#[test]
fn two_names_of_one_file_are_both_restored() {
    let place = Place::new();
    let [opened, _] = place.roots();
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let root = Tapped::new(&opened, &quiet);
    for wanted in [
        all([("a", file("new")), ("b", file("new"))]),
        all([("b", file("new"))]),
        all([
            ("a", Thing::File(b"old".to_vec(), FileMode::Private)),
            ("b", Thing::File(b"old".to_vec(), FileMode::Private)),
        ]),
    ] {
        fs::write(place.path("root/a"), "old").expect("written");
        fs::set_permissions(place.path("root/a"), PermissionsExt::from_mode(0o644)).expect("set");
        fs::hard_link(place.path("root/a"), place.path("root/b")).expect("linked");
        let tree = keep(&place.objects, &wanted);
        let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
        assert_eq!((restored.left, read(&root, b"")), (Vec::new(), wanted));
        for name in ["a", "b"] {
            _ = fs::remove_file(place.path("root").join(name));
        }
    }
}

#[test]
fn a_read_only_directory_is_named_and_the_rest_is_restored() {
    let place = Place::new();
    let [opened, _] = place.roots();
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let now = all([("d", directory([("x", file("old")), ("gone", file("gone"))])), ("y", file("old"))]);
    make(&Tapped::new(&opened, &quiet), b"", &now);
    fs::set_permissions(place.path("root/d"), PermissionsExt::from_mode(0o555)).expect("set");
    // Root may write anyway; whoever runs the tests as root is told what others are told.
    let refuse = |operation: &'static str, path: &[u8]| {
        let is_inside = path.starts_with(b"d/") || (operation == "rename" && path == b"d");
        if is_inside { Err(Errno::ACCESS.into()) } else { Ok(()) }
    };
    let wanted = all([("d", directory([("x", file("new"))])), ("y", file("new"))]);
    let wanted = keep(&place.objects, &wanted);
    let root = Tapped::new(&opened, &refuse);
    let restored = restore_to(&root, &place.objects, &place.journal, wanted).expect("restored");
    let paths: Vec<&[u8]> = restored.left.iter().map(|left| left.path.as_slice()).collect();
    assert_eq!(paths, [b"d/gone".as_slice(), b"d/x"]);
    assert!(restored.left.iter().all(|left| matches!(left.why, LeftWhy::Refused(_))));
    let expected = all([("d", directory([("x", file("old")), ("gone", file("gone"))])), ("y", file("new"))]);
    assert_eq!(read(&opened, b""), expected);
    fs::set_permissions(place.path("root/d"), PermissionsExt::from_mode(0o755)).expect("set");
}

#[test]
fn a_restore_cut_short_at_every_operation_is_finished_by_a_rerun() {
    let now = all([
        ("a", file("old")),
        ("d", directory([("x", file("x")), ("\u{fc}", file("y"))])),
        ("l", link("a")),
        ("f", file("f")),
    ]);
    let wanted = all([
        ("a", Thing::File(b"old".to_vec(), FileMode::Executable)),
        ("d", file("a file")),
        ("l", link("f")),
        ("f", directory([("g", directory([("h", file("h"))]))])),
    ]);
    for cut_at in 0.. {
        let place = Place::new();
        let [opened, stepwise] = place.roots();
        let quiet = |_: &'static str, _: &[u8]| Ok(());
        make(&Tapped::new(&opened, &quiet), b"", &now);
        let before = capture(&opened, &place.objects);
        let tree = keep(&place.objects, &wanted);
        let count = Cell::new(0);
        // Once it has been cut, nothing works any more: that is how a killed process looks from here.
        let cut = |_: &'static str, _: &[u8]| {
            count.set(count.get() + 1);
            if count.get() > cut_at { Err(Errno::IO.into()) } else { Ok(()) }
        };
        let outcome = restore_to(&Tapped::new(&opened, &cut), &place.objects, &place.journal, tree);
        if outcome.is_ok() {
            assert!(cut_at > 10);
            break;
        }
        let root = Tapped::new(&stepwise, &quiet);
        let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
        assert_eq!((restored.left, read(&opened, b"")), (Vec::new(), wanted.clone()), "cut at {cut_at}");
        assert_eq!(restored.undo, before, "cut at {cut_at}");
    }
}

#[test]
fn everything_works_with_real_syncs() {
    let place = Place::new();
    for root in place.roots() {
        let inside: Things =
            (0..6).map(|at| (format!("d{at}").into_bytes(), directory([("x", file("old"))]))).collect();
        make(&root, b"", &inside);
        let tree = keep(&place.objects, &all([("d0", directory([("x", file("new"))]))]));
        let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
        assert!(restored.is_complete(), "{:?}", restored.left);
        let empty = keep(&place.objects, &Things::new());
        restore_to(&root, &place.objects, &place.journal, empty).expect("restored");
        assert_eq!(read(&root, b""), Things::new());
    }
}

#[test]
fn the_git_directory_is_left_alone() {
    let place = Place::new();
    let [opened, _] = place.roots();
    let quiet = |_: &'static str, _: &[u8]| Ok(());
    let root = Tapped::new(&opened, &quiet);
    let git = || directory([("HEAD", file("ref: refs/heads/main"))]);
    make(
        &root,
        b"",
        &all([(".git", git()), ("x", file("1")), ("clone", directory([(".git", git()), ("y", file("1"))]))]),
    );
    let tree = keep(&place.objects, &Things::new());
    let restored = restore_to(&root, &place.objects, &place.journal, tree).expect("restored");
    assert_eq!(read(&root, b""), all([(".git", git()), ("clone", directory([(".git", git())]))]));
    assert_eq!(restored.left, [Left { path: b"clone".to_vec(), why: LeftWhy::UnknownFiles }]);
}

//! Trees and contents that are not what they say: refused, and nothing is changed.

use super::sim::SimRoot;
use super::things::{Things, all, directory, file, keep, make, read};
use super::*;
use crate::objects::ObjectSink;
use crate::tree::{Entry, Node, TreeBuilder, WalkError};

fn now() -> Things {
    all([("x", file("old")), ("d", directory([("y", file("y"))]))])
}

/// Checks that restoring a tree is refused and leaves no trace.
fn refused(objects: &MemoryObjects, wanted: BlobId) -> RestoreError {
    let root = SimRoot::new();
    make(&root, b"", &now());
    let error = restore_to(&root, objects, &root, wanted).expect_err("refused");
    assert_eq!(read(&root, b""), now(), "{error}");
    assert_eq!(JournalFile::read(&root).expect("read"), None, "{error}");
    error
}

#[test]
fn contents_that_are_missing_or_not_what_was_named_are_refused() {
    let falsified: &[(&str, Option<&[u8]>)] = &[
        ("missing", None),
        ("other bytes", Some(b"evil")),
        ("too short", Some(b"new")),
        ("a bomb", Some(&[0; 1 << 20])),
    ];
    for (what, bytes) in falsified {
        let objects = MemoryObjects::new();
        let new = file("new!");
        let wanted =
            keep(&objects, &all([("a", file("fine")), ("x", new.clone()), ("z", directory([("y", new)]))]));
        let id = BlobId::of(b"new!");
        objects.forget(&id);
        if let Some(bytes) = bytes {
            objects.falsify(id, bytes.to_vec());
        }
        let error = refused(&objects, wanted);
        assert!(
            matches!(&error, RestoreError::Content { path, id: named, problem } if path == b"x" && *named == id
                && matches!(problem, ContentProblem::Unreadable(_)) == bytes.is_none()),
            "{what}: {error:?}"
        );
    }
}

#[test]
fn tree_objects_that_are_missing_damaged_or_malformed_are_refused() {
    let objects = MemoryObjects::new();
    let inner = keep(&objects, &all([("deep", file("deep"))]));
    let wanted = keep(&objects, &all([("d", directory([("deep", file("deep"))])), ("x", file("new"))]));
    objects.forget(&inner);
    assert!(
        matches!(refused(&objects, wanted), RestoreError::Tree(WalkError::Read { id, .. }) if id == inner)
    );
    objects.falsify(inner, b"rktree1\n".to_vec());
    assert!(
        matches!(refused(&objects, wanted), RestoreError::Tree(WalkError::WrongHash { id }) if id == inner)
    );

    let mut hostile: Vec<Vec<u8>> = Vec::new();
    for name in [b"..".as_slice(), b"/etc", b"../up", b".git", b".GIT", b"a/b", b"a\0b", b""] {
        hostile.push([b"rktree1\nl".as_slice(), &[name.len() as u8], name, b"\x04/etc"].concat());
    }
    // A link, and a directory of the same name that would be written through it.
    hostile.push([b"rktree1\nl\x01a\x04/tmpd\x01a".as_slice(), inner.as_bytes()].concat());
    for bytes in hostile {
        let objects = MemoryObjects::new();
        let id = objects.put(&bytes).expect("kept");
        assert!(matches!(refused(&objects, id), RestoreError::Tree(WalkError::Invalid { .. })));
        let mut builder = TreeBuilder::new();
        builder.push(&Entry { name: b"new", node: Node::Directory { tree: id } }).expect("allowed");
        let wanted = objects.put(builder.finish().bytes()).expect("kept");
        assert!(matches!(refused(&objects, wanted), RestoreError::Tree(WalkError::Invalid { .. })));
    }
}

#[test]
fn few_objects_that_stand_for_a_billion_entries_are_refused() {
    let objects = MemoryObjects::new();
    let mut tree = keep(&objects, &Things::new());
    for _ in 0..30 {
        let mut builder = TreeBuilder::new();
        for name in [b"a", b"b"] {
            builder.push(&Entry { name, node: Node::Directory { tree } }).expect("allowed");
        }
        tree = objects.put(builder.finish().bytes()).expect("kept");
    }
    let root = SimRoot::new();
    let limits = Limits { entries: 50_000, ..Limits::default() };
    let tools = Tools { root: &root, source: &objects, sink: &objects, journal: &root, limits };
    let now = keep(&objects, &Things::new());
    let error = restore(&tools, &side(now), &side(tree)).expect_err("refused");
    assert!(matches!(error, RestoreError::Tree(WalkError::Limit(_))), "{error:?}");
    assert_eq!(root.operations(), 0);
}

#[test]
fn a_refused_rerun_keeps_the_journal() {
    let objects = MemoryObjects::new();
    let root = SimRoot::new();
    make(&root, b"", &now());
    root.settle();
    let from = things::capture(&root, &objects);
    let first = keep(&objects, &all([("x", file("new"))]));
    root.crash_at(6, true);
    restore_to(&root, &objects, &root, first).expect_err("crashed");
    let root = root.process_kill();
    let broken = keep(&objects, &all([("x", file("lost"))]));
    objects.forget(&BlobId::of(b"lost"));
    restore_to(&root, &objects, &root, broken).expect_err("refused");
    let journal = JournalFile::read(&root).expect("read").expect("half-way still");
    assert_eq!((journal.from, journal.to, journal.abandoned), (from, broken, vec![first]));
    let restored = restore_to(&root, &objects, &root, from).expect("back");
    assert_eq!((restored.undo, read(&root, b"")), (from, now()));
}

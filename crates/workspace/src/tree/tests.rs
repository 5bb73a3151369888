//! Tree objects as a whole: the bytes of the format, what is refused, and walks through honest and hostile trees.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rekindle_domain::blob_id::BlobId;

use super::*;
use crate::objects::{MemoryObjects, ObjectSink};

fn hash(byte: u8) -> BlobId {
    BlobId::from_bytes([byte; 32])
}

fn built(entries: &[(Vec<u8>, OwnedNode)]) -> Tree {
    let mut builder = TreeBuilder::new();
    for (name, node) in entries {
        builder.push(&Entry { name, node: node.as_node() }).expect("sorted names that are allowed");
    }
    builder.finish()
}

fn directory_of(name: &[u8], tree: BlobId) -> Tree {
    built(&[(name.to_vec(), OwnedNode::Directory { tree })])
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let mut builder = TreeBuilder::new();
    builder
        .push(&Entry { name: b"a", node: Node::File { mode: FileMode::Plain, size: 300, content: hash(1) } })
        .expect("allowed");
    builder.push(&Entry { name: b"b", node: Node::Link { target: b"../x" } }).expect("allowed");
    builder.push(&Entry { name: b"c\xff", node: Node::Directory { tree: hash(2) } }).expect("allowed");
    let tree = builder.finish();
    let expected =
        [b"rktree1\nf\x01a\xac\x02".as_slice(), &[1; 32], b"l\x01b\x04../x", b"d\x02c\xff", &[2; 32]]
            .concat();
    assert_eq!(tree.bytes(), expected);
    assert_eq!(tree.id(), BlobId::of(&expected));
    assert_eq!(tree.get(b"b").map(|entry| entry.node), Some(Node::Link { target: b"../x" }));
    assert_eq!((tree.get(b"bb"), tree.get(b"d")), (None, None));
    assert_eq!(TreeBuilder::new().finish().bytes(), b"rktree1\n");
}

#[test]
fn what_is_not_canonical_is_refused_with_its_place() {
    let file = |name: &[u8]| [&[b'f', name.len() as u8], name, &[0], &[7; 32]].concat();
    let cases: &[(&[&[u8]], usize, Wrong)] = &[
        (&[b""], 0, Wrong::Magic),
        (&[b"rktree1"], 0, Wrong::Magic),
        (&[b"rktree2\n"], 0, Wrong::Magic),
        (&[b"rktree1\n", b"z\x01a"], 8, Wrong::Type),
        (&[b"rktree1\n", b"f"], 9, Wrong::CutOff),
        (&[b"rktree1\n", b"f\x05ab"], 10, Wrong::CutOff),
        (&[b"rktree1\n", b"f\x01a\x00", &[0; 31]], 12, Wrong::CutOff),
        (&[b"rktree1\n", b"d\x01a", &[0; 31]], 11, Wrong::CutOff),
        (&[b"rktree1\n", &file(b"a"), b"\n"], 8 + 36, Wrong::Type),
        (&[b"rktree1\n", &file(b"b"), &file(b"a")], 8 + 36, Wrong::Unsorted),
        (&[b"rktree1\n", &file(b"a"), &file(b"a")], 8 + 36, Wrong::Duplicate),
        (&[b"rktree1\n", &file(b"")], 8, Wrong::Name(NameError::Empty)),
        (&[b"rktree1\n", &file(b"..")], 8, Wrong::Name(NameError::Dots)),
        (&[b"rktree1\n", &file(b"/etc")], 8, Wrong::Name(NameError::Slash)),
        (&[b"rktree1\n", &file(b"a\0")], 8, Wrong::Name(NameError::Nul)),
        (&[b"rktree1\n", &file(b".Git")], 8, Wrong::Name(NameError::DotGit)),
        (&[b"rktree1\n", b"f\xff\xff\xff\x7fa"], 9, Wrong::Name(NameError::TooLong)),
        // The same length in two bytes, in eleven, and beyond 64 bits.
        (&[b"rktree1\n", b"f\x81\x00a"], 9, Wrong::Number),
        (&[b"rktree1\n", b"f\x01a", &[0x80; 10], &[0]], 11, Wrong::Number),
        (&[b"rktree1\n", b"f\x01a", &[0xff; 9], &[2]], 11, Wrong::Number),
        (&[b"rktree1\n", b"f\x01a", &[0xff; 9], &[1], &[0; 32]], 11, Wrong::FileSize),
        (&[b"rktree1\n", b"l\x01a\x00"], 11, Wrong::Target),
        (&[b"rktree1\n", b"l\x01a\x01\x00"], 11, Wrong::Target),
        (&[b"rktree1\n", b"l\x01a\x81\x20", &[b'x'; 4097]], 11, Wrong::Target),
    ];
    for (parts, offset, wrong) in cases {
        let bytes = parts.concat();
        let refused = Tree::parse(bytes.clone());
        assert_eq!(refused, Err(TreeError { offset: *offset, wrong: *wrong }), "{bytes:?}");
    }
}

#[test]
fn a_builder_refuses_what_a_reader_would_and_goes_on() {
    let mut builder = TreeBuilder::new();
    let mut wrong = |name: &[u8], node| builder.push(&Entry { name, node }).err().map(|error| error.wrong);
    let file = |size| Node::File { mode: FileMode::Plain, size, content: hash(0) };
    assert_eq!(wrong(b"b", file(0)), None);
    assert_eq!(wrong(b"a", file(0)), Some(Wrong::Unsorted));
    assert_eq!(wrong(b"b", file(0)), Some(Wrong::Duplicate));
    assert_eq!(wrong(b".git", file(0)), Some(Wrong::Name(NameError::DotGit)));
    assert_eq!(wrong(b"c", file(u64::MAX)), Some(Wrong::FileSize));
    assert_eq!(wrong(b"c", Node::Link { target: b"" }), Some(Wrong::Target));
    assert_eq!(wrong(b"c", Node::Link { target: b"x" }), None);
    let tree = builder.finish();
    assert_eq!(tree.entries().map(|entry| entry.name).collect::<Vec<_>>(), [b"b", b"c"]);
    Tree::parse(tree.bytes().to_vec()).expect("what was built is valid");
}

#[test]
fn a_tree_object_that_is_too_large_is_refused_before_it_is_read() {
    // Ten million entries: refused by its size, without a look at the first of them.
    let mut bytes = vec![0; MAX_TREE_BYTES as usize + 1];
    bytes[..8].copy_from_slice(b"rktree1\n");
    assert_eq!(Tree::parse(bytes.clone()).map_err(|error| error.wrong), Err(Wrong::TooLarge));
    let objects = MemoryObjects::new();
    let id = objects.put(&bytes).expect("kept");
    assert!(matches!(load(&objects, &id), Err(WalkError::Read { source, .. })
        if source.kind() == std::io::ErrorKind::FileTooLarge));
}

#[test]
fn a_walk_yields_paths_in_order_and_checks_every_object() {
    let objects = MemoryObjects::new();
    let put = |tree: &Tree| objects.put(tree.bytes()).expect("kept");
    let file = OwnedNode::File { mode: FileMode::Executable, size: 5, content: hash(3) };
    let inner = put(&built(&[(b"x".to_vec(), file.clone()), (b"y".to_vec(), file.clone())]));
    let empty = put(&TreeBuilder::new().finish());
    let root = put(&built(&[
        (b"a".to_vec(), OwnedNode::Directory { tree: inner }),
        (b"a.txt".to_vec(), OwnedNode::Link { target: b"a".to_vec() }),
        (b"b".to_vec(), OwnedNode::Directory { tree: empty }),
        (b"c".to_vec(), OwnedNode::Directory { tree: inner }),
    ]));
    let walk = |limits| TreeWalk::new(&objects, root, limits);
    let paths: Vec<String> = walk(Limits::default())
        .map(|entry| String::from_utf8(entry.expect("valid").path).expect("UTF-8"))
        .collect();
    assert_eq!(paths, ["a", "a/x", "a/y", "a.txt", "b", "c", "c/x", "c/y"]);

    let last =
        |limits| walk(limits).last().expect("an entry or an error").map(|_| ()).map_err(|e| e.to_string());
    let limits = Limits::default();
    assert_eq!(last(Limits { entries: 8, depth: 1, bytes: 20 }), Ok(()));
    assert_eq!(last(Limits { entries: 7, ..limits }), Err("the tree has more than 7 entries".into()));
    assert_eq!(
        last(Limits { depth: 0, ..limits }),
        Err("the tree has more than 0 levels of directories".into())
    );
    assert_eq!(
        last(Limits { bytes: 19, ..limits }),
        Err("the tree has more than 19 bytes of contents".into())
    );

    objects.falsify(inner, b"rktree1\n".to_vec());
    assert!(matches!(walk(limits).last(), Some(Err(WalkError::WrongHash { id })) if id == inner));
    objects.forget(&inner);
    assert!(matches!(walk(limits).last(), Some(Err(WalkError::Read { id, .. })) if id == inner));
    let text = objects.put(b"no tree").expect("kept");
    assert!(matches!(TreeWalk::new(&objects, text, limits).next(), Some(Err(WalkError::Invalid { .. }))));
}

#[test]
fn trees_that_stand_for_more_than_any_disk_holds_end_at_a_limit() {
    // Each level has the level below it twice: thirty objects, a billion entries.
    let objects = MemoryObjects::new();
    let mut wide = objects.put(TreeBuilder::new().finish().bytes()).expect("kept");
    let mut deep = wide;
    for _ in 0..30 {
        let twice = [b"a", b"b"].map(|name| (name.to_vec(), OwnedNode::Directory { tree: wide }));
        wide = objects.put(built(&twice).bytes()).expect("kept");
    }
    let limits = Limits { entries: 100_000, ..Limits::default() };
    let end = TreeWalk::new(&objects, wide, limits).last();
    assert!(matches!(end, Some(Err(WalkError::Limit(LimitReached::Entries(100_000))))));

    for _ in 0..2_000 {
        deep = objects.put(directory_of(b"d", deep).bytes()).expect("kept");
    }
    let mut walk = TreeWalk::new(&objects, deep, Limits::default());
    assert!(matches!(walk.by_ref().last(), Some(Err(WalkError::Limit(LimitReached::Depth(MAX_DEPTH))))));
    assert!(walk.next().is_none(), "after an error there is nothing");
}

#[test]
fn modes_are_what_counts_of_the_permission_bits() {
    let cases = [
        (0o644, FileMode::Plain, 0o644),
        (0o664, FileMode::Plain, 0o644),
        (0o755, FileMode::Executable, 0o755),
        (0o4755, FileMode::Executable, 0o755),
        (0o600, FileMode::Private, 0o600),
        (0o400, FileMode::Private, 0o600),
        (0o000, FileMode::Private, 0o600),
        (0o700, FileMode::PrivateExecutable, 0o700),
        (0o611, FileMode::Plain, 0o644),
    ];
    for (bits, mode, permissions) in cases {
        assert_eq!((FileMode::from_permissions(bits), mode.permissions()), (mode, permissions), "{bits:o}");
        assert_eq!(FileMode::from_permissions(permissions), mode, "what is restored is captured the same");
    }
}

fn any_node() -> impl Strategy<Value = OwnedNode> {
    let mode = prop_oneof![
        Just(FileMode::Plain),
        Just(FileMode::Executable),
        Just(FileMode::Private),
        Just(FileMode::PrivateExecutable)
    ];
    let size = prop_oneof![0..300_u64, 0..=MAX_FILE_SIZE];
    prop_oneof![
        (mode, size, any::<[u8; 32]>()).prop_map(|(mode, size, content)| OwnedNode::File {
            mode,
            size,
            content: BlobId::from_bytes(content)
        }),
        vec(1..=255_u8, 1..200).prop_map(|target| OwnedNode::Link { target }),
        any::<[u8; 32]>().prop_map(|tree| OwnedNode::Directory { tree: BlobId::from_bytes(tree) }),
    ]
}

fn any_tree() -> impl Strategy<Value = Vec<(Vec<u8>, OwnedNode)>> {
    let name = vec(any::<u8>(), 1..40).prop_filter("a name that is allowed", |name| check_name(name).is_ok());
    btree_map(name, any_node(), 0..12).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entries in any_tree()) {
        let tree = built(&entries);
        let read = Tree::parse(tree.bytes().to_vec()).expect("valid");
        let back: Vec<_> = read.entries().map(|entry| (entry.name.to_vec(), entry.node.into())).collect();
        prop_assert_eq!(&back, &entries);
        let again = built(&back);
        prop_assert_eq!(again.bytes(), tree.bytes());
    }

    #[test]
    fn a_changed_byte_is_refused_or_another_canonical_tree(entries in any_tree(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let tree = built(&entries);
        let mut bytes = tree.bytes().to_vec();
        bytes[at.index(tree.bytes().len())] ^= flip;
        if let Ok(other) = Tree::parse(bytes.clone()) {
            let read: Vec<(Vec<u8>, OwnedNode)> =
                other.entries().map(|entry| (entry.name.to_vec(), entry.node.into())).collect();
            prop_assert_ne!(&read, &entries);
            let again = built(&read);
            prop_assert_eq!(again.bytes(), &bytes[..], "read from bytes that are not canonical");
        }
    }

    #[test]
    fn noise_is_refused_and_never_a_panic(noise in vec(any::<u8>(), 0..200)) {
        let mut bytes = b"rktree1\n".to_vec();
        bytes.extend(noise);
        if let Ok(tree) = Tree::parse(bytes.clone()) {
            let read: Vec<(Vec<u8>, OwnedNode)> = tree.entries().map(|e| (e.name.to_vec(), e.node.into())).collect();
            let again = built(&read);
            prop_assert_eq!(again.bytes(), &bytes[..]);
        }
    }
}

//! Directories described in memory: made in a root, read from one, kept as trees, and drawn at random.

use std::collections::BTreeMap;

use rekindle_domain::blob_id::BlobId;
use rekindle_seeded::Rng;

use super::super::paths::join;
use super::super::root::{Root, SeenKind};
use super::ignores;
use crate::objects::{MemoryObjects, ObjectSink};
use crate::rules::is_temporary;
use crate::tree::{Entry, FileMode, OwnedNode, TreeBuilder};

/// A directory: what is in it, by name.
pub(in crate::restore) type Things = BTreeMap<Vec<u8>, Thing>;

/// Something in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::restore) enum Thing {
    File(Vec<u8>, FileMode),
    Link(Vec<u8>),
    Directory(Things),
}

/// Returns a plain file.
pub(in crate::restore) fn file(content: &str) -> Thing {
    Thing::File(content.as_bytes().to_vec(), FileMode::Plain)
}

/// Returns a link.
pub(in crate::restore) fn link(target: &str) -> Thing {
    Thing::Link(target.as_bytes().to_vec())
}

/// Returns a directory with some things in it.
pub(in crate::restore) fn directory<const N: usize>(things: [(&str, Thing); N]) -> Thing {
    Thing::Directory(all(things))
}

/// Returns what is in a directory.
pub(in crate::restore) fn all<const N: usize>(things: [(&str, Thing); N]) -> Things {
    things.into_iter().map(|(name, thing)| (name.as_bytes().to_vec(), thing)).collect()
}

/// Keeps a directory as a tree.
pub(in crate::restore) fn keep(objects: &MemoryObjects, things: &Things) -> BlobId {
    let mut builder = TreeBuilder::new();
    for (name, thing) in things {
        let node = match thing {
            Thing::File(content, mode) => OwnedNode::File {
                mode: *mode,
                size: content.len() as u64,
                content: objects.put(content).expect("kept"),
            },
            Thing::Link(target) => OwnedNode::Link { target: target.clone() },
            Thing::Directory(things) => OwnedNode::Directory { tree: keep(objects, things) },
        };
        builder.push(&Entry { name, node: node.as_node() }).expect("a name that is allowed");
    }
    objects.put(builder.finish().bytes()).expect("kept")
}

/// Makes things in a directory of a root.
pub(in crate::restore) fn make(root: &dyn Root, at: &[u8], things: &Things) {
    for (name, thing) in things {
        let path = join(at, name);
        match thing {
            Thing::File(content, mode) => {
                root.write_file(&path, *mode, &mut |out| out.write_all(content)).expect("written");
            }
            Thing::Link(target) => root.make_link(&path, target).expect("linked"),
            Thing::Directory(things) => {
                root.make_dir(&path).expect("made");
                make(root, &path, things);
            }
        }
    }
}

/// Reads a directory with everything in it, ignored or not. Special files are left out.
pub(in crate::restore) fn read(root: &dyn Root, at: &[u8]) -> Things {
    let mut things = Things::new();
    for name in root.list(at).expect("listed") {
        let path = join(at, &name);
        let seen = root.stat(&path).expect("seen").expect("it is in the list");
        let thing = match seen.kind {
            SeenKind::File => {
                let mut content = Vec::new();
                root.open(&path).expect("opened").0.read_to_end(&mut content).expect("read");
                Thing::File(content, FileMode::from_permissions(seen.permissions))
            }
            SeenKind::Link => Thing::Link(root.read_link(&path).expect("a link")),
            SeenKind::Directory => Thing::Directory(read(root, &path)),
            SeenKind::Special => continue,
        };
        things.insert(name, thing);
    }
    things
}

/// Returns what a capture would see: neither temporaries nor what is ignored nor `.git`.
pub(in crate::restore) fn visible(at: &[u8], things: &Things) -> Things {
    let mut seen = Things::new();
    for (name, thing) in things {
        let path = join(at, name);
        if is_temporary(name) || name == b".git" || ignores(&path, false) {
            continue;
        }
        let thing = match thing {
            Thing::Directory(things) => Thing::Directory(visible(&path, things)),
            other => other.clone(),
        };
        seen.insert(name.clone(), thing);
    }
    seen
}

/// Returns what is ignored, by path.
pub(in crate::restore) fn ignored(at: &[u8], things: &Things) -> BTreeMap<Vec<u8>, Thing> {
    let mut found = BTreeMap::new();
    for (name, thing) in things {
        let path = join(at, name);
        match thing {
            thing if ignores(&path, false) => _ = found.insert(path, thing.clone()),
            Thing::Directory(things) => found.extend(ignored(&path, things)),
            _ => {}
        }
    }
    found
}

/// Captures a root.
pub(in crate::restore) fn capture(root: &dyn Root, objects: &MemoryObjects) -> BlobId {
    keep(objects, &visible(b"", &read(root, b"")))
}

/// Draws a directory: names that are not UTF-8, modes, links to nothing, to themselves and out of the root, empty directories.
pub(in crate::restore) fn draw(rng: &mut Rng, depth: usize, with_ignored: bool) -> Things {
    const NAMES: &[&[u8]] =
        &[b"a", b"b", b"c d", b"\xff\xfe", b".hidden", b"n\nl", "grün".as_bytes(), b"-rf"];
    let mut things = Things::new();
    for _ in 0..rng.index(6) {
        things.insert(rng.pick(NAMES).to_vec(), draw_thing(rng, depth, with_ignored));
    }
    if with_ignored && rng.chance(1, 3) {
        let name = [b"ignored".as_slice(), *rng.pick(NAMES)].concat();
        things.insert(name, draw_thing(rng, depth, false));
    }
    things
}

fn draw_thing(rng: &mut Rng, depth: usize, with_ignored: bool) -> Thing {
    const MODES: &[FileMode] =
        &[FileMode::Plain, FileMode::Executable, FileMode::Private, FileMode::PrivateExecutable];
    const TARGETS: &[&[u8]] = &[b"a", b"b", b".", b"..", b"/", b"../../etc", b"/etc/passwd", b"\xff"];
    match rng.index(8) {
        0..=2 if depth > 0 => Thing::Directory(draw(rng, depth - 1, with_ignored)),
        3 => Thing::Link(rng.pick(TARGETS).to_vec()),
        4 => {
            let mut noise = vec![0; rng.index(9_000)];
            rng.fill(&mut noise);
            Thing::File(noise, FileMode::Plain)
        }
        _ => Thing::File(vec![b'x'; rng.index(4)], *rng.pick(MODES)),
    }
}

/// Changes some of what is in a directory: contents, kinds, modes, names.
pub(in crate::restore) fn change(rng: &mut Rng, things: &Things, depth: usize, with_ignored: bool) -> Things {
    let mut changed = draw(rng, depth, with_ignored);
    changed.retain(|_, _| rng.chance(1, 3));
    for (name, thing) in things {
        match (rng.index(6), thing) {
            (0, _) => {}
            (1..=3, Thing::Directory(things)) if depth > 0 => {
                let things = change(rng, things, depth - 1, with_ignored);
                changed.insert(name.clone(), Thing::Directory(things));
            }
            _ => _ = changed.entry(name.clone()).or_insert_with(|| thing.clone()),
        }
    }
    changed
}

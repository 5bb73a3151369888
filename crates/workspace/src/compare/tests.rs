//! Comparisons of made-up trees, against a plain comparison of their lists; diffs, as text and by `git apply`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use rekindle_seeded::Rng;

use super::*;
use crate::objects::{MemoryObjects, ObjectSink};
use crate::tree::{FileMode, TreeBuilder, TreeWalk};

/// Entries by path; directories are made as they are needed, and empty ones where one is asked for.
type Files = BTreeMap<Vec<u8>, OwnedNode>;

fn put(objects: &MemoryObjects, content: &[u8]) -> OwnedNode {
    let content_id = objects.put(content).expect("kept");
    OwnedNode::File { mode: FileMode::Plain, size: content.len() as u64, content: content_id }
}

fn files(objects: &MemoryObjects, list: &[(&str, &str)]) -> Files {
    list.iter().map(|(path, content)| (path.as_bytes().to_vec(), put(objects, content.as_bytes()))).collect()
}

/// Puts the tree of some files.
fn tree(objects: &MemoryObjects, files: &Files) -> BlobId {
    let mut names: BTreeMap<&[u8], Option<OwnedNode>> = BTreeMap::new();
    for (path, node) in files {
        match path.iter().position(|byte| *byte == b'/') {
            Some(slash) => _ = names.insert(&path[..slash], None),
            None => _ = names.insert(path, Some(node.clone())),
        }
    }
    let mut builder = TreeBuilder::new();
    for (name, node) in names {
        let node = node.unwrap_or_else(|| {
            let below = [name, b"/"].concat();
            let inside = files
                .iter()
                .filter_map(|(path, node)| Some((path.strip_prefix(&*below)?.to_vec(), node.clone())));
            OwnedNode::Directory { tree: tree(objects, &inside.collect()) }
        });
        builder.push(&Entry { name, node: node.as_node() }).expect("allowed");
    }
    objects.put(builder.finish().bytes()).expect("kept")
}

fn changes(objects: &MemoryObjects, old: &Files, new: &Files) -> Vec<Changed> {
    let (old, new) = (tree(objects, old), tree(objects, new));
    compare(objects, Some(old), Some(new), Limits::default()).map(|changed| changed.expect("valid")).collect()
}

fn shown(changes: &[Changed]) -> Vec<String> {
    changes.iter().map(|c| format!("{:?} {}", c.change, String::from_utf8_lossy(&c.path))).collect()
}

#[test]
fn every_kind_of_change_is_told_in_order() {
    let objects = MemoryObjects::new();
    let old = files(
        &objects,
        &[("a/gone", "1"), ("a/kept", "2"), ("b", "file"), ("c/x", "3"), ("m", "4"), ("same/x", "5")],
    );
    let mut new = files(
        &objects,
        &[
            ("a/kept", "two"),
            ("b/inside", "6"),
            ("c", "now a file"),
            ("m", "4"),
            ("same/x", "5"),
            ("z/new", "7"),
        ],
    );
    let content = BlobId::of(b"4");
    new.insert(b"m".to_vec(), OwnedNode::File { mode: FileMode::Executable, size: 1, content });
    let changes = changes(&objects, &old, &new);
    assert_eq!(
        shown(&changes),
        [
            "Deleted a/gone",
            "Modified a/kept",
            "TypeChanged b",
            "Added b/inside",
            "TypeChanged c",
            "Deleted c/x",
            "ModeChanged m",
            "Added z",
            "Added z/new"
        ]
    );
    let directories: Vec<bool> = changes.iter().map(Changed::is_directory).collect();
    assert_eq!(directories, [false, false, false, false, false, false, false, true, false]);
}

#[test]
fn equal_directories_are_not_read_and_limits_hold() {
    let objects = MemoryObjects::new();
    let old = files(&objects, &[("same/x", "1"), ("same/y", "2"), ("other/x", "3")]);
    let new = files(&objects, &[("same/x", "1"), ("same/y", "2"), ("other/x", "4")]);
    let same = tree(&objects, &files(&objects, &[("x", "1"), ("y", "2")]));
    let (old, new) = (tree(&objects, &old), tree(&objects, &new));
    assert!(objects.forget(&same));
    let run = |old, new, limits| -> Result<Vec<Changed>, WalkError> {
        compare(&objects, old, new, limits).collect()
    };
    assert_eq!(shown(&run(Some(old), Some(new), Limits::default()).expect("valid")), ["Modified other/x"]);
    assert!(matches!(run(Some(old), None, Limits::default()), Err(WalkError::Read { id, .. }) if id == same));
    let few = Limits { entries: 2, ..Limits::default() };
    assert!(matches!(run(Some(old), Some(new), few), Err(WalkError::Limit(LimitReached::Entries(2)))));
    let flat = Limits { depth: 0, ..Limits::default() };
    assert!(matches!(run(Some(old), Some(new), flat), Err(WalkError::Limit(LimitReached::Depth(0)))));
    // A tree that is not there is not asked for where it is compared with itself.
    let missing = Some(BlobId::of(b"missing"));
    assert_eq!(run(missing, missing, Limits::default()).expect("equal"), []);
}

#[test]
fn comparisons_of_random_trees_are_those_of_their_lists() {
    let mut rng = Rng::new(7);
    let objects = MemoryObjects::new();
    for _ in 0..200 {
        let mut draw = || -> Files {
            let mut files = Files::new();
            for _ in 0..rng.below(12) {
                let depth = 1 + rng.below(3);
                let path: Vec<&str> = (0..depth).map(|_| *rng.pick(&["a", "b", "a.b", "a-b"])).collect();
                let path = path.join("/").into_bytes();
                let taken = |other: &Vec<u8>| {
                    other.starts_with(&[&path[..], b"/"].concat())
                        || path.starts_with(&[&other[..], b"/"].concat())
                };
                let node = match rng.below(4) {
                    0 => OwnedNode::Link { target: vec![b'0' + rng.below(2) as u8] },
                    _ => put(&objects, &[b'0' + rng.below(2) as u8]),
                };
                if !files.keys().any(taken) {
                    files.insert(path, node);
                }
            }
            files
        };
        let (old, new) = (draw(), draw());
        let expand = |files: &Files| -> BTreeMap<Vec<u8>, OwnedNode> {
            TreeWalk::new(&objects, tree(&objects, files), Limits::default())
                .map(|entry| entry.map(|entry| (entry.path, entry.node)).expect("valid"))
                .collect()
        };
        let (all_old, all_new) = (expand(&old), expand(&new));
        let both_directories = |path: &Vec<u8>| {
            let is = |all: &BTreeMap<Vec<u8>, OwnedNode>| {
                matches!(all.get(path), Some(OwnedNode::Directory { .. }))
            };
            is(&all_old) && is(&all_new)
        };
        let mut paths: Vec<&Vec<u8>> = all_old.keys().chain(all_new.keys()).collect();
        paths.retain(|path| all_old.get(*path) != all_new.get(*path) && !both_directories(path));
        paths.sort();
        paths.dedup();
        let changes = changes(&objects, &old, &new);
        let mut found: Vec<&Vec<u8>> = changes.iter().map(|changed| &changed.path).collect();
        found.sort();
        assert_eq!(found, paths);
        for changed in &changes {
            assert_eq!(
                (changed.old.as_ref(), changed.new.as_ref()),
                (all_old.get(&changed.path), all_new.get(&changed.path))
            );
        }
    }
}

fn one(objects: &MemoryObjects, old: &[u8], new: &[u8]) -> Changed {
    let (old, new) = (Some(put(objects, old)), Some(put(objects, new)));
    Changed { path: b"f".to_vec(), change: Change::Modified, old, new }
}

#[test]
fn lines_are_counted_unless_that_is_not_worth_it() {
    let objects = MemoryObjects::new();
    let count =
        |changed: &Changed| count_lines(&objects, changed).expect("kept").map(|c| (c.added, c.removed));
    assert_eq!(count(&one(&objects, b"a\nb\nc\n", b"a\nB\nc\nd\n")), Some((2, 1)));
    assert_eq!(count(&one(&objects, b"a\n", b"a")), Some((1, 1)), "the end of the last line counts");
    assert_eq!(count(&one(&objects, b"", b"x\ny")), Some((2, 0)));
    assert_eq!(count(&Changed { new: None, ..one(&objects, b"x\ny", b"") }), Some((0, 2)));
    assert_eq!(count(&one(&objects, b"a\0", b"b")), None);
    assert_eq!(count(&one(&objects, &vec![b'x'; MAX_COUNTED_BYTES as usize + 1], b"b")), None);
    let link = Some(OwnedNode::Link { target: b"x".to_vec() });
    assert_eq!(count(&Changed { new: link, ..one(&objects, b"a", b"") }), None);
    // Lines without any order, as many as fit: counted, or given up.
    let noise = |seed| -> Vec<u8> {
        let mut rng = Rng::new(seed);
        (0..100_000).flat_map(|_| format!("{}\n", rng.below(100_000)).into_bytes()).collect()
    };
    // Whether the machine is quick enough to count them or not.
    if let Some((added, removed)) = count(&one(&objects, &noise(1), &noise(2))) {
        assert!(added == removed && added > 0);
    }
}

#[test]
fn diffs_are_written_as_git_does() {
    let objects = MemoryObjects::new();
    let write = |changed: &Changed| {
        let mut out = Vec::new();
        let shown = write_unified(&objects, changed, &mut out).expect("kept");
        (shown, String::from_utf8_lossy(&out).into_owned())
    };
    let (kind, text) = write(&one(&objects, b"1\n2\n3\n4\n5\n6\n7\n8\n", b"1\n2\n3\n4\nfive\n6\n7\n8"));
    assert_eq!(kind, Diff::Text);
    assert_eq!(
        text,
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n-8\n+8\n\\ No newline at end of file\n"
    );
    let added = Changed {
        change: Change::Added,
        old: None,
        path: b"a\n\xff\"".to_vec(),
        ..one(&objects, b"", b"x\n")
    };
    let name = r#"a\n\377\""#;
    let expected = format!(
        "diff --git \"a/{name}\" \"b/{name}\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/{name}\"\n@@ -0,0 +1 @@\n+x\n"
    );
    assert_eq!(write(&added), (Diff::Text, expected));
    let (kind, text) = write(&one(&objects, b"a\0", b"b\0"));
    assert_eq!((kind, text.lines().last()), (Diff::Binary, Some("Binary files a/f and b/f differ")));
    let (kind, _) = write(&one(&objects, &vec![b'x'; MAX_DIFF_BYTES as usize + 1], b"b"));
    assert_eq!(kind, Diff::TooLarge);
    let executable = Some(OwnedNode::File { mode: FileMode::Executable, size: 1, content: BlobId::of(b"a") });
    let mode = Changed { change: Change::ModeChanged, new: executable, ..one(&objects, b"a", b"") };
    assert_eq!(write(&mode).1, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
    let link = Some(OwnedNode::Link { target: b"to".to_vec() });
    let typed = Changed { change: Change::TypeChanged, new: link, ..one(&objects, b"a\n", b"") };
    assert!(
        write(&typed).1.contains("deleted file mode 100644")
            && write(&typed).1.contains("new file mode 120000")
    );
    let directory = Changed { new: Some(OwnedNode::Directory { tree: BlobId::of(b"") }), old: None, ..typed };
    assert_eq!(write(&directory), (Diff::Text, String::new()));
}

#[test]
fn git_applies_the_diff_of_random_texts() {
    let place = tempfile::tempdir().expect("a directory");
    if !Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("no git here: not tested");
        return;
    }
    let objects = MemoryObjects::new();
    let mut rng = Rng::new(11);
    for round in 0..20 {
        let mut text = || -> Vec<u8> {
            let lines = rng.below(30);
            let mut text: Vec<u8> = (0..lines)
                .flat_map(|_| rng.pick(&["a\n", "b\n", "c\r\n", "\r\n", "\n", "d\re\n"]).as_bytes().to_vec())
                .collect();
            if rng.chance(1, 3) {
                text.extend(b"\r");
            }
            text
        };
        let (old, new) = (text(), text());
        if old == new {
            continue;
        }
        let mut diff = Vec::new();
        write_unified(&objects, &one(&objects, &old, &new), &mut diff).expect("kept");
        fs::write(place.path().join("f"), &old).expect("written");
        fs::write(place.path().join("diff"), &diff).expect("written");
        let apply = Command::new("git")
            .current_dir(place.path())
            .args(["apply", "--whitespace=nowarn", "diff"])
            .output();
        let apply = apply.expect("git runs");
        assert!(
            apply.status.success(),
            "{round}: {}\n{}",
            String::from_utf8_lossy(&apply.stderr),
            String::from_utf8_lossy(&diff)
        );
        assert_eq!(fs::read(place.path().join("f")).expect("read"), new, "{round}");
    }
}

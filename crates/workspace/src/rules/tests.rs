//! Which paths count, by tables; git's index and directory, made by hand and by git itself.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;

use super::git_index::Tracked;
use super::*;
use crate::test_git::git;

/// Ignore files by path.
struct Files(HashMap<Vec<u8>, &'static str>);

impl IgnoreFiles for Files {
    fn read(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.0.get(path).map(|content| content.as_bytes().to_vec())
    }
}

struct Case {
    files: Files,
    lists: Arc<Lists>,
    repository: Option<Arc<Repository>>,
}

impl Case {
    fn new(files: &[(&str, &'static str)], exclude: &[&str], include: &[&str]) -> Case {
        let owned = |list: &[&str]| list.iter().map(|pattern| (*pattern).to_owned()).collect();
        let (lists, notes) = Lists::new(&Selection { exclude: owned(exclude), include: owned(include) });
        assert_eq!(notes, Vec::<String>::new());
        let files = files.iter().map(|(path, content)| (path.as_bytes().to_vec(), *content)).collect();
        Case { files: Files(files), lists: Arc::new(lists), repository: None }
    }

    fn rules_of(&self, directory: &[u8], above: &Arc<DirRules>, decision: Decision) -> Arc<DirRules> {
        let id = |name: &str| {
            self.files.0.get(&[directory, name.as_bytes()].concat()).map(|c| BlobId::of(c.as_bytes()))
        };
        above.enter(directory, decision, IGNORE_FILES.map(id), None)
    }

    /// Walks down to a path as a capture does; a slash at its end makes it a directory.
    fn decide(&self, path: &str) -> Decision {
        let above = DirRules::above_root(Arc::clone(&self.lists), self.repository.clone());
        let mut rules = self.rules_of(b"", &Arc::new(above), Decision::Include);
        let (whole, is_dir) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        for (end, _) in whole.match_indices('/') {
            match rules.decide(&whole.as_bytes()[..end], true, &self.files) {
                Decision::Ignore => return Decision::Ignore,
                decision => rules = self.rules_of(&whole.as_bytes()[..=end], &rules, decision),
            }
        }
        rules.decide(whole.as_bytes(), is_dir, &self.files)
    }

    fn check(&self, expected: &[(&str, Decision)]) {
        for (path, decision) in expected {
            assert_eq!(self.decide(path), *decision, "{path}");
        }
    }
}

use Decision::{Ignore, Include, OnlyListed};

#[test]
fn ignore_files_count_from_the_root_down_and_the_innermost_decides() {
    let files = [
        (".gitignore", "*.log\n/build/\n!keep.log\n\u{feff}\n[\n"),
        ("a/.gitignore", "!debug.log\r\ntmp\r\n"),
        ("a/.rekindleignore", "secret\n"),
        (".rekindleignore", "*.bin\n!keep.bin\n!tracked.log\n"),
    ];
    Case::new(&files, &[], &[]).check(&[
        ("x.log", Ignore),
        ("keep.log", Include),
        ("build/", Ignore),
        ("build/x", Ignore),
        ("build", Include),
        ("a/build/", Include),
        ("a/x.log", Ignore),
        ("a/debug.log", Include),
        ("debug.log", Ignore),
        ("a/b/debug.log", Include),
        ("a/tmp/", Ignore),
        ("tmp/", Include),
        ("a/b/secret", Ignore),
        ("x.bin", Ignore),
        ("a/keep.bin", Include),
        // A .rekindleignore beats every .gitignore.
        ("tracked.log", Include),
        (".hidden", Include),
        (".gitignore", Include),
    ]);
}

#[test]
fn the_users_lists_beat_ignore_files() {
    let files = [(".gitignore", "node_modules/\n*.env\nout/\n"), ("out/.gitignore", "*\n")];
    let case = Case::new(
        &files,
        &["assets/", "*.iso"],
        &["*.env", "node_modules/mine/**", "/out", "assets/logo.png"],
    );
    case.check(&[
        ("assets/", OnlyListed),
        ("assets/logo.png", Include),
        ("assets/big.png", Ignore),
        ("x.iso", Ignore),
        ("a/prod.env", Include),
        ("node_modules/", OnlyListed),
        ("node_modules/other/", Ignore),
        ("node_modules/mine/", OnlyListed),
        ("node_modules/mine/x", Include),
        ("node_modules/mine/deep/y", Include),
        ("sub/node_modules/", Ignore),
        // A pattern without a slash looks into no directory that is left out.
        ("node_modules/other/x.env", Ignore),
        ("out/", Include),
        ("out/x", Ignore),
    ]);
    let (_, notes) = Lists::new(&Selection { exclude: vec!["a{".into()], include: vec!["ok".into()] });
    assert!(notes.len() == 1 && notes[0].contains("`a{` in [workspace] exclude"), "{notes:?}");
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a path with a parent")).expect("directories");
    fs::write(path, content).expect("a file");
}

/// Makes a repository with two commits' worth of files in its index, or says that there is no git.
fn repository(root: &Path, arguments: &[&str]) -> bool {
    if !git(root, &[&["init"], arguments].concat()) {
        eprintln!("no git here, or one too old for {arguments:?}: not tested");
        return false;
    }
    for path in [".gitignore", "src/a.rs", "src/b.rs", "out/kept/x", "out/other", "a-b", "a/c"] {
        write(root, path, if path == ".gitignore" { "out/\n" } else { path });
    }
    assert!(git(root, &["add", "-f", ".gitignore", "src", "a-b", "a", "out/kept"]));
    true
}

#[test]
fn what_git_tracks_counts_although_it_is_ignored() {
    let place = tempfile::tempdir().expect("a directory");
    if !repository(place.path(), &[]) {
        return;
    }
    let mut case = Case::new(&[(".gitignore", "out/\n*.rs\n"), ("src/.gitignore", "*\n")], &["a"], &[]);
    case.repository = Repository::at(place.path()).map(Arc::new);
    case.check(&[
        ("src/a.rs", Include),
        ("src/new.rs", Ignore),
        ("out/", OnlyListed),
        ("out/kept/", OnlyListed),
        ("out/kept/x", Include),
        ("out/kept/y", Ignore),
        ("out/other", Ignore),
        ("a/", OnlyListed),
        ("a/c", Include),
        ("a-b", Include),
    ]);
    // From a directory below, paths are seen from there.
    let inside = Repository::around(&place.path().join("src")).expect("a repository");
    assert_eq!(
        (inside.tracked(b"a.rs", false), inside.tracked(b"src/a.rs", false)),
        (Tracked::Itself, Tracked::No)
    );
}

#[test]
fn every_kind_of_index_that_git_writes_is_read() {
    let expected = [".gitignore", "a-b", "a/c", "out/kept/x", "src/a.rs", "src/b.rs"];
    for (format, update) in [
        ("sha1", vec!["update-index", "--index-version", "2"]),
        ("sha1", vec!["update-index", "--index-version", "4"]),
        ("sha256", vec!["update-index", "--index-version", "4"]),
        ("sha256", vec!["update-index", "--index-version", "2"]),
        ("sha1", vec!["update-index", "--split-index"]),
        // Flags that only version 3 has.
        ("sha1", vec!["update-index", "--skip-worktree", "src/a.rs"]),
    ] {
        let place = tempfile::tempdir().expect("a directory");
        let object_format = format!("--object-format={format}");
        if !repository(place.path(), &[&object_format]) || !git(place.path(), &update) {
            continue;
        }
        let repository = Repository::at(place.path()).expect("a repository");
        for path in expected {
            assert_eq!(
                repository.tracked(path.as_bytes(), false),
                Tracked::Itself,
                "{path} {format} {update:?}"
            );
        }
        assert_eq!(repository.tracked(b"out", true), Tracked::Below);
        assert_eq!(repository.tracked(b"out/other", false), Tracked::No);
        assert_eq!(repository.tracked(b"sr", true), Tracked::No);
        assert_eq!(repository.note(), None);
    }
}

/// Returns an index of version 2 or 4 with these paths.
fn index(version: u32, paths: &[&[u8]]) -> Vec<u8> {
    let mut bytes =
        [b"DIRC".as_slice(), &version.to_be_bytes(), &(paths.len() as u32).to_be_bytes()].concat();
    let mut last: &[u8] = b"";
    for path in paths {
        let start = bytes.len();
        bytes.extend([7; 60]);
        bytes.extend([0, path.len() as u8]);
        if version == 4 {
            bytes.push(last.len() as u8);
        }
        bytes.extend_from_slice(path);
        bytes.push(0);
        while version != 4 && !(bytes.len() - start).is_multiple_of(8) {
            bytes.push(0);
        }
        last = path;
    }
    bytes.extend([9; 20]);
    bytes
}

#[test]
fn a_broken_index_is_refused_and_never_a_panic() {
    let paths: &[&[u8]] = &[b"a", b"a\xff", b"b/c"];
    for version in [2, 4] {
        let whole = index(version, paths);
        let read = TrackedPaths::parse(&whole).expect("an index");
        assert_eq!(read.iter().collect::<Vec<_>>(), paths);
        for at in 0..whole.len() {
            // What is cut off or changed is another index or none; it is never more than its bytes say.
            _ = TrackedPaths::parse(&whole[..at]);
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            _ = TrackedPaths::parse(&bytes);
        }
        assert_eq!(TrackedPaths::parse(&whole[..whole.len() - 40]), Err(IndexError::Damaged));
    }
    assert_eq!(TrackedPaths::parse(b""), Err(IndexError::Signature));
    assert_eq!(TrackedPaths::parse(b"DIRC\0\0\0\x05\0\0\0\0"), Err(IndexError::Version(5)));
    assert_eq!(TrackedPaths::parse(b"DIRC\0\0\0\x02\xff\xff\xff\xff"), Err(IndexError::Damaged));
    // Unsorted paths are found all the same.
    let unsorted = TrackedPaths::parse(&index(2, &[b"b", b"a", b"c"])).expect("an index");
    assert_eq!(unsorted.iter().collect::<Vec<_>>(), [b"a", b"b", b"c"]);
}

#[test]
fn an_index_that_cannot_be_read_is_a_note() {
    let place = tempfile::tempdir().expect("a directory");
    write(place.path(), ".git/HEAD", "ref: refs/heads/main\n");
    let empty = Repository::at(place.path()).expect("a repository");
    assert_eq!((empty.tracked(b"a", false), empty.note()), (Tracked::No, None), "nothing was added yet");
    write(place.path(), ".git/index", "rubbish");
    let broken = Repository::at(place.path()).expect("a repository");
    assert_eq!(broken.tracked(b"a", false), Tracked::No);
    let note = broken.note().expect("a note");
    assert!(note.contains("cannot tell what git tracks") && note.contains("it is not a git index"), "{note}");
}

#[test]
fn head_is_found_in_loose_and_packed_references() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let head = || Repository::at(root).expect("a repository").head();
    let expect = |reference: Option<&str>, commit: Option<&str>| GitHead {
        reference: reference.map(str::to_owned),
        commit: commit.map(str::to_owned),
    };
    write(root, ".git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(head(), expect(Some("refs/heads/main"), None));
    write(
        root,
        ".git/packed-refs",
        &format!("# pack-refs with: peeled\n{commit} refs/heads/main\n^{commit}\n"),
    );
    assert_eq!(head(), expect(Some("refs/heads/main"), Some(commit)));
    write(root, ".git/refs/heads/main", &format!("{}\n", commit.replace('0', "f")));
    assert_eq!(head(), expect(Some("refs/heads/main"), Some(&commit.replace('0', "f"))));
    write(root, ".git/HEAD", &format!("{commit}\n"));
    assert_eq!(head(), expect(None, Some(commit)));
    for bad in ["ref: ../../etc/passwd", "ref: refs/../../x", "rubbish", "", "ref: refs/heads/.invalid"] {
        write(root, ".git/HEAD", bad);
        assert_eq!(head(), GitHead::default(), "{bad}");
    }
    // A reference that refers to itself ends.
    write(root, ".git/HEAD", "ref: refs/heads/loop");
    write(root, ".git/refs/heads/loop", "ref: refs/heads/loop");
    assert_eq!(head(), expect(Some("refs/heads/loop"), None));
}

#[test]
fn linked_worktrees_are_told_from_submodules() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path();
    write(root, "main/.git/HEAD", "ref: refs/heads/main");
    write(root, "main/.git/worktrees/w/commondir", "../..\n");
    write(root, "main/.git/worktrees/w/HEAD", "ref: refs/heads/w");
    write(root, "main/.git/refs/heads/w", "0123456789abcdef0123456789abcdef01234567");
    write(root, "main/.git/modules/s/HEAD", "ref: refs/heads/main");
    let pointing = |name: &str, target: String| write(root, &format!("{name}/.git"), &target);
    pointing("w", format!("gitdir: {}\n", root.join("main/.git/worktrees/w").display()));
    pointing("main/s", "gitdir: ../.git/modules/s\n".to_owned());
    pointing("gone", "gitdir: /nowhere/.git/worktrees/x\n".to_owned());
    pointing("rubbish", "rubbish".to_owned());
    let linked = ["main", "w", "main/s", "gone", "rubbish", "none"]
        .map(|name| Repository::is_linked_worktree(&root.join(name)));
    assert_eq!(linked, [false, true, false, true, false, false]);
    let worktree = Repository::at(&root.join("w")).expect("a repository").head();
    assert_eq!(
        worktree.commit.as_deref(),
        Some("0123456789abcdef0123456789abcdef01234567"),
        "by the common directory"
    );
    assert!(
        Repository::at(&root.join("main/s")).is_some() && Repository::at(&root.join("rubbish")).is_none()
    );
}

#[test]
fn the_hash_of_the_rules_is_of_lists_paths_and_contents() {
    let (plain, _) = Lists::new(&Selection::default());
    let (listed, _) = Lists::new(&Selection { exclude: vec!["a".into()], include: vec![] });
    let (other, _) = Lists::new(&Selection { exclude: vec![], include: vec!["a".into()] });
    let file = |path: &str, content: &str| (path.as_bytes().to_vec(), BlobId::of(content.as_bytes()));
    let hashes = [
        hash_rules(&plain, &mut []),
        hash_rules(&listed, &mut []),
        hash_rules(&other, &mut []),
        hash_rules(&plain, &mut [file(".gitignore", "x")]),
        hash_rules(&plain, &mut [file(".gitignore", "y")]),
        hash_rules(&plain, &mut [file("a/.gitignore", "x")]),
        hash_rules(&plain, &mut [file("a/.gitignore", "x"), file(".gitignore", "x")]),
    ];
    for (index, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..index].contains(hash), "{index}");
    }
    assert_eq!(hash_rules(&plain, &mut [file(".gitignore", "x"), file("a/.gitignore", "x")]), hashes[6]);
}

#[test]
fn unfinished_files_of_a_restore_are_known_by_their_names() {
    for name in [".rekindle-0a1b.tmp", ".rekindle-f.tmp"] {
        assert!(is_temporary(name.as_bytes()), "{name}");
    }
    for name in [
        ".rekindle-.tmp",
        ".rekindle-0A.tmp",
        ".rekindle-xyz.tmp",
        "a.tmp",
        ".rekindle-0a",
        "x.rekindle-0a.tmp",
    ] {
        assert!(!is_temporary(name.as_bytes()), "{name}");
    }
}

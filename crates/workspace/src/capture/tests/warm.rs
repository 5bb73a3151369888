//! Captures with a stat cache: what is not read again, and what is although it looks the same.

use std::sync::atomic::AtomicU64;

use super::*;

#[test]
fn nothing_is_read_twice_and_an_unchanged_cache_stays() {
    let lab = Lab::new();
    // More names than one part has, in one directory.
    for index in 0..1_200 {
        lab.write(format!("flat/{index}"), format!("{index}"));
    }
    lab.write("a/b/c", "x");
    lab.write(".gitignore", "*.o\n");
    lab.write("a/x.o", "ignored");
    symlink("c", lab.at("a/b/l")).expect("a link");
    let cold = lab.capture();
    let cache = lab.warm();
    let again = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!((again.tree, again.totals, again.rules), (cold.tree, cold.totals, cold.rules));
    assert!(again.files_read == 0 && again.cache.is_none());

    // One file in the middle: it alone is read.
    lab.write("flat/700", "other");
    let changed = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(changed.files_read, 1);
    assert!(changed.cache.is_some() && changed.tree == lab.capture().tree && changed.tree != cold.tree);
    let kept = lab.place.path().join("root.stat");
    changed.cache.expect("changed").save(&kept).expect("saved");
    let loaded = capture(&lab.options(), &lab.objects, &StatCache::load(&kept)).expect("captured");
    assert!(loaded.files_read <= 1 && loaded.tree == changed.tree);
}

#[test]
fn a_change_that_hides_is_found() {
    let lab = Lab::new();
    lab.write("a/same size", "before");
    lab.write("a/mode", "x");
    lab.write("a/moved", "one");
    lab.write("a/moved2", "two");
    let cache = lab.warm();
    let modified = fs::metadata(lab.at("a/same size")).and_then(|file| file.modified()).expect("a time");
    lab.write("a/same size", "after!");
    fs::File::open(lab.at("a/same size")).and_then(|file| file.set_modified(modified)).expect("a time");
    lab.mode("a/mode", 0o755);
    fs::rename(lab.at("a/moved"), lab.at("a/moved3")).expect("renamed");
    fs::rename(lab.at("a/moved2"), lab.at("a/moved")).expect("renamed");
    fs::rename(lab.at("a/moved3"), lab.at("a/moved2")).expect("renamed");
    let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(
        lab.show(captured.tree),
        ["d a", "x a/mode x", "f a/moved two", "f a/moved2 one", "f a/same size after!"]
    );
}

#[test]
fn a_file_written_within_one_tick_of_the_clock_is_not_mistaken_for_the_one_before() {
    let lab = Lab::new();
    let mut cache = StatCache::new();
    for round in 0..300 {
        lab.write("f", format!("{round:04}"));
        let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
        assert_eq!(lab.show(captured.tree), [format!("f f {round:04}")]);
        cache = captured.cache.unwrap_or(cache);
    }
}

#[test]
fn a_file_whose_time_proves_nothing_is_read_each_time() {
    let lab = Lab::new();
    lab.write("d/f", "x");
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::open(lab.at("d/f")).and_then(|file| file.set_modified(later)).expect("a time");
    let mut cache = StatCache::new();
    for _ in 0..3 {
        let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
        assert_eq!(
            (captured.files_read, lab.show(captured.tree)),
            (1, vec!["d d".to_owned(), "f d/f x".to_owned()])
        );
        cache = captured.cache.unwrap_or(cache);
    }
}

#[test]
fn what_a_stopped_capture_did_is_not_done_again() {
    let lab = Lab::new();
    for index in 0..30 {
        lab.write(format!("{index}/f"), format!("{index}"));
    }
    // So that nothing is too young to be remembered.
    lab.warm();
    let asked = AtomicU64::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) == 10;
    let options = CaptureOptions { threads: Some(1), stop: &stop, ..lab.options() };
    let stopped = capture(&options, &lab.objects, &StatCache::new());
    let Err(CaptureError::Stopped { cache: Some(cache) }) = stopped else {
        panic!("not stopped: {stopped:?}")
    };
    assert_eq!(
        cache.directories(),
        9,
        "ten tasks: the root, which is not finished, and nine directories in it"
    );
    let rest = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!((rest.files_read, rest.tree), (30 - 9, lab.capture().tree));
}

#[test]
fn an_ignore_file_that_is_too_large_is_told() {
    let lab = Lab::new();
    lab.write(".gitignore", vec![b'#'; crate::rules::MAX_IGNORE_FILE_BYTES as usize + 1]);
    let notes = lab.capture().notes;
    assert!(
        notes.len() == 1 && notes[0].ends_with(".gitignore is larger than 1 MiB and is ignored"),
        "{notes:?}"
    );
}

#[test]
fn what_the_sink_has_lost_is_read_again() {
    let lab = Lab::new();
    lab.write("a/x", "xx");
    lab.write("a/y", "yy");
    let cache = lab.warm();
    let tree = lab.capture().tree;
    let before = lab.objects.len();
    let inner =
        TreeWalk::new(&lab.objects, tree, Limits::default()).next().expect("an entry").expect("valid");
    let OwnedNode::Directory { tree: inner } = inner.node else { panic!("a directory comes first") };
    for (lost, read) in [(BlobId::of(b"xx"), 1), (inner, 0), (tree, 0)] {
        assert!(lab.objects.forget(&lost));
        let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
        assert_eq!((captured.tree, captured.files_read, lab.objects.len()), (tree, read, before));
    }
    // Another sink has nothing.
    let empty = MemoryObjects::new();
    let captured = capture(&lab.options(), &empty, &cache).expect("captured");
    assert_eq!((captured.tree, captured.files_read, empty.len()), (tree, 2, before));
}

#[test]
fn rules_that_change_are_applied_to_what_is_known() {
    let lab = Lab::new();
    lab.write("a/x.o", "object");
    lab.write("a/x.c", "source");
    lab.write("b/x.o", "object");
    let cache = lab.warm();
    lab.write("a/.gitignore", "*.o\n");
    let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(
        lab.show(captured.tree),
        ["d a", "f a/.gitignore *.o\n", "f a/x.c source", "d b", "f b/x.o object"]
    );
    assert_eq!(captured.files_read, 1);
    let before = captured.rules;
    let cache = lab.warm();
    lab.write("a/.gitignore", "*.c\n");
    let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
    assert_eq!(
        lab.show(captured.tree),
        ["d a", "f a/.gitignore *.c\n", "f a/x.o object", "d b", "f b/x.o object"]
    );
    assert_ne!(captured.rules, before);
    // The user's lists change without any file changing.
    let cache = lab.warm();
    let selection = Selection { exclude: vec!["b/".into()], include: vec!["*.c".into()] };
    let options = CaptureOptions { selection, ..lab.options() };
    let captured = capture(&options, &lab.objects, &cache).expect("captured");
    assert_eq!(lab.show(captured.tree), ["d a", "f a/.gitignore *.c\n", "f a/x.c source", "f a/x.o object"]);
}

#[test]
fn names_that_come_and_go_within_one_tick_of_the_clock_are_seen() {
    let lab = Lab::new();
    lab.write("d/always", "x");
    let mut cache = lab.warm();
    for round in 0..300 {
        let (old, new) = (format!("d/{}", round - 1), format!("d/{round}"));
        lab.write(&new, "");
        _ = fs::remove_file(lab.at(&old));
        let captured = capture(&lab.options(), &lab.objects, &cache).expect("captured");
        assert_eq!(
            lab.show(captured.tree),
            ["d d".to_owned(), format!("f {new} "), "f d/always x".to_owned()]
        );
        cache = captured.cache.unwrap_or(cache);
    }
}

#[test]
fn what_was_skipped_is_skipped_and_named_again_although_its_directory_did_not_change() {
    let lab = Lab::new();
    lab.write("a/large", "xxx");
    lab.write("a/git~1", "x");
    lab.write("a/small", "x");
    lab.write("b/ignored", "x");
    lab.write("b/.gitignore", "*\n");
    fs::create_dir_all(lab.at("c/nested/.git")).expect("directories");
    let options = CaptureOptions { max_file: 2, ..lab.options() };
    let mut cache = lab.warm();
    for _ in 0..5 {
        let captured = capture(&options, &lab.objects, &cache).expect("captured");
        let expected =
            [("a/git~1".to_owned(), SkipReason::Name), ("a/large".to_owned(), SkipReason::TooLarge)];
        assert_eq!(Lab::skipped(&captured), expected);
        assert_eq!(lab.show(captured.tree), ["d a", "f a/small x", "d b", "d c", "d c/nested"]);
        cache = captured.cache.unwrap_or(cache);
    }
    // What the next rules do not ignore is found for what it is.
    fs::remove_file(lab.at("b/.gitignore")).expect("removed");
    symlink("ignored", lab.at("b/link")).expect("a link");
    lab.write(".rekindleignore", "link\n");
    let cache = lab.warm();
    lab.write(".rekindleignore", "no\n");
    let captured = capture(&options, &lab.objects, &cache).expect("captured");
    assert!(lab.show(captured.tree).contains(&"l b/link ignored".to_owned()));
}

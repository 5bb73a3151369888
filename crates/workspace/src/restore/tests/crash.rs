//! A crash at every operation of a restore, by power cut and by a kill of the process; then the same restore again.

use rekindle_seeded::Rng;
use rustix::io::Errno;

use super::sim::SimRoot;
use super::things::{
    Thing, Things, all, capture, change, directory, draw, file, keep, link, make, read, visible,
};
use super::*;
use crate::tree::FileMode;

/// Files, links and directories that become each other, and everything else that a restore does.
fn before() -> Things {
    all([
        ("ignored", directory([("x", file("nobody's business"))])),
        ("changed", file("old")),
        ("mode", file("same")),
        ("gone", file("only before")),
        ("link", link("old target")),
        ("same", directory([("deep", directory([("file", file("same"))]))])),
        ("file-to-dir", file("a file")),
        ("file-to-link", file("a file")),
        ("dir-to-file", directory([("a", file("1")), ("b", directory([("c", file("2"))]))])),
        ("dir-to-link", directory([])),
        ("dir-gone", directory([("a", file("1")), ("ignored-in-it", file("stays"))])),
        ("dir-gone-whole", directory([("a", file("1")), ("b", link("a"))])),
        ("link-to-dir", link("same")),
        ("deeper", directory([("a", directory([("x", file("old")), ("y", file("y"))]))])),
    ])
}

fn after() -> Things {
    all([
        ("changed", file("new")),
        ("mode", Thing::File(b"same".to_vec(), FileMode::Executable)),
        ("link", link("new target")),
        ("same", directory([("deep", directory([("file", file("same"))]))])),
        ("file-to-dir", directory([("x", file("x")), ("y", directory([("z", link("../.."))]))])),
        ("file-to-link", link("/etc/passwd")),
        ("dir-to-file", file("a file now")),
        ("dir-to-link", link("same")),
        ("link-to-dir", directory([("x", file("x"))])),
        ("dir-new", directory([("empty", directory([])), ("x", file("x"))])),
        ("deeper", directory([("a", directory([("x", file("new")), ("y", file("y"))]))])),
    ])
}

/// What is there after a restore: the wanted tree, and what was nobody's to remove.
fn left_in_place(mut wanted: Things) -> Things {
    wanted.insert(b"ignored".to_vec(), directory([("x", file("nobody's business"))]));
    wanted.insert(b"dir-gone".to_vec(), directory([("ignored-in-it", file("stays"))]));
    wanted
}

struct Case {
    start: SimRoot,
    objects: MemoryObjects,
    old: BlobId,
    new: BlobId,
}

fn case(before: &Things, after: &Things) -> Case {
    let objects = MemoryObjects::new();
    let start = SimRoot::new();
    make(&start, b"", before);
    start.settle();
    let (old, new) = (capture(&start, &objects), keep(&objects, after));
    Case { start, objects, old, new }
}

impl Case {
    /// Restores and returns what a crash at an operation leaves; nothing if the restore ended before.
    fn crash(&self, start: &SimRoot, operation: usize, to: BlobId, rng: &mut Rng) -> Option<SimRoot> {
        let root = start.process_kill();
        root.crash_at(operation, rng.chance(1, 2));
        let outcome = restore_to(&root, &self.objects, &root, to);
        assert_eq!(root.has_crashed(), outcome.is_err(), "{outcome:?}");
        root.has_crashed().then(|| match rng.index(4) {
            0 => root.process_kill(),
            // Killed, started again, and then the power goes.
            1 => root.process_kill().power_cut(rng),
            _ => root.power_cut(rng),
        })
    }
}

#[test]
fn a_restore_does_all_that_differs_and_nothing_else() {
    let case = case(&before(), &after());
    let root = &case.start;
    let restored = restore_to(root, &case.objects, root, case.new).expect("restored");
    assert_eq!(read(root, b""), left_in_place(after()));
    assert_eq!(restored.undo, case.old);
    assert_eq!(
        restored.left,
        [Left { path: b"dir-gone".to_vec(), why: LeftWhy::UnknownFiles }],
        "the directory keeps what is ignored"
    );
    assert!(!restored.done.iter().any(|done| done.path.starts_with(b"same")));
    assert_eq!(JournalFile::read(root).expect("read"), None);

    let back = restore_to(root, &case.objects, root, restored.undo).expect("restored");
    assert_eq!(read(root, b""), before());
    assert!(back.is_complete(), "{:?}", back.left);
    let again = restore_to(root, &case.objects, root, restored.undo).expect("restored");
    assert_eq!((again.done, again.resumed), (Vec::new(), false));
}

#[test]
fn a_crash_at_every_operation_is_finished_by_a_rerun() {
    let case = case(&before(), &after());
    let mut crashes = 0;
    for operation in 0.. {
        let mut finished = true;
        for seed in 0..24 {
            let mut rng = Rng::new(seed * 1_000 + operation as u64);
            let Some(mut root) = case.crash(&case.start, operation, case.new, &mut rng) else { continue };
            (finished, crashes) = (false, crashes + 1);
            let what = format!("operation {operation}, seed {seed}");
            match JournalFile::read(&root).expect("read") {
                None => {
                    let now = read(&root, b"");
                    let is_whole = now == before() || now == left_in_place(after());
                    assert!(is_whole, "{what}: half restored, and nothing says so: {now:?}");
                }
                Some(journal) => assert_eq!((journal.from, journal.to), (case.old, case.new), "{what}"),
            }
            // The next attempts may be cut short too.
            for _ in 0..rng.index(3) {
                if let Some(next) = case.crash(&root, rng.index(60), case.new, &mut rng) {
                    root = next;
                }
            }
            let interrupted = JournalFile::read(&root).expect("read").is_some();
            let restored = restore_to(&root, &case.objects, &root, case.new).expect(&what);
            assert_eq!(read(&root, b""), left_in_place(after()), "{what}");
            assert_eq!(restored.resumed, interrupted, "{what}");
            if interrupted {
                assert_eq!(restored.undo, case.old, "{what}: the way back is that of the first attempt");
            }
            // What is done is durable: nothing is pending that a power cut could take back.
            let later = root.power_cut(&mut rng);
            assert_eq!(read(&later, b""), left_in_place(after()), "{what}");
            assert_eq!(JournalFile::read(&later).expect("read"), None, "{what}");
        }
        if finished {
            break;
        }
    }
    assert!(crashes > 500, "only {crashes} crashes");
}

#[test]
fn random_trees_survive_crashes_and_changes_of_mind() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let old = draw(&mut rng, 2, false);
        let new = change(&mut rng, &old, 2, false);
        let other = change(&mut rng, &old, 2, false);
        let case = case(&old, &new);
        let other = keep(&case.objects, &other);
        let mut root = case.start.process_kill();
        for _ in 0..4 {
            let to = *rng.pick(&[case.new, other, case.old]);
            if let Some(next) = case.crash(&root, rng.index(40), to, &mut rng) {
                root = next;
            }
        }
        let journal = JournalFile::read(&root).expect("read");
        let to = *rng.pick(&[case.new, other, case.old]);
        let restored = restore_to(&root, &case.objects, &root, to).expect("restored");
        assert_eq!(restored.left, [], "seed {seed}");
        assert_eq!(keep(&case.objects, &read(&root, b"")), to, "seed {seed}: temporaries or worse are left");
        if let Some(journal) = journal {
            assert_eq!(restored.undo, journal.from, "seed {seed}: the true way back");
        }
        let back = restore_to(&root, &case.objects, &root, restored.undo).expect("restored");
        assert!(back.is_complete());
        assert_eq!(keep(&case.objects, &read(&root, b"")), restored.undo, "seed {seed}");
    }
}

/// Captures under rules that are a file of the workspace: while it is there, `secret.log` is ignored.
fn capture_by_rules(root: &SimRoot, objects: &MemoryObjects) -> BlobId {
    let mut things = visible(b"", &read(root, b""));
    if things.contains_key(b"rules".as_slice()) {
        things.remove(b"secret.log".as_slice());
    }
    keep(objects, &things)
}

#[test]
fn a_rerun_removes_nothing_that_was_ignored_when_it_began() {
    let objects = MemoryObjects::new();
    let secret = || file("ignored by the rules");
    let start = SimRoot::new();
    make(&start, b"", &all([("rules", file("*.log")), ("secret.log", secret()), ("x", file("1"))]));
    start.settle();
    let wanted = keep(&objects, &all([("x", file("2"))]));
    let attempt = |root: &SimRoot| {
        let limits = Limits::default();
        let tools = Tools { root, source: &objects, sink: &objects, journal: root, limits };
        let side = |tree| Side { ignores: &ignores_nothing, ..side(tree) };
        restore(&tools, &side(capture_by_rules(root, &objects)), &side(wanted))
    };
    // Half-way the rules are gone, and with them the reason why the file was not seen.
    for operation in 0.. {
        let root = start.process_kill();
        root.crash_at(operation, true);
        if attempt(&root).is_ok() {
            assert!(operation > 6);
            break;
        }
        let root = root.process_kill();
        if JournalFile::read(&root).expect("read").is_some() {
            attempt(&root).expect("restored");
            assert_eq!(read(&root, b""), all([("secret.log", secret()), ("x", file("2"))]), "{operation}");
        }
    }
}

#[test]
fn edits_between_an_interruption_and_the_rerun_are_in_the_way_back() {
    let case =
        case(&all([("x", file("old")), ("y", file("old"))]), &all([("x", file("new")), ("y", file("new"))]));
    let root = case.start.process_kill();
    let total = {
        let probe = case.start.process_kill();
        restore_to(&probe, &case.objects, &probe, case.new).expect("restored");
        probe.operations()
    };
    // The last operations are: rename x, rename y, sync, remove the journal.
    root.crash_at(total - 3, false);
    restore_to(&root, &case.objects, &root, case.new).expect_err("crashed");
    let root = root.process_kill();
    assert_eq!(read(&root, b"").get(b"x".as_slice()), Some(&file("new")));
    root.remove_file(b"y").expect("removed");
    make(&root, b"", &all([("y", file("edited since")), ("z", file("made since"))]));
    let restored = restore_to(&root, &case.objects, &root, case.new).expect("restored");
    assert_eq!(restored.left, [Left { path: b"z".to_vec(), why: LeftWhy::Appeared }]);
    assert_eq!(restored.undo, keep(&case.objects, &all([("x", file("old")), ("y", file("edited since"))])));
    assert_eq!(read(&root, b""), all([("x", file("new")), ("y", file("new")), ("z", file("made since"))]));
}

#[test]
fn a_disk_that_fails_leaves_everything_as_it_was_or_a_journal() {
    let case = case(&before(), &after());
    let mut failures = 0;
    for error in [Errno::NOSPC, Errno::IO, Errno::MFILE] {
        for operation in 0.. {
            let root = case.start.process_kill();
            root.fail_at(operation, error);
            let outcome = restore_to(&root, &case.objects, &root, case.new);
            if root.operations() <= operation {
                break;
            }
            failures += 1;
            let journal = JournalFile::read(&root).expect("read");
            match &outcome {
                // The restore worked around it, or the failure was in tidying up.
                Ok(_) => assert_eq!(read(&root, b""), left_in_place(after()), "{operation}"),
                Err(_) if journal.is_none() => assert_eq!(read(&root, b""), before(), "{operation}"),
                Err(RestoreError::Unfinished { undo, .. }) => assert_eq!(*undo, case.old),
                Err(_) => {}
            }
            restore_to(&root, &case.objects, &root, case.new).expect("the disk works again");
            assert_eq!(read(&root, b""), left_in_place(after()), "{operation}");
        }
    }
    assert!(failures > 100, "only {failures} failures");
}

#[test]
fn paths_that_the_system_refuses_are_left_and_named() {
    let case = case(&before(), &after());
    let mut refusals = 0;
    for operation in 0.. {
        let root = case.start.process_kill();
        root.fail_at(operation, Errno::ACCESS);
        let outcome = restore_to(&root, &case.objects, &root, case.new);
        if root.operations() <= operation {
            break;
        }
        let Ok(restored) = outcome else { continue };
        assert_eq!(JournalFile::read(&root).expect("read"), None);
        let is_whole = read(&root, b"") == left_in_place(after());
        let unnamed = restored.left.iter().all(|left| left.why == LeftWhy::UnknownFiles);
        assert!(is_whole || !unnamed, "operation {operation}: not restored and not said");
        refusals += usize::from(!unnamed);
        restore_to(&root, &case.objects, &root, case.new).expect("allowed now");
        assert_eq!(read(&root, b""), left_in_place(after()), "operation {operation}");
    }
    assert!(refusals > 10, "only {refusals} refusals");
}

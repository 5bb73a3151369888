//! Results that runs share, on their way from one home to another: whole or left out, and nothing that is there makes way for one.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::MemberName;
use rekindle_domain::id::{RunName, StepKey};
use rekindle_domain::pipeline::cached_result::CachedResult;
use rekindle_store::step_cache::{Lookup, StepCache};
use rekindle_testkit::rng::Rng;

use super::super::import::{ImportedResult, ImportedResults};
use super::hostile::{Parts, forged, parts};
use super::runs::{CONFIG, begin_run, exported_run, key, ledger, of_run, run, tree};
use super::*;
use crate::workspaces::Workspaces;

/// A result of the first step of the run, as another run left it.
fn result(to: BlobId, made_by: &str) -> CachedResult<'static> {
    let made_by: RunName = made_by.parse().expect("a name");
    let at = Timestamp::from_millis(1_771_668_000_000);
    CachedResult {
        key: key(),
        outcome: "completed".into(),
        payload: None,
        payload_blob: None,
        to,
        made_by,
        at,
    }
}

const MAKER: &str = "run-20251019-140818-4f9f29a1";

fn cache(disk: &SimDisk) -> StepCache {
    StepCache::new(shared(disk), Layout::new(HOME))
}

fn place() -> PathBuf {
    Layout::new(HOME).cached_results_of("a").expect("a name").join(key().file_name())
}

/// Returns what a home has under the key of the first step.
fn found(disk: &SimDisk) -> Option<CachedResult<'static>> {
    match cache(disk).find("a", key()) {
        Lookup::Found(result) => Some(result),
        Lookup::Missing => None,
        Lookup::Bad { why, .. } => panic!("it is damaged: {why}"),
    }
}

/// A home with a run at work in a step that is shared; another run has left a result of that, with a tree that the ledger does not name.
fn home_with_result() -> (SimDisk, CachedResult<'static>) {
    let disk = home_with_session();
    let store = open(&disk);
    begin_run(&store, &CONFIG.replace(r#""prompt":"do it""#, r#""prompt":"do it","cache":true"#));
    let result = result(tree(&store, "as it was left"), MAKER);
    drop(store);
    cache(&disk).keep("a", &result).expect("kept");
    (disk, result)
}

fn take_in(disk: &SimDisk, bundle: &[u8]) -> Result<ImportedResults, BundleError> {
    let mut file = Cursor::new(bundle);
    let mut staged = stage(&shared(disk), &Layout::new(HOME), &mut file, &asked(), &mut |_| {})?;
    staged.keep_contents(&mut file, &mut |_| {})?;
    import_staged(&shared(disk), &open(disk), staged.name())?;
    Ok(staged.results.clone())
}

fn assert_usable(disk: &SimDisk, result: &CachedResult<'_>) {
    assert_eq!(found(disk).as_ref(), Some(result));
    let workspaces = Workspaces::new(shared(disk), Layout::new(HOME));
    assert!(workspaces.has(&result.to), "with everything in the tree");
    assert_eq!(errors(disk), Vec::<String>::new());
}

#[test]
fn a_shared_result_comes_along_with_the_tree_that_only_it_names() {
    let (from, result) = home_with_result();
    let (bundle, exported) = exported_as(&from, &of_run());
    assert_eq!((exported.contents.format, exported.notes), (3, Vec::new()));
    assert_eq!(exported.contents.cached_results().collect::<Vec<_>>(), [key()]);
    let to = SimDisk::new(2);
    let results = take_in(&to, &bundle).expect("imported");
    assert_eq!(results.imported, [ImportedResult { key: key(), agent: "a".into() }]);
    assert_eq!((results.known.len(), results.left_out.len()), (0, 0));
    assert_usable(&to, &result);
    // And from there to a third place, byte for byte.
    let third = SimDisk::new(3);
    take_in(&third, &exported_run(&to)).expect("imported");
    assert_usable(&third, &result);
    assert_eq!(read_all(&third, &place(), 1 << 20).ok(), read_all(&from, &place(), 1 << 20).ok());
}

#[test]
fn steps_that_share_nothing_and_damaged_results_leave_a_bundle_as_it_was() {
    // The stage does not say `cache`: whatever lies there under its key is not its.
    let disk = home_with_session();
    let store = open(&disk);
    begin_run(&store, CONFIG);
    let result = result(tree(&store, "as it was left"), MAKER);
    drop(store);
    cache(&disk).keep("a", &result).expect("kept");
    let (_, exported) = exported_as(&disk, &of_run());
    assert_eq!((exported.contents.format, exported.contents.cached_results().count()), (2, 0));

    let (disk, _) = home_with_result();
    let bytes = read_all(&disk, &place(), 1 << 20).expect("a result");
    write(&disk, &bytes[..bytes.len() - 9]);
    let (bundle, exported) = exported_as(&disk, &of_run());
    assert_eq!((exported.contents.format, exported.contents.cached_results().count()), (2, 0));
    assert!(
        exported
            .notes
            .iter()
            .any(|note| note.contains("implement-1") && note.contains("is not in the bundle"))
    );
    assert_eq!(take_in(&SimDisk::new(2), &bundle).expect("imported"), ImportedResults::default());

    let (disk, result) = home_with_result();
    let gone = CachedResult { to: BlobId::of(b"no tree"), ..result };
    cache(&disk).keep("a", &gone).expect("kept");
    let (_, exported) = exported_as(&disk, &of_run());
    assert_eq!(exported.contents.cached_results().count(), 0);
    assert!(exported.notes.iter().any(|note| note.contains("are gone")), "{:?}", exported.notes);
}

fn write(disk: &SimDisk, bytes: &[u8]) {
    rekindle_store::disk::replace(disk, &place(), bytes).expect("written");
}

#[test]
fn a_result_that_is_there_stays_whether_it_says_the_same_or_not() {
    let (from, brought) = home_with_result();
    let bundle = exported_run(&from);
    let other_maker = "run-20251018-140818-4f9f29a1";
    // The same, of another run.
    let to = SimDisk::new(2);
    let store = open(&to);
    let same = CachedResult { made_by: other_maker.parse().expect("a name"), ..brought.clone() };
    assert_eq!(tree(&store, "as it was left"), same.to);
    drop(store);
    cache(&to).keep("a", &same).expect("kept");
    let results = take_in(&to, &bundle).expect("imported");
    assert_eq!((results.imported.len(), &results.known[..], results.left_out.len()), (0, &[key()][..], 0));
    assert_usable(&to, &same);
    // Another one, under another name of the agent.
    let to = SimDisk::new(3);
    let store = open(&to);
    let differs = result(tree(&store, "otherwise"), other_maker);
    drop(store);
    cache(&to).keep("elsewhere", &differs).expect("kept");
    let results = take_in(&to, &bundle).expect("imported");
    assert_eq!((results.imported.len(), results.known.len(), results.left_out.len()), (0, 0, 1));
    let why = &results.left_out[0].why;
    assert!(why.contains(other_maker) && why.contains("stays"), "{why}");
    assert_usable(&to, &differs);
    // One that is torn makes way, as it does for whoever does the step again.
    let to = SimDisk::new(4);
    drop(open(&to));
    cache(&to).keep("a", &brought).expect("kept");
    write(&to, b"{");
    assert_eq!(take_in(&to, &bundle).expect("imported").imported.len(), 1);
    assert_usable(&to, &brought);
}

#[test]
fn a_result_that_is_not_to_be_believed_is_left_out_and_the_run_comes() {
    let (from, honest) = home_with_result();
    let Parts { contents, members } = parts(&exported_run(&from));
    let at = contents.members.iter().position(|member| matches!(member.name, MemberName::CachedResult(_)));
    let at = at.expect("a result");
    let plain = |_: usize, _: &mut [u8; super::super::archive::BLOCK]| {};
    let with = |name: StepKey, bytes: &[u8]| {
        let (mut contents, mut members) = (contents.clone(), members.clone());
        let name = MemberName::CachedResult(name);
        members[at] = (name.to_string(), bytes.to_vec());
        let member = &mut contents.members[at];
        (member.name, member.size, member.hash) = (name, bytes.len() as u64, BlobId::of(bytes));
        forged(&contents.to_bytes().expect("a table"), &members, plain)
    };
    let bytes = |result: &CachedResult<'_>| result.write().expect("bytes");
    let other = StepKey::from_bytes([7; 32]);
    let large = rekindle_domain::event::BlobRef { blob: BlobId::of(b"what it said"), size: 12 };
    for (what, hostile, told) in [
        ("torn", with(key(), &members[at].1[..members[at].1.len() - 1]), "hash"),
        ("too large", with(key(), &vec![b' '; (1 << 20) + 1]), ""),
        (
            "of another key",
            with(key(), &bytes(&CachedResult { key: other, ..honest.clone() })),
            "result of ik:",
        ),
        (
            "of a step of no run",
            with(other, &bytes(&CachedResult { key: other, ..honest.clone() })),
            "no run",
        ),
        (
            "a tree of elsewhere",
            with(key(), &bytes(&CachedResult { to: BlobId::of(b"x"), ..honest.clone() })),
            "files",
        ),
        (
            "an outcome of no such stage",
            { with(key(), &bytes(&CachedResult { outcome: "approved".into(), ..honest.clone() })) },
            "approved",
        ),
        (
            "a failure",
            with(key(), &bytes(&CachedResult { outcome: "failed".into(), ..honest.clone() })),
            "failed",
        ),
        (
            "words that are not there",
            { with(key(), &bytes(&CachedResult { payload_blob: Some(large), ..honest.clone() })) },
            "what its agent said",
        ),
    ] {
        let to = SimDisk::new(2);
        let results = take_in(&to, &hostile).expect(what);
        assert_eq!(
            (results.imported.len(), results.known.len(), results.left_out.len()),
            (0, 0, 1),
            "{what}"
        );
        assert!(results.left_out[0].why.contains(told), "{what}: {}", results.left_out[0].why);
        assert_eq!(cache(&to).files().expect("listed"), [], "{what}");
        assert!(!ledger(&to).is_empty(), "{what}");
        assert_eq!(errors(&to), Vec::<String>::new(), "{what}");
    }
}

// I12: nothing of an import is there by half.
#[test]
fn a_crash_while_a_result_is_imported_leaves_it_whole_or_absent() {
    let (from, result) = home_with_result();
    let bundle = exported_run(&from);
    let disk = SimDisk::new(2);
    drop(open(&disk));
    let seen: Arc<std::sync::Mutex<Vec<SimDisk>>> = Arc::default();
    let (points, handle) = (seen.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| points.lock().expect("no panic").push(handle.fork())));
    take_in(&disk, &bundle).expect("imported");
    disk.clear_observer();
    let points = std::mem::take(&mut *seen.lock().expect("no panic"));
    let (mut rng, mut alone, mut absent) = (Rng::new(7), 0, 0);
    for (index, point) in points.iter().enumerate() {
        for image in [point.power_cut(&mut rng), point.process_kill(&mut rng)] {
            // Never by half: `found` panics at that.
            let before = found(&image);
            assert!(before.is_none() || before.as_ref() == Some(&result), "at {index}");
            let store = open(&image);
            let opened = store.open_pipeline(run().pipeline_id()).expect("readable");
            let has_run = opened.is_some_and(|run| run.fold.started.is_some());
            drop(store);
            if has_run {
                assert!(before.is_some(), "at {index}: the run is here, and nobody would bring the result");
            } else {
                *(if before.is_some() { &mut alone } else { &mut absent }) += 1;
                take_in(&image, &bundle).unwrap_or_else(|error| panic!("at {index}: {error}"));
            }
            assert_usable(&image, &result);
        }
    }
    assert!(alone > 0 && absent > 0, "{alone} times before its run, {absent} times not at all");
}

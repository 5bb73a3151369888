//! Runs of pipelines that go from one home to another: whole, at rest, and refused where anything about them is not so.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{Contents, MemberName};
use rekindle_domain::event::{PipelineStarted, ProjectConfig};
use rekindle_domain::id::{RunId, RunName, StepId, StepKey};
use rekindle_domain::pipeline::compose::{self, Intention};
use rekindle_domain::pipeline::{PipelineState, RunStatus};
use rekindle_store::offline::Offline;
use rekindle_testkit::rng::Rng;
use rekindle_workspace::tree::{Entry, FileMode, Node, TreeBuilder};

use super::super::import::ImportedRun;
use super::hostile::{Parts, forged, parts};
use super::*;
use crate::workspaces::Workspaces;

pub(super) const CONFIG: &str = r#"{"version":1,"agents":{"a":{"command":["sh","-c","true"],"profile":"exec"}},"tasks":[{"id":"T-1","goal":"Make it so"}],
    "pipelines":{"default":{"stages":[{"name":"implement","agent":"a","prompt":"do it"},{"name":"verify","check":["true"]}]}}}"#;

pub(super) fn run() -> RunName {
    "run-20251020-140818-4f9f29a1".parse().expect("a name")
}

/// Puts a tree with one file into a home.
pub(super) fn tree(store: &Store<Inline>, content: &str) -> BlobId {
    let blobs = store.blobs();
    let batch = blobs.batch().expect("a batch");
    let size = content.len() as u64;
    let content = batch.put(content.as_bytes()).expect("put");
    let mut tree = TreeBuilder::new();
    let node = Node::File { mode: FileMode::Plain, size, content };
    tree.push(&Entry { name: b"file", node }).expect("an entry");
    let id = batch.put(tree.finish().bytes()).expect("put");
    drop(batch.commit().expect("committed"));
    id
}

/// The key of its first step.
pub(super) fn key() -> StepKey {
    StepKey::from_bytes(*BlobId::of(b"key").as_bytes())
}

/// Makes a run whose first step is at work in the session of the home.
pub(super) fn begin_run(store: &Store<Inline>, config: &str) -> PipelineState {
    let id = run().pipeline_id();
    let tree = tree(store, "as it was");
    let config: ProjectConfig = serde_json::from_str(config).expect("a configuration");
    let started = PipelineStarted {
        pipeline: "default".into(),
        task: Box::new(config.tasks[0].clone()),
        config: Box::new(config),
        config_hash: BlobId::of(b"config"),
        snapshot_id: "snap-010101010101".into(),
        tree,
        working_dir: "/work".into(),
        origin: "/work".into(),
        on_cut: None,
        by: "user:ada".into(),
        on_drift: Some(rekindle_domain::event::OnDrift::Restore),
        budget: None,
        no_cache: false,
        options: None,
        idempotency_key: Some("a key".into()),
    };
    let intention = Intention { key: key(), from: tree, agent: None, inputs_hash: BlobId::of(b"inputs") };
    let step: StepId = "implement-1".parse().expect("a step");
    store.create_pipeline(id).expect("a new run");
    let records = compose::start(id, started, intention).expect("a start");
    store.append(Append::durable(id, records)).expect("started");
    let state = store.open_pipeline(id).expect("readable").expect("there").fold;
    let current = state.current_step().expect("a step");
    assert_eq!(current.id, step);
    let began = compose::begin(current, session(), "run_1".parse::<RunId>().expect("an id"));
    store.append(Append::durable(id, vec![began])).expect("begun");
    store.open_pipeline(id).expect("readable").expect("there").fold
}

fn home_with_run() -> SimDisk {
    let disk = home_with_session();
    begin_run(&open(&disk), CONFIG);
    disk
}

pub(super) fn of_run() -> Export<'static> {
    Export { sessions: Vec::new(), runs: vec![run().pipeline_id()], ..alone() }
}

pub(super) fn exported_run(disk: &SimDisk) -> Vec<u8> {
    exported_as(disk, &of_run()).0
}

fn take_in(disk: &SimDisk, bundle: &[u8]) -> Result<(Vec<ImportedRun>, Vec<SessionId>), BundleError> {
    let mut file = Cursor::new(bundle);
    let mut staged = stage(&shared(disk), &Layout::new(HOME), &mut file, &asked(), &mut |_| {})?;
    staged.keep_contents(&mut file, &mut |_| {})?;
    import_staged(&shared(disk), &open(disk), staged.name())?;
    Ok((staged.runs.clone(), staged.known.clone()))
}

pub(super) fn ledger(disk: &SimDisk) -> Vec<u8> {
    let offline = Offline::open(shared(disk), HOME).expect("a home");
    let reader = offline.ledger_reader(run().pipeline_id()).expect("a ledger");
    let mut bytes = Vec::new();
    let mut all = reader.stored(rekindle_store::log::Cursor::START, reader.end());
    std::io::Read::read_to_end(&mut all, &mut bytes).expect("read");
    bytes
}

fn state(disk: &SimDisk) -> PipelineState {
    let offline = Offline::open(shared(disk), HOME).expect("a home");
    offline.pipeline(run().pipeline_id()).expect("read").state
}

#[test]
fn a_run_comes_to_another_home_whole_and_rests_there() {
    let (from, to) = (home_with_run(), SimDisk::new(2));
    let (bundle, exported) = exported_as(&from, &of_run());
    assert_eq!((exported.contents.format, exported.notes.len()), (2, 0), "{:?}", exported.notes);
    let (runs, known) = take_in(&to, &bundle).expect("imported");
    assert_eq!((runs.len(), known.len()), (1, 0));
    assert_eq!((runs[0].run_id, runs[0].records, runs[0].lost_attempt), (run(), 3, true));
    assert_eq!((runs[0].next.as_deref(), runs[0].working_dir.as_str()), (Some("implement-1"), "/elsewhere"));
    let (old, new) = (ledger(&from), ledger(&to));
    assert!(new.starts_with(&old) && new.len() > old.len(), "byte for byte, and that it is here");
    let state = state(&to);
    let started = state.started.as_deref().expect("started");
    assert_eq!((started.working_dir.as_str(), started.origin.as_str()), ("/elsewhere", "/elsewhere"));
    assert_eq!((started.on_drift, started.idempotency_key.as_deref()), (None, None));
    assert!(state.is_imported && state.current_step().is_some_and(|step| step.attempt.is_none()));
    let workspaces = Workspaces::new(shared(&to), Layout::new(HOME));
    assert!(workspaces.has(&state.expected_tree().expect("a tree")), "with everything in it");
    // The session of its step came along, and is as safe as any other.
    let offline = Offline::open(shared(&to), HOME).expect("a home");
    let step = offline.load(session(), rekindle_store::Want::Everything).expect("loaded").state;
    assert!(step.open_run().is_none());
    assert_eq!(errors(&to), Vec::<String>::new());
    // It is the same for whoever opens it, also after a power cut, and goes on to a third place.
    let image = to.power_cut(&mut Rng::new(3));
    assert_eq!(
        open(&image).open_pipeline(run().pipeline_id()).expect("readable").expect("there").fold,
        state
    );
    let third = SimDisk::new(3);
    take_in(&third, &exported_run(&to)).expect("imported");
    assert!(ledger(&third).starts_with(&new));
    // A second time it is refused, and nothing is changed.
    let before = files(&to, Path::new(HOME));
    let refused = take_in(&to, &bundle).expect_err("refused");
    assert_eq!(refused.code(), "run_exists");
    assert_eq!(files(&to, Path::new(HOME)), before);
}

#[test]
fn a_compressed_run_is_exported_as_it_was_written() {
    let disk = home_with_session();
    let store = open(&disk);
    begin_run(&store, CONFIG);
    let id = run().pipeline_id();
    store.append(Append::durable(id, vec![compose::abort(None, "user:ada")])).expect("aborted");
    let plain = ledger(&disk);
    let aborted = store.open_pipeline(id).expect("readable").expect("there").fold;
    assert!(store.compress_ledger(&aborted).expect("compressed"));
    drop(store);
    let to = SimDisk::new(2);
    take_in(&to, &exported_run(&disk)).expect("imported");
    assert!(ledger(&to).starts_with(&plain));
    assert_eq!(state(&to).status, RunStatus::Aborted);
}

#[test]
fn sessions_of_a_run_that_are_here_stay_and_no_other_takes_their_place() {
    let from = home_with_run();
    let to = SimDisk::new(2);
    imported(&to, &exported(&from)).expect("imported");
    let before = log(&to, session());
    let (runs, known) = take_in(&to, &exported_run(&from)).expect("imported");
    assert_eq!((runs.len(), known), (1, vec![session()]));
    assert_eq!(log(&to, session()), before, "the one that was there is as it was");
    assert_eq!(errors(&to), Vec::<String>::new());
    // One that only has its id is another one.
    let other = SimDisk::new(3);
    let store = open(&other);
    store.create(session()).expect("made");
    let provider = r#"{"type":"acp","agent":"codex","model":null}"#;
    store.append(Append::durable(session(), vec![created(provider)])).expect("appended");
    drop(store);
    let before = files(&other, Path::new(HOME));
    let refused = take_in(&other, &exported_run(&from)).expect_err("refused");
    assert_eq!(refused.code(), "session_exists");
    assert_eq!(files(&other, Path::new(HOME)), before);
}

// I12: the ledger of a run is the last of it to get its place.
#[test]
fn a_crash_while_a_run_is_imported_leaves_it_whole_or_absent() {
    let bundle = exported_run(&home_with_run());
    let disk = SimDisk::new(2);
    drop(open(&disk));
    let seen: Arc<std::sync::Mutex<Vec<SimDisk>>> = Arc::default();
    let (points, handle) = (seen.clone(), disk.clone());
    disk.set_observer(Box::new(move |_| points.lock().expect("no panic").push(handle.fork())));
    take_in(&disk, &bundle).expect("imported");
    disk.clear_observer();
    let whole = ledger(&disk);
    let points = std::mem::take(&mut *seen.lock().expect("no panic"));
    let (mut rng, mut there, mut absent) = (Rng::new(7), 0, 0);
    for (index, point) in points.iter().enumerate() {
        for image in [point.power_cut(&mut rng), point.process_kill(&mut rng)] {
            assert_eq!(errors(&image), Vec::<String>::new(), "at {index}");
            let store = open(&image);
            let id = run().pipeline_id();
            let opened = store.open_pipeline(id).expect("readable").filter(|run| run.fold.started.is_some());
            drop(store);
            if opened.is_some() {
                there += 1;
                assert_eq!(ledger(&image), whole, "at {index}");
                assert_eq!(take_in(&image, &bundle).expect_err("it is here").code(), "run_exists");
            } else {
                absent += 1;
                take_in(&image, &bundle).unwrap_or_else(|error| panic!("at {index}: {error}"));
                assert_eq!(ledger(&image), whole, "at {index}");
            }
            assert_eq!(errors(&image), Vec::<String>::new(), "at {index}");
        }
    }
    assert!(there > 0 && absent > 0, "{there} times there, {absent} times not");
}

#[test]
fn a_run_that_is_not_what_its_bundle_says_is_refused_before_anything_is_written() {
    let bundle = exported_run(&home_with_run());
    let Parts { contents, members } = parts(&bundle);
    let plain = |_: usize, _: &mut [u8; super::super::archive::BLOCK]| {};
    let place = contents.members.iter().position(|member| matches!(member.name, MemberName::Ledger(_)));
    let place = place.expect("a ledger");
    type Members = Vec<(String, Vec<u8>)>;
    let with = |change: &dyn Fn(&mut Contents, &mut Members)| {
        let (mut contents, mut members) = (contents.clone(), members.clone());
        change(&mut contents, &mut members);
        forged(&contents.to_bytes().expect("a table"), &members, plain)
    };
    let with_ledger = |change: &dyn Fn(&mut Vec<u8>)| {
        with(&|contents, members| {
            change(&mut members[place].1);
            contents.members[place].size = members[place].1.len() as u64;
            contents.members[place].hash = BlobId::of(&members[place].1);
        })
    };
    let other: RunName = "run-20251020-140818-00000000".parse().expect("a name");
    // One whose configuration no check would let through: made where nobody checked.
    let nonsense = home_with_session();
    begin_run(&open(&nonsense), &CONFIG.replace(r#""agent":"a""#, r#""agent":"nobody""#));
    for (what, hostile) in [
        ("a record that was changed, with hashes that fit", {
            with_ledger(&|ledger| {
                let text = String::from_utf8(ledger.clone()).expect("text");
                *ledger = text.replacen("Make it so", "Make it no", 1).into_bytes();
            })
        }),
        ("a ledger that is cut off", with_ledger(&|ledger| ledger.truncate(ledger.len() - 9))),
        ("a ledger of a record less", {
            with_ledger(&|ledger| {
                ledger.pop();
                let end = ledger.iter().rposition(|byte| *byte == b'\n').expect("lines");
                ledger.truncate(end + 1);
            })
        }),
        ("nothing in it", with_ledger(&Vec::clear)),
        ("another end than announced", with(&|contents, _| contents.runs[0].seq += 1)),
        ("other files than announced", {
            with(&|contents, _| {
                let session = &contents.sessions[0];
                assert!(session.tree.is_none());
                let payload = contents.members.iter().find_map(|member| match member.name {
                    MemberName::Blob(id) if Some(id) != contents.runs[0].tree => Some(id),
                    _ => None,
                });
                contents.runs[0].tree = payload;
            })
        }),
        ("trees that are not there", with(&|contents, _| contents.runs[0].trees.push(BlobId::of(b"no")))),
        ("another name", {
            with(&|contents, members| {
                contents.runs[0].run_id = other;
                contents.members[place].name = MemberName::Ledger(other);
                members[place].0 = MemberName::Ledger(other).to_string();
            })
        }),
        ("a configuration that makes no sense", exported_run(&nonsense)),
    ] {
        let to = SimDisk::new(2);
        drop(open(&to));
        let before = files(&to, Path::new(HOME));
        let refused = take_in(&to, &hostile).expect_err(what);
        assert!(!refused.to_string().is_empty(), "{what}");
        assert_eq!(files(&to, Path::new(HOME)), before, "{what}: {refused}");
    }
}

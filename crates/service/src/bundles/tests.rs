//! Bundles on simulated disks: round trips, damage, hostile ones, crashes.

mod crashes;
mod hostile;
mod results;
mod round_trips;
mod runs;
mod seals;
mod transcripts;
mod trees;

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_agent::known::AgentDirectories;
use rekindle_domain::event::Event;
use rekindle_domain::id::{BootId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::Timestamp;
use rekindle_store::commit::{Append, Inline, Limits};
use rekindle_store::disk::{Disk, EntryKind, SharedDisk, read_all};
use rekindle_store::layout::Layout;
use rekindle_store::{Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use super::BundleError;
use super::export::{Export, Exported, export};
use super::import::{Import, ImportedSession, import_staged, stage};

/// The home that bundles come from, and the one they go to.
const HOME: &str = "/home";

fn session() -> SessionId {
    "sess_1".parse().expect("an id")
}

/// Returns a record.
fn record(kind: &'static str, fields: &str) -> Draft {
    Event::read(kind, fields.to_owned().leak()).expect("a record").into()
}

fn open(disk: &SimDisk) -> Store<Inline> {
    let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
    let (layout, clock) = (Layout::new(HOME), Arc::new(SimClock::default()));
    Store::open_inline(Arc::new(disk.clone()), layout, opener, clock, Limits::default()).expect("a home")
}

fn shared(disk: &SimDisk) -> SharedDisk {
    Arc::new(disk.clone())
}

/// What a session begins with.
fn created(provider: &str) -> Draft {
    let options = r#"{"resume":"auto","on_uncertain":"ask","permissions":"allow"}"#;
    let fields =
        format!(r#"{{"title":"a title","working_dir":"/work","provider":{provider},"options":{options}}}"#);
    record("session.created", &fields)
}

/// A home with a session in which a run goes on, with a payload and a prompt that waits.
fn home_with_session() -> SimDisk {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    let blob = store.blobs().put(b"a payload").expect("kept").blob;
    store.create(session()).expect("made");
    let launching = r#"{"holder_id":"h_1","argv":["x"],"env_names":[],"boot_id":"boot_a","run_id":"run_1"}"#;
    let records = vec![
        created(r#"{"type":"acp","agent":"claude","model":null}"#),
        record("message.user", r#"{"message_id":"msg_1","content":"hello"}"#),
        record("run.started", r#"{"run_id":"run_1","boot_id":"boot_a","message_id":"msg_1"}"#),
        record("agent.launching", launching),
        record("agent.ready", r#"{"holder_id":"h_1","cursor":"c_1"}"#),
        record(
            "message.agent",
            &format!(r#"{{"run_id":"run_1","message_id":"msg_2","content":{{"blob":"{blob}","size":9}}}}"#),
        ),
        record("message.user", r#"{"message_id":"msg_3","content":"next","queued":true}"#),
    ];
    store.append(Append::durable(session(), records)).expect("appended");
    disk
}

/// Returns how the session is exported, alone.
fn alone() -> Export<'static> {
    Export {
        runs: Vec::new(),
        sessions: vec![session()],
        files: None,
        transcripts: None,
        made_by: "0.1.0".into(),
        made_at: Timestamp::from_millis(1_000),
        machine: Some("laptop".into()),
    }
}

/// Exports the session, alone.
fn exported(disk: &SimDisk) -> Vec<u8> {
    exported_as(disk, &alone()).0
}

fn exported_as(disk: &SimDisk, asked: &Export<'_>) -> (Vec<u8>, Exported) {
    let mut bytes = Vec::new();
    let exported = export(&shared(disk), &Layout::new(HOME), asked, &mut bytes, &mut |_| {});
    (bytes, exported.expect("exported"))
}

fn asked() -> Import {
    let now = Timestamp::from_millis(1_771_668_000_000);
    let agent_directories = AgentDirectories::default();
    Import { working_dir: Some("/elsewhere".into()), trust_command: false, agent_directories, now }
}

/// Imports a bundle into a home that nobody owns.
fn imported(disk: &SimDisk, bundle: &[u8]) -> Result<Vec<ImportedSession>, BundleError> {
    imported_as(disk, bundle, &asked())
}

fn imported_as(disk: &SimDisk, bundle: &[u8], asked: &Import) -> Result<Vec<ImportedSession>, BundleError> {
    let mut file = Cursor::new(bundle);
    let mut staged = stage(&shared(disk), &Layout::new(HOME), &mut file, asked, &mut |_| {})?;
    staged.keep_contents(&mut file, &mut |_| {})?;
    import_staged(&shared(disk), &open(disk), staged.name())?;
    Ok(staged.sessions.clone())
}

/// Returns every file below a directory, but for locks, whose contents say who has them.
fn files(disk: &SimDisk, directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in disk.list(directory).unwrap_or_default() {
        let path = directory.join(&entry.name);
        match entry.kind {
            EntryKind::Dir => found.extend(files(disk, &path)),
            _ if entry.name.ends_with("lock") => {}
            _ => drop(found.insert(path.clone(), read_all(disk, &path, 1 << 30).expect("read"))),
        }
    }
    found
}

/// Returns the bytes of a session's log.
fn log(disk: &SimDisk, session: SessionId) -> Vec<u8> {
    read_all(disk, &Layout::new(HOME).log(session), 1 << 30).expect("a log")
}

/// Returns what the doctor calls an error.
fn errors(disk: &SimDisk) -> Vec<String> {
    use rekindle_store::check::{Holding, Severity, check};
    let report = check(shared(disk), HOME, Holding::Nothing, &mut |_| {}).expect("checked");
    let bad = report.findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    bad.map(|finding| format!("{finding:?}")).collect()
}

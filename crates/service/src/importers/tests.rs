//! Sessions of another program, in both of its layouts, whole and damaged.

use std::io::Write;

use rekindle_domain::event::Event;
use rekindle_domain::id::BootId;
use rekindle_domain::line::Line;
use rekindle_domain::session::End;
use rekindle_store::check::{Holding, Severity, check};
use rekindle_store::log::Cursor;
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::sim::SimDisk;

use super::*;

/// A session of a snapshot and a log, as one was left that waited for a tool.
const SNAPSHOT: &str = r#"{
  "id": "sess_77", "title": "Mend the leaky cache", "working_dir": "/src/cache",
  "provider": {"type": "native", "model": "some-model"},
  "created_at": "2026-01-05T08:00:00Z", "updated_at": "2026-01-05T08:09:00Z", "last_seq": 14,
  "run": {"run_id": "run_a1", "boot_id": "boot_20260105_1", "started_at": "2026-01-05T08:07:00Z", "ended_at": null,
          "wait": {"kind": "tool_result", "since_seq": 12, "resume_token_id": "rt_0c", "deadline_at": "2026-01-05T08:17:00Z"}},
  "recovery": {"last_boot_seen": "boot_20260105_1", "interruption": null}
}"#;
const LOG: &str = r#"{"seq":10,"ts":"2026-01-05T08:00:10Z","kind":"message.user","message_id":"msg_1","content":"find the leak"}
{"seq":11,"ts":"2026-01-05T08:01:00Z","kind":"message.agent","message_id":"msg_2","content":"It is in evict()."}
{"seq":12,"ts":"2026-01-05T08:07:00Z","kind":"message.user","message_id":"msg_3","content":"mend it"}
{"seq":13,"ts":"2026-01-05T08:07:30Z","kind":"run.waiting","run_id":"run_a1","wait_kind":"tool_result","resume_token_id":"rt_0c"}
{"seq":14,"ts":"2026-01-05T08:09:00Z","kind":"run.interrupted","run_id":"run_a1","reason":"process_exit"}
"#;

/// A snapshot with all messages in it, as Go writes structures without names for JSON.
const WHOLE: &str = r#"{
  "SessionID": "abc123", "ProviderType": "acp", "CreatedAt": "2026-02-01T09:00:00.123456789Z",
  "UpdatedAt": "2026-02-01T10:00:00+01:00", "Version": 1,
  "Config": {"WorkingDir": "/src/app", "Environment": {"SECRET_KEY": "hunter2"}},
  "ACPSessionID": "their-session-9",
  "Messages": [
    {"Role": "user", "Content": [{"Text": {"Text": "rename the module"}}], "Timestamp": "2026-02-01T09:00:01Z"},
    {"Role": "assistant", "Content": [{"Text": {"Text": "Done."}}], "Timestamp": "2026-02-01T09:02:00Z"},
    {"Role": "narrator", "Content": [], "Timestamp": "2026-02-01T09:03:00Z"}
  ],
  "CurrentTask": "", "Metrics": {"Tokens": 812}, "Metadata": {}
}"#;

struct Place {
    source: tempfile::TempDir,
    disk: SimDisk,
    clock: Arc<dyn Clock>,
}

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Place {
        let source = tempfile::tempdir().expect("a directory");
        for (name, bytes) in files {
            std::fs::write(source.path().join(name), bytes).expect("written");
        }
        Place { source, disk: SimDisk::new(5), clock: Arc::new(SimClock::default()) }
    }

    fn import(&self, options: &ImportOptions) -> Imported {
        let disk: SharedDisk = Arc::new(self.disk.clone());
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
        import_orbitmesh(&disk, Path::new("/home"), opener, &self.clock, self.source.path(), options)
            .expect("a home")
    }

    fn store(&self) -> Store {
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 2) };
        Store::open(Arc::new(self.disk.clone()), "/home", opener, self.clock.clone()).expect("a home")
    }

    /// Returns the kinds and times of a session's records.
    fn kinds(store: &Store, session: SessionId) -> Vec<(String, String)> {
        let reader = store.reader(session).expect("a log");
        let (mut lines, mut kinds) = (reader.forward(Cursor::START), Vec::new());
        while let Some(line) = lines.next().expect("readable") {
            let line = Line::parse(line.bytes).expect("a record");
            kinds.push((line.kind.to_owned(), line.ts.to_owned()));
        }
        kinds
    }
}

#[test]
fn a_session_of_a_snapshot_and_a_log_opens_with_title_directory_and_history() {
    let place =
        Place::new(&[("sess_77.json", SNAPSHOT.as_bytes()), ("sess_77.messages.jsonl", LOG.as_bytes())]);
    let outcome = place.import(&ImportOptions::default());
    assert!(outcome.skipped.is_empty(), "{outcome:?}");
    let session = outcome.imported[0].session_id;
    assert_eq!((session.as_str(), outcome.imported[0].messages), ("sess_77", 3));
    let store = place.store();
    let state = store.open_session(session).expect("it opens").state;
    assert_eq!((state.title.as_str(), state.working_dir.as_str()), ("Mend the leaky cache", "/src/cache"));
    assert_eq!(state.created_at.to_string(), "2026-01-05T08:00:00.000Z");
    let run = state.run.as_ref().expect("a run");
    assert!(matches!(run.end, Some(End::Interrupted { .. })), "what was open was cut: {run:?}");
    assert!(state.agent.as_ref().is_some_and(|agent| agent.exited && agent.cursor.is_none()));
    let kinds = Place::kinds(&store, session);
    let said: Vec<_> = kinds.iter().filter(|(kind, _)| kind.starts_with("message.")).collect();
    assert_eq!(said.len(), 3);
    assert_eq!((said[1].0.as_str(), said[1].1.as_str()), ("message.agent", "2026-01-05T08:01:00.000Z"));
    assert_eq!(
        kinds.iter().filter(|(kind, _)| kind == "agent.notice").count(),
        2,
        "nothing is lost: {kinds:?}"
    );
    drop(store);
    let report =
        check(Arc::new(place.disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
    assert_eq!(report.count(Severity::Error) + report.count(Severity::Warning), 0, "{:?}", report.findings);
}

#[test]
fn a_snapshot_with_its_messages_is_imported_compressed_or_not_and_no_secret_comes_along() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(WHOLE.as_bytes()).expect("compressed");
    let packed = packed.finish().expect("compressed");
    for (name, bytes) in [("session-abc123.json", WHOLE.as_bytes()), ("session-abc123.json.gz", &packed)] {
        let place = Place::new(&[(name, bytes), ("index.json", b"{}")]);
        let outcome = place.import(&ImportOptions::default());
        let session = &outcome.imported[0];
        assert_eq!((session.title.as_str(), session.working_dir.as_str()), ("rename the module", "/src/app"));
        assert_eq!(outcome.skipped.len(), 1, "the narrator: {outcome:?}");
        let id = session.session_id;
        let store = place.store();
        let state = store.open_session(id).expect("it opens").state;
        let cursor = state.agent.as_ref().and_then(|agent| agent.cursor.clone());
        assert_eq!(cursor.as_deref(), Some("their-session-9"));
        assert!(matches!(state.run.as_ref().and_then(|run| run.end), Some(End::Completed)));
        let log = place.disk.read_file(store.layout().log(id)).expect("a log");
        let text = String::from_utf8(log).expect("text");
        assert!(!text.contains("hunter2") && text.contains("\"Tokens\":812"), "{text}");
        let first = Line::parse(text.lines().next().expect("a line").as_bytes()).expect("a record");
        let Ok(Event::SessionCreated(created)) = first.event() else { panic!("{text}") };
        assert!(created.imported_from.is_some_and(|from| from.contains("session-abc123")));
    }
}

#[test]
fn a_second_import_makes_nothing_twice_and_a_dry_run_nothing_at_all() {
    let place = Place::new(&[
        ("sess_77.json", SNAPSHOT.as_bytes()),
        ("sess_77.messages.jsonl", LOG.as_bytes()),
        ("session-abc123.json", WHOLE.as_bytes()),
    ]);
    let told = place.import(&ImportOptions { dry_run: true, ..ImportOptions::default() });
    assert_eq!((told.imported.len(), place.disk.paths().len()), (2, 0), "{:?}", place.disk.paths());
    let first = place.import(&ImportOptions::default());
    let ids = |sessions: &[ImportedSession]| sessions.iter().map(|one| one.session_id).collect::<Vec<_>>();
    assert_eq!((ids(&first.imported), first.known.len()), (ids(&told.imported), 0));
    let log = || place.disk.read_file("/home/sessions/sess_77.messages.jsonl").expect("a log");
    let before = log();
    let second = place.import(&ImportOptions::default());
    assert_eq!((second.imported.len(), ids(&second.known)), (0, ids(&first.imported)));
    assert_eq!(log(), before);
    let left = std::fs::read_to_string(place.source.path().join("sess_77.json")).expect("it is there");
    assert_eq!(left, SNAPSHOT, "nothing is touched there");
}

// I12: what cannot be read is named by its place, and the rest comes along.
#[test]
fn damaged_lines_are_named_and_the_rest_is_imported() {
    let log = LOG.replacen("\"kind\":\"message.agent\"", "\"kind\":\"message.ag", 1);
    let place = Place::new(&[
        ("sess_77.json", SNAPSHOT.as_bytes()),
        ("sess_77.messages.jsonl", log.as_bytes()),
        ("sess_78.messages.jsonl", LOG.as_bytes()),
        ("broken.json", b"{"),
        ("other.json", b"{\"speed\":3}"),
    ]);
    let outcome = place.import(&ImportOptions::default());
    assert_eq!((outcome.imported.len(), outcome.imported[0].messages), (1, 2));
    let mut named: Vec<(String, Option<usize>)> = outcome
        .skipped
        .iter()
        .map(|one| (one.source.file_name().expect("a name").to_string_lossy().into_owned(), one.line))
        .collect();
    named.sort();
    let expected = [
        ("broken.json", None),
        ("other.json", None),
        ("sess_77.messages.jsonl", Some(2)),
        ("sess_78.messages.jsonl", None),
    ];
    assert_eq!(named, expected.map(|(name, line)| (name.to_owned(), line)), "{outcome:?}");
    // One that says nothing of its directory is told one.
    let options = ImportOptions { working_dir: Some("/elsewhere".into()), ..ImportOptions::default() };
    let outcome = place.import(&options);
    assert_eq!(outcome.imported[0].session_id.as_str(), "sess_78");
    assert_eq!(outcome.imported[0].title, "find the leak");
}

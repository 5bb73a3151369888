//! A directory that a holder of format 1 left, kept as it was: what is read from it must not change. It was made by a
//! real holder and the demo agent; then names were made neutral where no checksum stands.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use rekindle_agent::acp::Acp;
use rekindle_agent::connection::Connection;
use rekindle_domain::event::{AgentLaunching, InputKind, InputQueued, Raw};
use rekindle_domain::id::{HolderId, RunId};
use rekindle_domain::line::Draft;
use rekindle_holder::client::{FileContents, Follower, LockState, Started, harvest, inspect};
use rekindle_holder::dir::{ExitReason, HolderDir, LockNote};
use rekindle_holder::journal::Item;
use tempfile::TempDir;

const HOLDER: &str = "h_00000000000000000000000000000001";

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/holder-format-1").join(name)
}

/// Puts the directory where it could have been made: its lock names itself.
fn dead_holder(home: &TempDir) -> HolderDir {
    use std::os::unix::fs::MetadataExt;
    let dir = HolderDir::new(home.path().join(HOLDER));
    crate::ends::copy_dir(&fixture(HOLDER), dir.path());
    let mut note: LockNote = HolderDir::read(&dir.lock()).expect("a note");
    let metadata = std::fs::metadata(dir.lock()).expect("a lock");
    (note.device, note.inode) = (metadata.dev(), metadata.ino());
    std::fs::write(dir.lock(), serde_json::to_vec(&note).expect("plain")).expect("written");
    dir
}

/// Says of an item everything that is in it.
fn told(item: &Item<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    match item {
        Item::Line { first, seq, time, flags, bytes } => {
            let odd = [(flags.noise, "noise"), (flags.truncated, "truncated"), (flags.unterminated, "open")];
            let odd: String = odd.iter().filter(|(is, _)| *is).map(|(_, word)| format!(" {word}")).collect();
            format!("{first}-{seq} {time} line{odd}: {}", text(bytes))
        }
        Item::Input { first, seq, time, head, bytes } => {
            let hash = rekindle_holder::journal::hex(&head.sha256[..4]);
            format!("{first}-{seq} {time} input {} {} {hash}: {:?}", head.input, head.kind, text(bytes))
        }
        Item::Done { seq, input, delivery } => format!("{seq} done {input} {delivery:?}"),
        Item::Ctl { seq, time, ctl } => {
            format!("{seq} {time} {}", serde_json::to_string(ctl).expect("plain"))
        }
    }
}

fn assert_same(found: &str, name: &str) {
    let expected = std::fs::read_to_string(fixture(name)).expect("a fixture");
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of {name}", number + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "lines of {name}");
}

// I12
#[test]
fn a_directory_of_format_1_says_today_what_it_said_when_it_was_made() {
    let home = TempDir::new().expect("a directory");
    let dir = dead_holder(&home);
    let seen = inspect(&dir);
    assert!(matches!(seen.lock, LockState::Free { note: Some(_) }), "{:?}", seen.lock);
    assert_eq!(seen.other_boot, Some(true));
    assert!(matches!(
        (&seen.launch, &seen.status, &seen.epoch),
        (FileContents::There(_), FileContents::There(_), FileContents::There(_))
    ));
    let left = harvest(&dir).expect("a dead holder");
    assert_eq!((left.last_seq, &left.damage, &left.started), (27, &None, &Started::Yes));
    assert_eq!((left.tree_gone, left.copied, left.left.len()), (true, false, 0));
    assert_eq!(left.agent.as_ref().map(|agent| (agent.pid, agent.start_ticks)), Some((13705, 2_323_440)));
    let exit = left.exit.expect("an end");
    assert_eq!((exit.code, exit.reason, exit.last_seq), (Some(0), ExitReason::StopRequested, 27));
    assert_eq!((exit.actor.as_deref(), exit.detail.as_deref()), (Some("dev"), Some("driven to its end")));

    let mut follower = Follower::new(&dir, 1);
    let mut items = String::new();
    while let Some(item) = follower.next_item().expect("a journal") {
        writeln!(items, "{}", told(&item)).expect("room");
    }
    assert_eq!(follower.finish(), None, "nothing is unfinished");
    assert_same(&items, "items.txt");
}

// I4: the records of a session are derived from the same journal in the same way, for ever.
#[test]
fn the_records_derived_from_a_journal_of_format_1_stay_the_same() {
    let home = TempDir::new().expect("a directory");
    let dir = dead_holder(&home);
    let holder: HolderId = HOLDER.parse().expect("an id");
    let run = RunId::mint(1, 1);
    let mut connection = Connection::new(holder, Arc::new(Acp::default()), Default::default());
    let launching = AgentLaunching { holder_id: holder, run_id: None, argv: Vec::new() };
    connection.note(&launching.into(), None);
    let mut follower = Follower::new(&dir, 1);
    let mut records = String::new();
    while let Some(item) = follower.next_item().expect("a journal") {
        if let Item::Input { head, bytes, .. } = &item {
            // As the log would have it: every input is in it before it is sent.
            let what: InputKind = serde_json::from_value(head.kind.as_str().into()).expect("a kind");
            let queued = InputQueued {
                run_id: (what == InputKind::Prompt).then_some(run),
                holder_id: holder,
                input_seq: head.input,
                what,
                wait_id: None,
                line: Raw::text(std::str::from_utf8(bytes).expect("text")),
                sha256: rekindle_holder::journal::hex(&head.sha256).into(),
            };
            connection.note(&queued.into(), None);
        }
        let taken = connection.take(&item, None);
        for Draft { event, source, .. } in &taken.records {
            let mut fields = Vec::new();
            event.write_fields(&mut fields).expect("plain");
            let source = source.map(|source| (source.1, source.2, source.3));
            writeln!(records, "{} {source:?} {}", event.name(), String::from_utf8_lossy(&fields))
                .expect("room");
        }
        for ask in &taken.asks {
            writeln!(records, "asks {:?} {} {}", ask.kind, ask.wire_id, ask.request.as_json()).expect("room");
        }
        if let Some(ended) = &taken.ended {
            writeln!(records, "ended {:?} {:?}", ended.run_id.map(|run| run.to_string()), ended.outcome)
                .expect("room");
        }
        if let Some(exited) = &taken.exited {
            writeln!(records, "exited {exited:?}").expect("room");
        }
    }
    assert_same(&records, "records.txt");
}

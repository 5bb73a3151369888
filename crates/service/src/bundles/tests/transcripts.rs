//! What agents wrote down themselves: found, carried along, put where the agent looks for it and nowhere else.

use std::fs;

use rekindle_domain::bundle::BundledTranscript;
use rekindle_domain::session::SessionState;
use rekindle_store::Want;
use rekindle_store::disk::{OpenMode, write_all_at};
use rekindle_store::offline::Offline;

use super::super::transcripts::destination;
use super::*;

const ID: &str = "0f8c2a44-7d1e-4f7b-9a55-3f1f0e6a2b11";
const TEXT: &str = "{\"said\":\"hello\"}\n{\"said\":\"hello yourself\"}\n";

/// Where an agent keeps its files below somebody's home.
fn directories(home: &Path) -> AgentDirectories {
    let home = home.as_os_str().to_owned();
    AgentDirectories::from_environment(move |name| (name == "HOME").then(|| home.clone()))
}

fn write(disk: &SimDisk, path: &str, text: &str) {
    let mut above: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    above.reverse();
    above.into_iter().skip(1).for_each(|directory| disk.create_dir(directory).expect("a directory"));
    let file = disk.open(Path::new(path), OpenMode::Replace).expect("a file");
    write_all_at(&*file, text.as_bytes(), 0).expect("written");
}

/// A home with a session that Claude answered, which wrote that down in its own directory.
fn answered() -> SimDisk {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    store.create(session()).expect("made");
    let launching = r#"{"holder_id":"h_1","argv":["x"],"env_names":[],"boot_id":"boot_a","run_id":"run_1"}"#;
    let records = vec![
        created(r#"{"type":"acp","agent":"claude","model":null}"#),
        record("message.user", r#"{"message_id":"msg_1","content":"hello"}"#),
        record("run.started", r#"{"run_id":"run_1","boot_id":"boot_a","message_id":"msg_1"}"#),
        record("agent.launching", launching),
        record("agent.ready", &format!(r#"{{"holder_id":"h_1","cursor":"{ID}"}}"#)),
        record("run.completed", r#"{"run_id":"run_1","stop_reason":"end_turn"}"#),
    ];
    store.append(Append::durable(session(), records)).expect("appended");
    drop(store);
    // The last line is being written.
    write(&disk, &format!("/user/.claude/projects/-work/{ID}.jsonl"), &format!("{TEXT}{{\"sai"));
    write(&disk, "/user/.claude/projects/-work/other.jsonl", "another\n");
    disk
}

fn with_transcript() -> Export<'static> {
    Export { transcripts: Some(directories(Path::new("/user"))), ..alone() }
}

fn import_to(disk: &SimDisk, bundle: &[u8], user: &Path) -> Result<ImportedSession, BundleError> {
    let asked = Import { agent_directories: directories(user), ..asked() };
    imported_as(disk, bundle, &asked).map(|mut sessions| sessions.remove(0))
}

fn state(disk: &SimDisk) -> SessionState {
    let offline = Offline::open(shared(disk), HOME).expect("a home");
    offline.load(session(), Want::Everything).expect("loaded").state
}

fn cursor(disk: &SimDisk) -> Option<String> {
    state(disk).agent.and_then(|agent| agent.cursor)
}

#[test]
fn a_transcript_goes_where_the_agent_looks_for_it_and_the_agent_is_remembered() {
    let (bundle, exported) = exported_as(&answered(), &with_transcript());
    assert_eq!(exported.notes, Vec::<String>::new());
    let (to, user) = (SimDisk::new(2), tempfile::tempdir().expect("a directory"));
    let session = import_to(&to, &bundle, user.path()).expect("imported");
    let place = user.path().join(format!(".claude/projects/-elsewhere/{ID}.jsonl"));
    assert_eq!(session.transcript.as_deref(), Some(&*place));
    assert_eq!(fs::read_to_string(&place).expect("read"), TEXT, "whole lines");
    let beside = fs::read_dir(place.parent().expect("a directory")).expect("listed").count();
    assert_eq!((beside, cursor(&to).as_deref()), (1, Some(ID)));
    assert_eq!(errors(&to), Vec::<String>::new());
    // The same once more, in another home of the same user: what is there is what it is.
    let third = SimDisk::new(3);
    assert!(import_to(&third, &bundle, user.path()).expect("imported").transcript.is_some());
    assert_eq!(cursor(&third).as_deref(), Some(ID));
}

#[test]
fn a_transcript_never_goes_over_a_file_and_without_one_the_agent_is_not_remembered() {
    let (bundle, _) = exported_as(&answered(), &with_transcript());
    let user = tempfile::tempdir().expect("a directory");
    let place = user.path().join(format!(".claude/projects/-elsewhere/{ID}.jsonl"));
    fs::create_dir_all(place.parent().expect("a directory")).expect("made");
    fs::write(&place, "mine").expect("written");
    let to = SimDisk::new(2);
    let session = import_to(&to, &bundle, user.path()).expect("imported");
    assert!(
        session.transcript.is_none()
            && session.notes.iter().any(|note| note.contains("another file is in the way"))
    );
    assert_eq!((fs::read_to_string(&place).expect("read").as_str(), cursor(&to)), ("mine", None));
    // Nobody knows where the user's files are.
    let third = SimDisk::new(3);
    assert!(imported(&third, &bundle).expect("imported")[0].transcript.is_none());
    assert_eq!(cursor(&third), None);
    // A session whose id is taken is another one, of which its agent knows nothing.
    let elsewhere = tempfile::tempdir().expect("a directory");
    assert!(import_to(&third, &bundle, elsewhere.path()).expect("imported").transcript.is_none());
    assert_eq!(fs::read_dir(elsewhere.path()).expect("listed").count(), 0);
}

#[test]
fn nothing_is_put_anywhere_before_the_bundle_is_taken_in() {
    let (bundle, _) = exported_as(&answered(), &with_transcript());
    let (to, user) = (SimDisk::new(2), tempfile::tempdir().expect("a directory"));
    let asked = Import { agent_directories: directories(user.path()), ..asked() };
    let staged = stage(&shared(&to), &Layout::new(HOME), &mut Cursor::new(&bundle), &asked, &mut |_| {});
    assert!(staged.expect("staged").sessions[0].transcript.is_some());
    assert_eq!(fs::read_dir(user.path()).expect("listed").count(), 0);
}

#[test]
fn a_place_that_the_agent_itself_would_not_have_is_refused() {
    let disk = answered();
    let (user, here) = (directories(Path::new("/user")), state(&disk));
    let place = |agent: &str, path: &str| {
        let bundled = BundledTranscript { agent: agent.into(), path: path.replace("ID", ID) };
        destination(&user, &here, &bundled, "/elsewhere")
    };
    let expected = format!("/user/.claude/projects/-elsewhere/{ID}.jsonl");
    assert_eq!(place("claude", "projects/-work/ID.jsonl"), Ok(expected.into()));
    for (agent, path) in [
        ("codex", "sessions/2026/02/21/rollout-2026-02-21T10-15-30-ID.jsonl"),
        ("claude", "sessions/2026/02/21/rollout-2026-02-21T10-15-30-ID.jsonl"),
        ("claude", "../../.bashrc"),
        ("claude", "/etc/passwd"),
        ("claude", "projects/-work/../ID.jsonl"),
        ("claude", "projects/-work/other.jsonl"),
        ("claude", "settings.json"),
        ("nobody", "projects/-work/ID.jsonl"),
    ] {
        assert!(place(agent, path).is_err(), "{agent}: {path}");
    }
}

#[test]
fn a_session_without_a_transcript_goes_along_and_says_so() {
    for (what, disk) in [
        ("no cursor that is a name", home_with_session()),
        ("no such file", {
            let disk = answered();
            let path = format!("/user/.claude/projects/-work/{ID}.jsonl");
            disk.remove_file(Path::new(&path)).expect("removed");
            disk
        }),
    ] {
        let (bundle, exported) = exported_as(&disk, &with_transcript());
        assert!(
            exported.notes.len() == 1 && exported.notes[0].contains("transcript"),
            "{what}: {:?}",
            exported.notes
        );
        imported(&SimDisk::new(2), &bundle).expect(what);
    }
}

//! Sessions that go from one home to another.

use rekindle_domain::event::{Permissions, ResumePolicy};
use rekindle_domain::session::End;
use rekindle_store::Want;
use rekindle_store::offline::Offline;

use super::*;

#[test]
fn a_session_comes_to_another_home_whole_and_safe() {
    let (from, to) = (home_with_session(), SimDisk::new(2));
    let bundle = exported(&from);
    let sessions = imported(&to, &bundle).expect("imported");
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].id, sessions[0].lost_run, sessions[0].dropped_prompts), (session(), true, 1));
    let (old, new) = (log(&from, session()), log(&to, session()));
    assert!(new.starts_with(&old) && new.len() > old.len(), "byte for byte, and what makes it safe");
    let offline = Offline::open(shared(&to), HOME).expect("a home");
    let state = offline.load(session(), Want::Everything).expect("loaded").state;
    assert!(matches!(state.run.as_ref().and_then(|run| run.end), Some(End::Interrupted { .. })));
    assert!(state.queue.is_empty() && state.agent.as_ref().is_some_and(|agent| agent.cursor.is_none()));
    assert_eq!((state.options.resume, state.options.permissions), (ResumePolicy::Never, Permissions::Ask));
    assert_eq!(state.working_dir, "/elsewhere");
    let blob = rekindle_domain::blob_id::BlobId::of(b"a payload");
    assert_eq!(offline.blobs().get(&blob).expect("it came along"), b"a payload");
    assert_eq!(errors(&to), Vec::<String>::new());
    assert!(!files(&to, Path::new("/home/imports")).keys().any(|path| path.ends_with("import.json")));
    // It is worked in like any other, also after a restart.
    let record = || vec![record("message.user", r#"{"message_id":"msg_9","content":"go on","queued":true}"#)];
    open(&to).open_session(session()).expect("opened");
    let store = open(&to);
    store.open_session(session()).expect("opened");
    store.append(Append::durable(session(), record())).expect("appended");
    drop(store);
    assert_eq!(open(&to).open_session(session()).expect("opened").state.queue.len(), 1);
}

// I12: an id that is taken is nobody else's.
#[test]
fn a_session_whose_id_is_taken_becomes_a_new_one_with_the_same_history() {
    let disk = home_with_session();
    let (bundle, before) = (exported(&disk), log(&disk, session()));
    let sessions = imported(&disk, &bundle).expect("imported");
    let new = sessions[0].id;
    assert_ne!(new, session());
    assert_eq!(log(&disk, session()), before, "the one that was there is as it was");
    let base = read_all(&disk, &Layout::new(HOME).base(new), 1 << 30).expect("a base");
    assert!(base.starts_with(&before));
    let store = open(&disk);
    let state = store.open_session(new).expect("opened").state;
    let from = state.forked_from.expect("a fork");
    assert_eq!((from.session_id, from.seq + 1), (session(), state.last_seq));
    assert_eq!((state.options.resume, state.working_dir.as_str()), (ResumePolicy::Never, "/elsewhere"));
    assert!(store.history(new).expect("a history").missing.is_none());
    drop(store);
    assert_eq!(errors(&disk), Vec::<String>::new());
    // And that one goes on to a third place, alone.
    let third = SimDisk::new(3);
    let (bundle, _) = exported_as(&disk, &Export { sessions: vec![new], ..alone() });
    assert_eq!(imported(&third, &bundle).expect("imported")[0].id, new);
    assert!(open(&third).history(new).expect("a history").missing.is_none());
    assert_eq!(errors(&third), Vec::<String>::new());
    // And back to where it came from: its id is taken there too.
    let again = imported(&disk, &bundle).expect("imported")[0].id;
    assert!(again != new && again != session());
    assert_eq!(errors(&disk), Vec::<String>::new());
}

// I1: what the write-ahead log still knows of a session that was removed does not come back over the one that was imported.
#[test]
fn a_session_that_was_removed_comes_back_from_a_bundle() {
    let disk = home_with_session();
    let bundle = exported(&disk);
    let store = open(&disk);
    store.open_session(session()).expect("opened");
    store.append(Append::durable(session(), vec![record("session.deleted", "{}")])).expect("deleted");
    store.remove(session()).expect("removed");
    drop(store);
    assert_eq!(imported(&disk, &bundle).expect("imported")[0].id, session());
    let log_before = log(&disk, session());
    assert!(!open(&disk).open_session(session()).expect("opened").state.deleted);
    assert_eq!(log(&disk, session()), log_before);
    assert_eq!(errors(&disk), Vec::<String>::new());
}

#[test]
fn a_session_is_exported_while_it_goes_on() {
    let disk = home_with_session();
    let store = open(&disk);
    store.open_session(session()).expect("opened");
    for round in 0..5 {
        let bundle = exported(&disk);
        let said = format!(r#"{{"message_id":"msg_{}","content":"more"}}"#, 10 + round);
        let (before, to) = (log(&disk, session()), SimDisk::new(round));
        store.append(Append::durable(session(), vec![record("message.agent", &said)])).expect("appended");
        imported(&to, &bundle).expect("imported");
        assert!(log(&to, session()).starts_with(&before), "round {round}");
        assert_eq!(errors(&to), Vec::<String>::new());
    }
}

#[test]
fn a_command_that_is_no_known_agent_needs_to_be_trusted() {
    let disk = SimDisk::new(1);
    let store = open(&disk);
    store.create(session()).expect("made");
    let command = r#"{"type":"exec","agent":null,"model":null,"command":["sh","-c","rm -rf /"]}"#;
    store.append(Append::durable(session(), vec![created(command)])).expect("appended");
    drop(store);
    let (bundle, to) = (exported(&disk), SimDisk::new(2));
    let refused = imported(&to, &bundle).expect_err("refused");
    assert!(refused.to_string().contains("sh -c rm -rf /"), "{refused}");
    assert!(
        files(&to, Path::new("/home/imports")).is_empty()
            && to.stat(&Layout::new(HOME).log(session())).is_err()
    );
    let trusting = Import { trust_command: true, ..asked() };
    assert!(imported_as(&to, &bundle, &trusting).expect("imported")[0].is_command);
}

//! The table of kinds is complete and every kind survives being written and read.

use super::*;

/// The kinds of the on-disk format, in its order.
const NAMES: &str = "session.created session.updated session.closed session.deleted session.files_restoring session.files_restored \
    session.worktree_added session.worktree_merged session.worktree_removed \
    message.user message.agent message.thought tool.call tool.update plan.updated usage.updated mode.updated agent.notice input.queued \
    agent.launching agent.started agent.ready agent.exited run.started run.cancel_requested run.waiting \
    run.resumed run.adopted run.completed run.failed run.cancelled run.interrupted run.checkpoint run.drift run.budget \
    token.minted token.consumed \
    token.revoked token.expired session.restored snapshot.created snapshot.failed snapshot.restored \
    log.repaired status.derived \
    task.created task.claimed task.waiting task.resumed task.requeued task.changed task.cancel_requested task.retried task.ended \
    pipeline.started step.intended step.began step.finished step.interrupted \
    pipeline.drift pipeline.completed pipeline.failed pipeline.aborted pipeline.reopened pipeline.imported pipeline.budget";

#[test]
fn every_kind_of_the_format_is_known_by_its_name() {
    let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(known, NAMES.split_whitespace().collect::<Vec<_>>());
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.as_str()), Some(*kind));
    }
}

#[test]
fn what_people_say_and_what_is_decided_must_be_on_disk_and_what_an_agent_says_need_not() {
    let subjects = ["session.", "run.", "token.", "input.", "task.", "pipeline.", "step."];
    let others = ["message.user", "agent.launching", "agent.started", "agent.ready"];
    for kind in Kind::ALL {
        let name = kind.as_str();
        // Before its prompt it is synced with that, and at the end of a run it can be taken again.
        let again = name == "run.checkpoint";
        let decided =
            !again && subjects.iter().any(|front| name.starts_with(front)) || others.contains(&name);
        let expected = if decided { Durability::Disk } else { Durability::Process };
        assert_eq!(kind.durability(), expected, "{name}");
    }
    let newer = Event::read("galaxy.merged", "{}").expect("kept");
    assert_eq!(newer.durability(), Durability::Disk);
}

#[test]
fn a_sample_of_every_kind_is_read_and_written_alike() {
    let samples = include_str!("samples.jsonl");
    let mut seen = Vec::new();
    for text in samples.lines() {
        let kind = serde_json::from_str::<serde_json::Value>(text).expect("JSON")["kind"]
            .as_str()
            .expect("a kind")
            .to_owned();
        let event = Event::read(&kind, text).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let mut fields = Vec::new();
        event.write_fields(&mut fields).expect("it can be written");
        let again = String::from_utf8(fields).expect("text");
        // Every field of the sample comes back, and nothing is invented.
        let mut expected: serde_json::Value = serde_json::from_str(text).expect("JSON");
        for head in ["seq", "ts", "kind", "h"] {
            expected.as_object_mut().expect("an object").remove(head);
        }
        assert_eq!(serde_json::from_str::<serde_json::Value>(&again).expect("JSON"), expected, "{kind}");
        seen.push(kind);
    }
    for kind in Kind::ALL {
        assert!(seen.iter().any(|name| name == kind.as_str()), "no sample of {}", kind.as_str());
    }
}

#[test]
fn a_kind_of_a_newer_version_is_kept_whole() {
    let text = r#"{"seq":1,"ts":"","kind":"galaxy.merged","stars":5}"#;
    let Ok(Event::Unknown { kind, record }) = Event::read("galaxy.merged", text) else {
        panic!("an unknown kind is not an error");
    };
    assert_eq!((kind.as_ref(), record.as_json()), ("galaxy.merged", text));
}

#[test]
fn words_are_those_on_disk_and_lists_are_in_order() {
    for (index, reason) in InterruptReason::ALL.into_iter().enumerate() {
        assert_eq!(serde_json::to_value(reason).expect("a word"), reason.as_str());
        assert_eq!(reason as usize, index);
    }
    for (index, how) in ResumeHow::ALL.into_iter().enumerate() {
        assert_eq!(serde_json::to_value(how).expect("a word"), how.as_str());
        assert_eq!(how as usize, index);
    }
    assert!(Kind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
}

#[test]
fn settings_are_read_as_they_were_always_written_and_what_nobody_knows_is_kept() {
    let read = |text: &str| serde_json::from_str::<Options>(text).expect(text);
    // Read and written, with what is made of permissions, mode and timeout.
    for (text, permissions, mode, timeout) in [
        (r#"{"resume":"auto","on_uncertain":"ask"}"#, Permissions::Ask, None, None),
        (r#"{"resume":"ask","on_uncertain":"continue","mode":"plan"}"#, Permissions::Ask, Some("plan"), None),
        (
            r#"{"resume":"never","on_uncertain":"ask","mode":"plan","permissions":"allow","wait_timeout_s":60}"#,
            Permissions::Allow,
            Some("plan"),
            Some(60),
        ),
        (
            r#"{"resume":"auto","on_uncertain":"ask","permissions":"deny","umask":"0027"}"#,
            Permissions::Deny,
            None,
            None,
        ),
        (r#"{"resume":"auto","on_uncertain":"ask","checkpoints":"off"}"#, Permissions::Ask, None, None),
        // What another version means by these is not known, and says nothing; it is no reason to refuse a log.
        (
            r#"{"resume":"auto","on_uncertain":"ask","checkpoints":"twice","mode":{"id":5},"permissions":"sometimes","wait_timeout_s":"1m"}"#,
            Permissions::Ask,
            None,
            None,
        ),
        (
            r#"{"resume":"auto","on_uncertain":"ask","mode":null,"permissions":"ask","stars":[1]}"#,
            Permissions::Ask,
            None,
            None,
        ),
        (r#"{"resume":"auto","on_uncertain":"ask","wait_timeout_s":-1}"#, Permissions::Ask, None, None),
    ] {
        let options = read(text);
        let found = (options.permissions, options.mode.as_deref(), options.wait_timeout_s);
        assert_eq!(found, (permissions, mode, timeout), "{text}");
        assert_eq!(serde_json::to_string(&options).expect("JSON"), text);
    }
    assert_eq!(read("{}"), Options::default());
    let mut odd = read(r#"{"mode":5}"#);
    odd.set_mode("plan".to_owned());
    let again = read(&serde_json::to_string(&odd).expect("JSON"));
    assert_eq!((again.mode.as_deref(), again.extra.len()), (Some("plan"), 0));
}

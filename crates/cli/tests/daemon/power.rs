//! Power cuts: everything dies at once, and what was in no file's synced part is gone with it.

use std::path::{Path, PathBuf};

use crate::lab::{Lab, wait_for};
use serde_json::json;

/// Cuts the file that has these words down to before them, as if it had never been synced further. A file that does not
/// have them stays.
fn lose(path: &Path, words: &str) -> bool {
    let bytes = std::fs::read(path).expect("a file");
    let at = bytes.windows(words.len()).position(|window| window == words.as_bytes());
    if let Some(at) = at {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("a file");
        file.set_len(at as u64).expect("cut");
    }
    at.is_some()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_file()).collect()
}

// I1, I3, I12: whoever heard what the disk never had is told so, and gets what is true instead.
#[test]
fn a_subscriber_who_heard_what_the_power_cut_took_is_reset_and_gets_everything() {
    let mut lab = Lab::new();
    // A tool call ends the words before it; neither has to be on disk at once.
    let mut body = lab.session("say fleeting\ntool read some file\nbarrier here\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("here");
    let mut events = lab.follow(&id, None);
    let (lost, last) = loop {
        let heard = events.next().expect("an event");
        if heard.event == "message.agent" {
            break (heard.data.clone(), heard.id.expect("a record has an id"));
        }
    };
    let seq = lost["seq"].as_u64().expect("a number");
    let acknowledged: Vec<_> =
        lab.log(&id).into_iter().filter(|record| record["seq"].as_u64() < Some(seq)).collect();
    // The power goes: every process at once, and of each file what came behind the last sync.
    lab.kill();
    lab.kill_holders();
    let fleeting = format!("{{\"seq\":{seq},\"ts\"");
    let log = lab.home().join(format!("sessions/{id}.messages.jsonl"));
    assert!(lose(&log, &fleeting), "the log had it");
    let segments = files(&lab.home().join("wal"));
    assert!(segments.iter().any(|segment| lose(segment, &fleeting)), "the write-ahead log had it");
    let holder =
        rekindle_holder::client::inspect_all(&lab.home().join("holders")).expect("holders").remove(0);
    let journals = files(&holder.dir.journal());
    assert!(journals.iter().any(|journal| lose(journal, "agent_message_chunk")), "the journal had it");
    for cache in ["json", "tokens.json"] {
        let _ = std::fs::remove_file(lab.home().join(format!("sessions/{id}.{cache}")));
    }
    lab.as_if_rebooted();
    lab.start();
    wait_for("the interruption", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
    wait_for("the checkpoint of its end", || (lab.count(&id, "run.checkpoint") == 2).then_some(()));
    let log = lab.log(&id);
    assert_eq!(log[..acknowledged.len()], acknowledged, "what was acknowledged is there");
    let cut = log.iter().find(|record| record["kind"] == "run.interrupted").expect("it was cut");
    assert_eq!((&cut["reason"], &cut["uncertain_turn"]), (&json!("machine_restart"), &json!(true)));
    assert!(log.iter().all(|record| record["h"] != lost["h"]), "it went on with other records");
    assert!(log.len() as u64 >= seq, "and has another one of that number");

    let mut events = lab.follow(&id, Some(&last));
    let reset = events.next().expect("an event");
    assert_eq!((reset.event.as_str(), &reset.data["last_seq"]), ("reset", &json!(log.len())));
    assert!(events.next().is_none(), "the stream ends with it");
    let mut events = lab.follow(&id, None);
    for record in &log {
        assert_eq!(events.next().expect("an event").data, *record);
    }
    // And it goes on.
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "say again"}));
    let seqs = std::iter::from_fn(|| events.next());
    let seqs: Vec<u64> = seqs
        .take_while(|heard| heard.event != "run.completed")
        .filter_map(|heard| heard.data["seq"].as_u64())
        .collect();
    let first = log.len() as u64 + 1;
    assert_eq!(seqs, (first..first + seqs.len() as u64).collect::<Vec<_>>());
}

//! Logs that were put back from a copy while their agent lives: they know less than the holder.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use crate::lab::{Lab, wait_for};

// I5: a number that was used is not used again, and what is asked is done.
#[test]
fn a_prompt_after_logs_were_put_back_reaches_the_agent() {
    let mut lab = Lab::new();
    let id = lab.run("say one");
    lab.wait_end(&id);
    lab.leave();
    // With the write-ahead log: it may know how far the log was on disk, and then a shorter one is damaged.
    let copies = ["sessions", "wal"].map(|name| lab.home().join(name)).map(|path| (read_files(&path), path));
    lab.start();
    let path = format!("/api/sessions/{id}/messages");
    lab.post(&path, &json!({"content": "say two"}));
    wait_for("the second turn", || (lab.count(&id, "run.completed") == 2).then_some(()));
    lab.leave();
    for (files, path) in copies {
        std::fs::remove_dir_all(&path).expect("removed");
        std::fs::create_dir(&path).expect("made again");
        files.iter().for_each(|(name, bytes)| std::fs::write(path.join(name), bytes).expect("put back"));
    }
    lab.start();
    lab.wait_status(&id, "idle");
    lab.post(&path, &json!({"content": "say three"}));
    wait_for("the turn", || lab.said(&id).contains("three").then_some(()));
    wait_for("its end", || (lab.status(&id) == "idle").then_some(()));
    assert_eq!((lab.prompted("say two"), lab.prompted("say three")), (1, 1));
}

/// Reads the files of a directory.
fn read_files(directory: &Path) -> Vec<(OsString, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).expect("a directory").flatten();
    let files = entries.filter(|entry| entry.file_type().expect("a type").is_file());
    files.map(|entry| (entry.file_name(), std::fs::read(entry.path()).expect("a file"))).collect()
}

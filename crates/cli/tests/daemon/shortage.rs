//! A daemon that runs out of something for a while: what it acknowledges meanwhile is shown at once, says why it does not go
//! on, and goes on by itself. And what an orderly end leaves behind.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rekindle_lab::Connection;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::lab::{Lab, Reply, wait_for};

/// Asks on a connection that stays; returns the status and the body of the answer.
fn ask(visitor: &mut Connection, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = Reply::from(visitor.ask(method, path, "", &body).expect("an answer"));
    (reply.status, reply.body)
}

// I1, I8, I12
#[test]
fn without_descriptors_a_new_session_is_shown_waits_with_a_reason_and_then_runs() {
    let lab = Lab::new();
    let mut visitor = lab.connect().expect("a connection");
    wait_for("the list of sessions", || {
        (ask(&mut visitor, "GET", "/api/version", &Value::Null).1["recovered"] == true).then_some(())
    });
    let daemon = Pid::from_raw(lab.daemon_pid());
    let few = Rlimit { current: Some(3), maximum: rustix::process::getrlimit(Resource::Nofile).maximum };
    let many = prlimit(daemon, Resource::Nofile, few).expect("no more descriptors");
    let (status, made) = ask(&mut visitor, "POST", "/api/sessions", &lab.session("say at last"));
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().expect("an id").to_owned();
    let (status, log) = ask(&mut visitor, "GET", &format!("/api/sessions/{id}/log"), &Value::Null);
    let kinds: Vec<&str> =
        log["records"].as_array().expect("records").iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!((status, &kinds[..]), (200, &["session.created", "message.user", "run.started"][..]));
    let view = wait_for("a reason", || {
        let (_, view) = ask(&mut visitor, "GET", &format!("/api/sessions/{id}"), &Value::Null);
        view["held"].is_string().then_some(view)
    });
    assert_eq!((&view["status"], &view["last_seq"]), (&json!("running"), &json!(3)));
    assert_eq!(view["health"]["state"], "degraded", "{view}");
    assert!(view["held"].as_str().is_some_and(|why| why.contains("os error 24")), "{view}");
    prlimit(daemon, Resource::Nofile, many).expect("as before");
    assert_eq!(lab.wait_end(&id), "completed");
    wait_for("its log", || (lab.show(&id)["health"]["state"] == "ok").then_some(()));
    assert_eq!(lab.show(&id)["held"], Value::Null);
    let file = std::fs::read_to_string(lab.home().join(format!("sessions/{id}.messages.jsonl")));
    assert!(!file.expect("a log").contains("run.failed"));
}

/// A small file system, where we may mount one.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many megabytes.
    pub(crate) fn mount(path: PathBuf, size: u32) -> Option<SmallDisk> {
        std::fs::create_dir_all(&path).expect("a directory");
        let size = format!("size={size}m,mode=700");
        let options = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Takes every page that is left.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("a file");
        let piece = vec![b'x'; 1 << 16];
        while file.write(&piece).is_ok_and(|written| written > 0) {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        // The lab could not remove its directory while this was mounted there.
        let _ = self.0.parent().map(std::fs::remove_dir_all);
    }
}

// I10: whatever was used up before, a daemon starts, is found, serves what there is, and goes on when there is room.
#[test]
fn without_a_single_free_block_a_daemon_starts_and_is_found() {
    let lab = Lab::without_daemon();
    // Only root may mount.
    let Some(disk) = SmallDisk::mount(lab.home(), 64) else { return };
    // Whoever lives there ends before the disk goes.
    let mut lab = lab;
    lab.set("REKINDLE_MIN_FREE_BYTES", 0);
    lab.start();
    let id = lab.run("say before");
    assert_eq!(lab.wait_end(&id), "completed");
    lab.leave();
    std::fs::remove_file(lab.home().join("wal/reserve")).expect("used up");
    disk.fill();
    lab.start();
    assert!(!lab.home().join("daemon.json").exists(), "there was room for it");
    lab.ran(&["status", &id]).exits(0).shows("idle");
    let log = lab.ran(&["log", &id]).exits(0);
    assert!(log.out.contains("before"), "{log:?}");
    lab.kill();
    lab.start();
    std::fs::remove_file(disk.0.join("filler")).expect("room");
    let sent = lab.ran(&["send", &id, "say after"]).exits(0);
    assert!(sent.out.contains("after"), "{sent:?}");
    lab.ran(&["stop", "--all"]).exits(0);
    lab.ran(&["ps"]).exits(0);
}

// I2
#[test]
fn an_orderly_end_leaves_the_caches_of_every_session_also_with_all_agents() {
    for arguments in [&["stop"][..], &["stop", "--all"]] {
        let lab = Lab::new();
        let ids = [lab.run("say one"), lab.run("say two")];
        ids.iter().for_each(|id| drop(lab.wait_end(id)));
        lab.ran(arguments).exits(0);
        for id in &ids {
            let cache = std::fs::read(lab.home().join(format!("sessions/{id}.json"))).expect("a state cache");
            let cache: Value = serde_json::from_slice(&cache).expect("JSON");
            let log = std::fs::read_to_string(lab.home().join(format!("sessions/{id}.messages.jsonl")));
            let records = log.expect("a log").lines().count();
            assert_eq!(cache["last_seq"], json!(records), "{arguments:?}: of its newest record");
        }
        assert!(lab.home().join("sessions/index.json").is_file(), "{arguments:?}");
    }
}

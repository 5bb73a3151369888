//! Tasks where something is wrong around them: no room on the disk, clocks that are set, sessions that are gone, and very many of them.

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::shortage::SmallDisk;

// I1, I10: what could not be recorded was not promised, and what was promised is done when there is room.
#[test]
fn without_room_no_task_is_promised_and_none_is_lost() {
    let lab = Lab::without_daemon();
    // Only root may mount.
    let Some(disk) = SmallDisk::mount(lab.home(), 512) else { return };
    let mut lab = lab;
    lab.set("REKINDLE_MIN_FREE_BYTES", 0);
    lab.configure_tasks("limit = 1\n");
    lab.start();
    let running = lab.add_task(&lab.task_in("a", "barrier here\nsay done"));
    lab.reach("here");
    let waiting = lab.add_task(&lab.task_in("b", "say done"));
    disk.fill();
    // There is some room left that was set aside, and then none.
    let (mut promised, mut refused) = (Vec::new(), 0);
    while refused < 3 && promised.len() < 500 {
        let reply = lab.ask("POST", "/api/tasks", &lab.task_in("c", &format!("say {}", "x".repeat(200_000))));
        match reply.status {
            201 => promised.push(reply.body["id"].as_str().expect("an id").to_owned()),
            507 => refused += 1,
            other => panic!("{other}: {}", reply.body),
        }
    }
    assert!(refused > 0, "there was room for everything");
    lab.kill();
    lab.start();
    std::fs::remove_file(disk.path().join("filler")).expect("room");
    let active = lab.get("/api/tasks/active");
    assert_eq!(active["tasks"].as_array().map(Vec::len), Some(promised.len() + 2), "{refused} were refused");
    for id in &promised {
        lab.post(&format!("/api/tasks/{id}/cancel"), &json!({}));
    }
    lab.pass("here");
    lab.wait_task(&running, "completed");
    lab.wait_task(&waiting, "completed");
    lab.ran(&["stop", "--all"]).exits(0);
}

// I7
#[test]
fn a_clock_that_is_set_ends_no_task_and_a_time_that_comes_begins_one() {
    let mut lab = Lab::without_daemon();
    lab.set_millis("REKINDLE_CLOCK_AHEAD", 0);
    lab.configure_tasks("limit = 4\n");
    lab.start();
    let in_hours = |hours: i64| {
        let now = rekindle_client::clock::SystemClock;
        rekindle_domain::time::Clock::now(&now).plus_millis(hours * 3_600_000).to_string()
    };
    let mut limited = lab.task_in("a", "barrier here\nsay done");
    (limited["budget"], limited["deadline_at"]) = (json!({"wall_s": 600}), json!(in_hours(1)));
    let limited = lab.add_task(&limited);
    lab.reach("here");
    let mut later = lab.task_in("b", "say done");
    later["not_before"] = json!(in_hours(24));
    let later = lab.add_task(&later);
    let mut queued = lab.task_in("a", "say after");
    queued["deadline_at"] = json!(in_hours(1));
    let queued = lab.add_task(&queued);
    for life in 0..2 {
        for hours in [-48, 2, 0] {
            lab.set_millis("REKINDLE_CLOCK_AHEAD", hours * 3_600_000);
            // Something that happens has all of them looked at.
            let other = lab.add_task(&lab.task_in("c", "say other"));
            lab.wait_task(&other, "completed");
            for (id, status) in [(&limited, "running"), (&queued, "pending"), (&later, "pending")] {
                assert_eq!(lab.task(id)["status"], status, "{hours} h, life {life}: {}", lab.task(id));
            }
        }
        lab.restart();
        lab.wait_task(&limited, "running");
    }
    lab.set_millis("REKINDLE_CLOCK_AHEAD", 25 * 3_600_000);
    lab.post(&format!("/api/tasks/{later}/priority"), &json!({"priority": 1}));
    lab.wait_task(&later, "completed");
    lab.pass("here");
    lab.wait_task(&limited, "completed");
    lab.wait_task(&queued, "completed");
}

// I3
#[test]
fn a_task_whose_session_is_gone_is_begun_anew_only_if_that_does_no_harm() {
    let mut lab = Lab::new();
    let begin = |name: &str, repeatable: bool| {
        let mut task = lab.task_in(name, &format!("append done.txt {name}\nbarrier {name}\nsay done"));
        task["repeatable"] = json!(repeatable);
        let id = lab.add_task(&task);
        lab.reach(name);
        let session = lab.task(&id)["session_id"].as_str().expect("a session").to_owned();
        (id, session)
    };
    let [(harmless, first), (careful, second)] = [begin("harmless", true), begin("careful", false)];
    lab.leave();
    lab.kill_holders();
    for entry in std::fs::read_dir(lab.home().join("sessions")).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&first) || name.starts_with(&second) {
            let removed = match entry.path().is_dir() {
                true => std::fs::remove_dir_all(entry.path()),
                false => std::fs::remove_file(entry.path()),
            };
            removed.expect("removed");
        }
    }
    lab.pass("harmless");
    lab.start();
    let done = lab.wait_task(&harmless, "completed");
    assert_ne!(done["session_id"], first.as_str(), "{done}");
    let failed = lab.wait_task(&careful, "failed");
    let why = failed["reason"].as_str().unwrap_or_default();
    assert!(why.starts_with("given up: ") && why.contains("its session cannot be continued"), "{failed}");
    let history = lab.get(&format!("/api/tasks/{harmless}/transitions"))["transitions"].clone();
    let told =
        |line: &Value| line["reason"].as_str().is_some_and(|why| why.starts_with("retry in a new session: "));
    assert!(history.as_array().is_some_and(|lines| lines.iter().any(told)), "{history}");
}

#[test]
fn ten_thousand_tasks_are_asked_for_at_once_all_or_none() {
    let mut lab = Lab::new();
    let directory = lab.task_in("a", "")["working_dir"].clone();
    let item = |n: usize| {
        let mut task = json!({
            "working_dir": directory, "prompt": format!("say {n}"), "ref": format!("r{n}"),
            "not_before": "2999-01-01T00:00:00Z", "agent": lab.session("x")["agent"],
        });
        if n > 0 {
            task["after"] = json!([format!("r{}", n - 1)]);
        }
        task
    };
    let batch = |count: usize| json!({"tasks": (0..count).map(item).collect::<Vec<_>>()});
    let refused = lab.ask("POST", "/api/tasks", &batch(10_001));
    assert_eq!(refused.code().1, "invalid_task", "{}", refused.body);
    let made = lab.post("/api/tasks", &batch(10_000));
    let ids: Vec<String> = made["tasks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|task| task["id"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(ids.len(), 10_000);
    assert!(ids.is_sorted());
    // A circle anywhere in it, and nothing is made.
    let mut circle = batch(1_000);
    circle["tasks"][0]["after"] = json!(["r999"]);
    assert_eq!(lab.ask("POST", "/api/tasks", &circle).code().1, "dependency_cycle");
    lab.restart();
    let stats = wait_for("the rows", || {
        let stats = lab.try_get("/api/tasks/stats")?;
        (stats["statuses"]["pending"] == 10_000).then_some(stats)
    });
    assert_eq!(stats["statuses"].as_object().map(serde_json::Map::len), Some(1), "{stats}");
    assert_eq!(lab.get("/api/tasks/active")["tasks"].as_array().map(Vec::len), Some(10_000));
    // Who cancels the first takes the others with it, one after the other.
    lab.post(&format!("/api/tasks/{}/cancel", ids[0]), &json!({}));
    let last = lab.wait_task(&ids[9_999], "failed");
    assert_eq!(last["reason"], format!("dependency: {}", ids[9_998]));
}

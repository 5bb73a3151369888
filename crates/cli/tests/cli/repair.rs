//! `doctor --repair` and `gc` on homes without a daemon: what is safe is mended, the rest explained, nothing is lost, and a
//! second time changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::{Home, code, findings, stderr, stdout};

/// A kind of damage, what `doctor` calls it, what a repair does about it, and how it ends.
struct Case {
    kind: &'static str,
    code: &'static str,
    /// The action, or none where only a person can do something.
    action: Option<&'static str>,
    exit: i32,
}

const fn case(kind: &'static str, code: &'static str, action: Option<&'static str>, exit: i32) -> Case {
    Case { kind, code, action, exit }
}

const CASES: &[Case] = &[
    case("torn-tail", "log_torn", Some("cut"), 0),
    case("half-list", "log_half_list", Some("cut"), 0),
    case("corrupt-snapshot", "snapshot_unreadable", Some("moved"), 0),
    case("stale-tokens", "tokens_differ", Some("moved"), 0),
    case("rubbish-files", "temporary_file", Some("moved"), 0),
    case("bad-modes", "wrong_mode", Some("permissions"), 0),
    case("delete-caches", "snapshot_missing", None, 0),
    case("flipped-byte", "log_damaged", None, 1),
    case("missing-record", "log_damaged", None, 1),
    case("duplicate-record", "log_damaged", None, 1),
    case("cut-below-snapshot", "log_shorter_than_snapshot", None, 1),
    case("newer-snapshot", "snapshot_newer", None, 1),
    case("missing-blob", "blob_missing", None, 1),
];

/// Every file of a home that is neither a repair's nor of the moment, by its content: what must be somewhere afterwards.
fn contents(home: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut todo = vec![home.to_owned()];
    while let Some(path) = todo.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            todo.extend(
                fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()),
            );
        } else if metadata.is_file() {
            all.push(fs::read(&path).expect("a file"));
        }
    }
    all
}

/// The sessions, without what only looks like one.
fn sessions(home: &Home) -> Vec<String> {
    home.sessions().into_iter().filter(|id| id != "sess_").collect()
}

fn actions<'a>(report: &'a Value, action: &str) -> Vec<&'a Value> {
    let all = report["done"].as_array().expect("a list");
    all.iter().filter(|done| done["action"] == action).collect()
}

// I10, I12
#[test]
fn every_kind_of_damage_is_mended_or_explained_and_the_second_time_nothing_is_changed() {
    for Case { kind, code: expected, action, exit } in CASES {
        let home = Home::made();
        home.ok(&["dev", "damage", kind]);
        let damaged = home.picture();
        let dry = home.json(&["doctor", "--repair", "--dry-run"]);
        damaged.assert_same(&home.picture(), kind);
        let would: Vec<&Value> = dry["done"].as_array().expect("a list").iter().collect();
        let has =
            |list: &[&Value]| list.iter().any(|done| Some(done["action"].as_str().expect("one")) == *action);
        assert_eq!(has(&would), action.is_some(), "{kind}: {dry}");
        let before = contents(&home.path());

        let output = home.run(&["doctor", "--repair", "--json"]);
        assert_eq!(code(&output), *exit, "{kind}: {}{}", stdout(&output), stderr(&output));
        let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        match action {
            Some(action) => {
                assert!(!actions(&report, action).is_empty(), "{kind}: {report}");
                assert!(findings(&report, expected).is_empty(), "{kind}: {report}");
                let kept = report["kept_in"].as_str().expect("a directory");
                let manifest = fs::read_to_string(Path::new(kept).join("manifest.jsonl")).expect("a list");
                let lines: Vec<Value> =
                    manifest.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
                assert!(lines.iter().any(|line| line["code"] == *expected), "{kind}: {manifest}");
            }
            None => {
                assert!(!findings(&report, expected).is_empty(), "{kind} is still told: {report}");
                damaged.assert_same(&home.picture(), kind);
            }
        }
        // Nothing is anywhere no more, but for what was cut: that is kept by itself.
        let after = contents(&home.path());
        if !matches!(*action, Some("cut")) {
            for bytes in before.iter().filter(|bytes| !bytes.starts_with(b"{\"pid\"")) {
                assert!(after.contains(bytes), "{kind}: {:?} is lost", String::from_utf8_lossy(bytes));
            }
        }
        let repaired = home.picture();
        assert!(repaired.modes().all(|(path, mode)| mode & 0o077 == 0 || path.is_symlink()), "{kind}");
        assert_eq!(code(&home.run(&["doctor", "--repair"])), *exit, "{kind}");
        repaired.assert_same(&home.picture(), kind);
        // The home is of use as before.
        if *exit == 0 {
            home.ok(&["dev", "append", "--sessions", "12", "--records", "12"]);
            sessions(&home).iter().for_each(|id| drop(home.ok(&["status", id])));
        }
    }
}

// I12: what is cut off the end of a log is kept, and the log says so itself.
#[test]
fn a_torn_end_is_cut_recorded_and_kept() {
    let home = Home::made();
    let done = home.json(&["dev", "damage", "torn-tail"]);
    let path = PathBuf::from(done["path"].as_str().expect("a path"));
    let torn = fs::read(&path).expect("a log");
    let report = home.json(&["doctor", "--repair"]);
    let kept = actions(&report, "cut")[0]["kept"].as_str().expect("a copy").to_owned();
    assert!(torn.ends_with(&fs::read(&kept).expect("a copy")));
    let log = fs::read_to_string(&path).expect("a log");
    assert!(log.lines().last().is_some_and(|line| line.contains("\"log.repaired\"")), "{log}");
}

/// A home with one log that is damaged in the middle: its session, and the log as it is.
fn damaged() -> (Home, String, Vec<u8>) {
    let home = Home::made();
    let done = home.json(&["dev", "damage", "missing-record"]);
    let path = done["path"].as_str().expect("a path");
    let session = home.sessions().into_iter().find(|id| path.contains(id)).expect("one of ours");
    let log = fs::read(path).expect("a log");
    (home, session, log)
}

fn aside(home: &Home, session: &str) -> Vec<u8> {
    let path = home.path().join(format!("damaged/{session}.1/{session}.messages.jsonl"));
    fs::read(path).expect("the log that was set aside")
}

// I10, I12
#[test]
fn a_damaged_session_is_set_aside_whole_and_only_when_it_is_damaged() {
    let (home, session, log) = damaged();
    let good = home.sessions().into_iter().find(|id| *id != session).expect("another");
    let output = home.run(&["doctor", "--repair", "--set-aside", &good]);
    assert_eq!(code(&output), 1);
    assert!(home.log_path(&good).exists() && home.log_path(&session).exists());

    let output = home.run(&["doctor", "--repair", "--set-aside", &session[5..]]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("set aside"), "{}", stdout(&output));
    assert_eq!(aside(&home, &session), log);
    assert!(!home.sessions().contains(&session));
    let report = home.json(&["doctor"]);
    assert_eq!(report["healthy"], true, "{report}");
    let picture = home.picture();
    assert_eq!(code(&home.run(&["doctor", "--repair", "--set-aside", &session])), 0);
    picture.assert_same(&home.picture(), "the second time");
    home.ok(&["dev", "append", "--sessions", "11", "--records", "12"]);
    // Someone asks for the good part later.
    let output = home.run(&["doctor", "--repair", "--set-aside", &session, "--keep-prefix"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(home.sessions().contains(&session));
}

// I11, I12: what is left goes on from its good records, says so, and begins nothing by itself.
#[test]
fn the_good_beginning_of_a_damaged_log_is_a_log_again() {
    let (home, session, log) = damaged();
    let arguments = ["doctor", "--repair", "--set-aside", &session, "--keep-prefix"];
    let output = home.run(&arguments);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_eq!(aside(&home, &session), log);
    let kept = fs::read(home.log_path(&session)).expect("a log");
    let same = kept.iter().zip(&log).take_while(|(a, b)| a == b).count();
    let (rest, records) =
        (String::from_utf8_lossy(&kept[same..]), home.json_lines(&["log", &session, "--json"]));
    assert!(same > 0 && rest.contains("prefix_kept"), "{rest}");
    let repaired = records.iter().find(|record| record["what"] == "prefix_kept").expect("a record");
    assert_eq!(
        repaired["offset"].as_u64().expect("a byte") + repaired["cut_bytes"].as_u64().expect("some"),
        log.len() as u64
    );
    let status = home.json(&["status", &session]);
    assert!(!["running", "waiting"].contains(&status["status"].as_str().unwrap_or_default()), "{status}");
    assert_eq!(home.json(&["doctor"])["healthy"], true);
    let picture = home.picture();
    assert_eq!(code(&home.run(&arguments)), 0);
    picture.assert_same(&home.picture(), "the second time");
    home.ok(&["dev", "append", "--sessions", "12", "--records", "12"]);
}

// I12, I14: killed anywhere, a repair is finished by the next one, and nothing is lost.
#[test]
fn a_repair_that_is_killed_anywhere_is_finished_by_the_next() {
    let mut places = 0;
    for place in 1..200 {
        let (home, session, log) = damaged();
        let others: Vec<String> = home.sessions().into_iter().filter(|id| *id != session).collect();
        for (kind, of) in ["corrupt-snapshot", "torn-tail", "half-list"].iter().zip(&others) {
            home.ok(&["dev", "damage", kind, "--session", of]);
        }
        for kind in ["rubbish-files", "bad-modes"] {
            home.ok(&["dev", "damage", kind]);
        }
        fs::write(home.path().join("daemon.json"), "{}").expect("written");
        let arguments = ["doctor", "--repair", "--set-aside", &session, "--keep-prefix", "--json"];
        let killed = home.command(&arguments).env("REKINDLE_CRASH_AT", format!("*#{place}")).output();
        let killed = killed.expect("the binary runs");
        if killed.status.code().is_some() {
            assert_eq!(code(&killed), 0, "{}", stdout(&killed));
            break;
        }
        places = place;
        let at = stderr(&killed);
        let output = home.run(&arguments);
        assert_eq!(code(&output), 0, "{at}: {}{}", stdout(&output), stderr(&output));
        assert_eq!(aside(&home, &session), log, "{at}");
        let report = home.json(&["doctor"]);
        // A start that found a damaged session has kept the write-ahead log beside it.
        let kept = report["kinds"]["wal_kept"].as_u64().unwrap_or(0);
        let whole = (report["healthy"].as_bool(), report["warnings"].as_u64());
        assert_eq!(whole, (Some(true), Some(kept)), "{at}: {report}");
        assert_eq!(sessions(&home).len(), 12, "{at}");
        let picture = home.picture();
        assert_eq!(code(&home.run(&arguments)), 0, "{at}");
        picture.assert_same(&home.picture(), &at);
    }
    assert!(places > 20, "only {places} places to die at");
}

fn make_old(path: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 86_400);
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.set_modified(then).expect("a time");
}

fn blobs(home: &Home) -> Vec<PathBuf> {
    let shards = fs::read_dir(home.path().join("blobs")).expect("blobs");
    let shards = shards.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    shards
        .flat_map(|shard| fs::read_dir(shard).expect("a shard"))
        .map(|entry| entry.expect("one").path())
        .collect()
}

fn paths(report: &Value, list: &str) -> Vec<PathBuf> {
    let list = report[list].as_array().expect("a list");
    list.iter().map(|one| one["path"].as_str().expect("a path").into()).collect()
}

// I2, I12: a blob goes when no record names it, and not for a day.
#[test]
fn only_old_blobs_that_no_record_names_are_collected() {
    let home = Home::made();
    let named = blobs(&home);
    assert!(!named.is_empty(), "the home has blobs");
    named.iter().for_each(|path| make_old(path, 3));
    let shard = home.path().join("blobs/ab");
    fs::create_dir_all(&shard).expect("made");
    let [old, young] = ["1", "2"].map(|digit| shard.join(format!("ab{}.zst", digit.repeat(62))));
    for path in [&old, &young] {
        fs::write(path, "payload").expect("written");
    }
    make_old(&old, 2);
    let picture = home.picture();
    let dry = home.json(&["gc", "--dry-run"]);
    assert_eq!((paths(&dry, "gone"), dry["bytes"].as_u64()), (vec![old.clone()], Some(7)), "{dry}");
    picture.assert_same(&home.picture(), "a dry run");
    let freed = home.json(&["gc"]);
    assert_eq!(paths(&freed, "gone"), vec![old.clone()], "{freed}");
    assert!(!old.exists() && young.exists() && named.iter().all(|path| path.exists()));
    assert!(findings(&home.json(&["doctor"]), "blob_missing").is_empty());
    assert!(home.ok(&["gc"]).contains("nothing to remove"));
    // A log that is damaged may have named any: nothing goes.
    make_old(&young, 2);
    home.ok(&["dev", "damage", "flipped-byte"]);
    let freed = home.json(&["gc"]);
    assert_eq!(paths(&freed, "gone"), Vec::<PathBuf>::new(), "{freed}");
    assert!(
        young.exists() && freed["left"][0]["why"].as_str().expect("a reason").contains("damaged"),
        "{freed}"
    );
}

#[test]
fn old_repairs_go_only_when_someone_says_how_old() {
    let home = Home::made();
    home.ok(&["dev", "damage", "corrupt-snapshot"]);
    let report = home.json(&["doctor", "--repair"]);
    let kept = PathBuf::from(report["kept_in"].as_str().expect("a directory"));
    home.ok(&["gc"]);
    home.ok(&["gc", "--repairs-older-than", "30d"]);
    assert!(kept.exists());
    let wrong = home.run(&["gc", "--repairs-older-than", "soon"]);
    assert_eq!(code(&wrong), 2, "{}", stderr(&wrong));
    let freed = home.json(&["gc", "--repairs-older-than", "0s"]);
    assert_eq!(paths(&freed, "gone"), vec![kept.clone()]);
    assert!(!kept.exists());
}

// I10: whoever has a poisoned home is not led into reading what made daemons crash.
#[test]
fn a_repair_leaves_a_quarantined_session_alone_and_sets_it_aside_when_asked_to() {
    let home = Home::made();
    let bad = sessions(&home).remove(3);
    let report = |life: u8| {
        format!(
            "{{\"at\":\"2026-02-21T10:00:0{life}.000Z\",\"boot_id\":\"boot_{life}\",\"version\":\"{}\",\"doing\":\"load\",\
             \"thread\":\"recovery\",\"location\":\"fold.rs:1:1\",\"message\":\"nobody expected this\"}}\n",
            env!("CARGO_PKG_VERSION")
        )
    };
    let crashes = home.path().join("crashes");
    fs::create_dir(&crashes).expect("a directory");
    fs::set_permissions(&crashes, fs::Permissions::from_mode(0o700)).expect("permissions");
    let reports = crashes.join(format!("{bad}.jsonl"));
    fs::write(&reports, [report(1), report(2)].concat()).expect("reports");
    fs::set_permissions(&reports, fs::Permissions::from_mode(0o600)).expect("permissions");
    // Something that a repair would see to, in any other session.
    let snapshot = home.path().join("sessions").join(format!("{bad}.json"));
    fs::write(&snapshot, "no snapshot").expect("written");
    fs::set_permissions(&snapshot, fs::Permissions::from_mode(0o600)).expect("permissions");
    home.ok(&["dev", "damage", "rubbish-files"]);

    // Whoever looked into it would die of it.
    let run = |arguments: &[&str], doing: &str| {
        let mut command = home.command(arguments);
        let output = command.env("REKINDLE_PANIC_AT", format!("{doing}@{bad}")).output().expect("it runs");
        let report: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}{}", stdout(&output), stderr(&output)));
        (code(&output), report)
    };
    for doing in ["redo", "check"] {
        assert_eq!(run(&["doctor", "--json"], doing).0, 1);
    }
    let (exit, repaired) = run(&["doctor", "--repair", "--json"], "redo");
    assert_eq!(exit, 1, "it is still quarantined");
    assert!(!actions(&repaired, "moved").is_empty(), "everything else is mended: {repaired}");
    let told = findings(&repaired, "session_quarantined");
    assert!(told.len() == 1 && told[0]["session"] == *bad, "{repaired}");
    assert!(told[0]["what"].as_str().is_some_and(|what| what.contains("repaired")), "{repaired}");
    assert_eq!(fs::read_to_string(&snapshot).expect("it stays"), "no snapshot");

    let (exit, refused) =
        run(&["doctor", "--repair", "--set-aside", &bad, "--keep-prefix", "--json"], "load");
    let why = actions(&refused, "set_aside")[0]["error"].as_str().unwrap_or_default();
    assert!(exit == 1 && why.contains("quarantined"), "{refused}");
    assert!(home.log_path(&bad).exists());

    let (exit, aside) = run(&["doctor", "--repair", "--set-aside", &bad, "--json"], "load");
    assert_eq!(exit, 0, "{aside}");
    assert_eq!(actions(&aside, "set_aside")[0]["code"], "session_quarantined");
    let directory = home.path().join("damaged").join(format!("{bad}.1"));
    for name in [format!("{bad}.messages.jsonl"), format!("{bad}.json"), "crashes.jsonl".to_owned()] {
        assert!(directory.join(&name).exists(), "{name}");
    }
    let (exit, healthy) = run(&["doctor", "--json"], "load");
    assert!(exit == 0 && findings(&healthy, "session_quarantined").is_empty(), "{healthy}");
}

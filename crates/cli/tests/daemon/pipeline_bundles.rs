//! Runs of pipelines looked after, with real daemons and agents: a run goes to another home and goes on there, damaged ones are told of,
//! and old ones are collected.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::RunName;
use rekindle_store::disk::RealDisk;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};

/// Two stages: one that counts how often it is done, and whose result runs share, and one that begins something and then waits for a file.
fn project(counts: &Path) -> String {
    let counts = counts.display();
    format!(
        r#"version = 1
[agents.builder]
command = ["sh", "-c", "cat > /dev/null; echo one >> work.txt; echo one >> {counts}/one"]
profile = "exec"
[agents.finisher]
command = ["sh", "-c", "cat > /dev/null; echo half >> work.txt; echo two >> {counts}/two; while test -d {counts} && ! test -e {counts}/gate; do sleep 0.05; done; echo two >> work.txt"]
profile = "exec"
[[tasks]]
id = "T-1"
goal = "Two lines"
[pipelines.default]
[[pipelines.default.stages]]
name = "implement"
agent = "builder"
prompt = "one"
cache = true
[[pipelines.default.stages]]
name = "finish"
agent = "finisher"
prompt = "two"
"#
    )
}

/// How often a stage was begun.
fn count(counts: &Path, stage: &str) -> usize {
    fs::read_to_string(counts.join(stage)).map_or(0, |text| text.lines().count())
}

fn start(lab: &Lab, config: &str) -> String {
    fs::write(lab.path("work").join("rekindle.toml"), config).expect("written");
    let trust = BlobId::of(config.as_bytes()).to_string();
    let body = json!({"working_dir": lab.path("work"), "tasks": ["T-1"], "trust": trust});
    let made = lab.post("/api/pipelines", &body);
    made["pipelines"][0]["run_id"].as_str().expect("a name").to_owned()
}

fn wait_completed(lab: &Lab, run: &str) -> Value {
    let path = format!("/api/pipelines/{run}");
    wait_for("the end of the run", || lab.try_get(&path).filter(|view| view["status"] == "completed"))
}

fn records(lab: &Lab, run: &str) -> Vec<Value> {
    lab.get(&format!("/api/pipelines/{run}/ledger?limit=1000"))["records"]
        .as_array()
        .expect("records")
        .clone()
}

impl Lab {
    /// Expects a run that came from elsewhere to be a task, with the sessions of its two steps as parts.
    #[track_caller]
    fn shows_as_tree(&self, run: &str) {
        let listed = |query: &str| {
            let listed = self.get(&format!("/api/tasks?{query}"))["tasks"].clone();
            listed.as_array().expect("tasks").clone()
        };
        // The daemon may still be reading what was there before it.
        let task = wait_for("the run as a task", || listed("kind=pipeline").pop());
        let id = task["id"].as_str().expect("an id").to_owned();
        assert_eq!(
            (&task["pipeline_run"], &task["status"]),
            (&json!(run), &json!("waiting_input")),
            "{task:#}"
        );
        let parts = || Some(listed(&format!("parent={id}"))).filter(|parts| parts.len() == 2);
        let parts = wait_for("its steps", parts);
        let stood: Vec<&str> = parts.iter().filter_map(|part| part["status"].as_str()).collect();
        assert!(stood.contains(&"completed") && !stood.contains(&"running"), "{parts:#?}");
        let shown = self.ran(&["--json", "task", "show", run]).exits(0).json();
        assert_eq!((&shown["id"], &shown["steps"]), (&json!(id), &json!(parts)));
        self.ran(&["task", "show", run]).exits(0).shows("implement-1").shows("finish-1");
        self.ran(&["ps", "-a"]).exits(0).shows(run);
        let listed = self.ran(&["--json", "ps", "-a"]).exits(0).json();
        let of_run = |session: &&Value| session["parent"]["run_id"] == run;
        assert_eq!(
            listed["sessions"].as_array().expect("a list").iter().filter(of_run).count(),
            2,
            "{listed:#}"
        );
    }

    /// Waits for the ledger of a run to be compressed, and returns what is in it.
    pub(crate) fn compressed_ledger(&self, run: &str) -> Vec<u8> {
        let place = self.home().join("runs").join(run);
        wait_for("a compressed ledger", || {
            let is_compressed = place.join("ledger.ndjson.zst").exists();
            (is_compressed && !place.join("ledger.ndjson").exists()).then_some(())
        });
        let home = Offline::open(Arc::new(RealDisk), self.home()).expect("a home");
        let run: RunName = run.parse().expect("a name");
        let ledger = home.ledger_reader(run.pipeline_id()).expect("a ledger");
        let mut bytes = Vec::new();
        ledger.stored(Cursor::START, ledger.end()).read_to_end(&mut bytes).expect("read");
        bytes
    }
}

// I4, I11: nothing that is finished is done again, wherever the run goes on.
#[test]
fn a_run_that_was_killed_in_its_second_stage_is_completed_in_another_home_under_another_path() {
    let mut here = Lab::new();
    let counts = here.path("counts");
    fs::create_dir(&counts).expect("a directory");
    let config = project(&counts);
    // What comes of it when nobody is disturbed.
    let calm = Lab::new();
    fs::write(counts.join("gate"), "").expect("written");
    let calm_run = start(&calm, &config);
    wait_completed(&calm, &calm_run);
    let last_tree = |lab: &Lab, run: &str| {
        let records = records(lab, run);
        let finished = records.iter().rfind(|record| record["kind"] == "step.finished").cloned();
        finished.expect("a finished step")["to"].clone()
    };
    let wanted = last_tree(&calm, &calm_run);
    fs::remove_file(counts.join("gate")).expect("removed");
    for stage in ["one", "two"] {
        fs::remove_file(counts.join(stage)).expect("removed");
    }

    let run = start(&here, &config);
    wait_for("the second stage", || (count(&counts, "two") == 1).then_some(()));
    here.kill();
    here.kill_holders();
    let file = here.path("run.rkb").display().to_string();
    let exported = here.ran(&["export", &run[..run.len() - 2], "-o", &file, "--json"]).exits(0).json();
    assert_eq!(exported["runs"][0]["run_id"], json!(run), "{exported}");
    assert_eq!(exported["sessions"].as_array().map(Vec::len), Some(2), "{exported}");
    assert_eq!(exported["cached_results"], 1, "{exported}");

    let mut there = Lab::new();
    let into = there.path("elsewhere").display().to_string();
    let import = |there: &Lab| there.ran(&["import", &file, "--into", &into, "--trust-command"]);
    let refused = there.ran(&["import", &file, "--into", &into]).exits(1);
    assert!(refused.err.contains("--trust-command") && !Path::new(&into).exists(), "{refused:?}");
    let imported = import(&there).exits(0).tells("finish-1 was in progress").tells("pipeline resume");
    assert_eq!(imported.out.trim(), run, "{imported:?}");
    imported.tells("1 shared result of steps");
    there.shows_as_tree(&run);
    assert_eq!(import(&there).exits(1).tells("already exists here").out, "");
    // It rests, whoever is the daemon, and its files are those that its second stage begins with.
    let path = format!("/api/pipelines/{run}");
    for _ in 0..2 {
        let view =
            wait_for("it rests", || there.try_get(&path).filter(|v| v["pending"]["why"] == "imported"));
        assert_eq!((&view["working_dir"], &view["status"]), (&json!(into), &json!("running")));
        there.restart();
    }
    let work = |name: &str| fs::read_to_string(PathBuf::from(&into).join(name)).expect("a file");
    assert_eq!(work("work.txt"), "one\n");
    there.ran(&["doctor"]).exits(0);
    // Nobody here has trusted what it runs.
    let resume = |more: &[&str]| there.ran(&[&["pipeline", "resume", &run, "--detach"], more].concat());
    resume(&[]).exits(2).tells("--trust");
    assert_eq!(count(&counts, "two"), 1, "nothing was begun");
    fs::write(counts.join("gate"), "").expect("written");
    resume(&["--trust", &BlobId::of(config.as_bytes()).to_string()]).exits(0);
    wait_completed(&there, &run);
    assert_eq!((count(&counts, "one"), count(&counts, "two")), (1, 2));
    assert_eq!(last_tree(&there, &run), wanted);
    assert_eq!(work("work.txt"), "one\nhalf\ntwo\n");
    let records = records(&there, &run);
    let began: Vec<&Value> = records.iter().filter(|record| record["kind"] == "step.began").collect();
    assert_eq!(began.len(), 3, "{records:#?}");
    assert!(began.iter().all(|began| began["step_id"] != "implement-1" || began["attempt"] == 1));
    let lines = String::from_utf8(there.compressed_ledger(&run)).expect("text");
    assert_eq!(lines.lines().count(), records.len());
    there.ran(&["doctor"]).exits(0);
    // Another run of the same has the result that came along: what was done elsewhere is not done again.
    let again = start(&there, &config);
    wait_completed(&there, &again);
    let finished: Vec<Value> = self::records(&there, &again);
    let cached = finished.iter().filter(|record| record["cached"] == true).map(|record| &record["step_id"]);
    assert_eq!(cached.collect::<Vec<_>>(), ["implement-1"]);
    assert_eq!((count(&counts, "one"), count(&counts, "two")), (1, 3));

    // A daemon that dies when the run has its place, and its rows have none, is followed by one that writes these.
    let mut cut = Lab::without_daemon();
    cut.start_to_die("import.taken_in");
    // The command asks the next one, which it starts, and which finds everything at its place.
    import(&cut).exits(0);
    cut.died();
    cut.ran(&["stop"]).exits(0);
    cut.start();
    cut.shows_as_tree(&run);
    assert_eq!(import(&cut).exits(1).tells("already exists here").out, "");
    cut.leave();
    cut.ran(&["doctor"]).exits(0);
}

/// Returns what the doctor finds about runs.
#[track_caller]
fn found(lab: &Lab, code: i32) -> Vec<String> {
    let told = lab.ran(&["doctor", "--json"]).exits(code).json();
    let findings = told["findings"].as_array().expect("findings").iter();
    let of_runs =
        findings.filter(|finding| finding["path"].as_str().is_some_and(|path| path.contains("/runs/")));
    of_runs.map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
}

/// Returns the runs that were collected, or would be.
fn gone_runs(told: &Value) -> Vec<PathBuf> {
    let gone = told["gone"].as_array().expect("a list").iter().filter(|gone| gone["kind"] == "run");
    gone.map(|gone| PathBuf::from(gone["path"].as_str().expect("a path"))).collect()
}

#[test]
fn the_doctor_tells_of_damaged_runs_and_gc_lets_old_ones_go() {
    let mut lab = Lab::new();
    let counts = lab.path("counts");
    fs::create_dir(&counts).expect("a directory");
    fs::write(counts.join("gate"), "").expect("written");
    let config = project(&counts);
    let run = start(&lab, &config);
    let sessions: Vec<String> = {
        wait_completed(&lab, &run);
        lab.compressed_ledger(&run);
        let stages = lab.get(&format!("/api/pipelines/{run}"))["stages"].as_array().expect("stages").clone();
        stages.iter().map(|stage| stage["session_id"].as_str().expect("an id").to_owned()).collect()
    };
    fs::remove_file(counts.join("gate")).expect("removed");
    let open = start(&lab, &config);
    wait_for("its second stage", || (count(&counts, "two") == 2).then_some(()));
    lab.kill();
    lab.kill_holders();
    let runs = lab.home().join("runs");
    let place = |run: &str, name: &str| runs.join(run).join(name);
    let calm: Vec<String> = found(&lab, 0);
    assert!(calm.iter().all(|code| code.starts_with("log_re")), "{calm:?}");
    // Summaries come back; one that says otherwise is taken away.
    fs::write(place(&run, "run.json"), "{}").expect("written");
    fs::remove_file(place(&open, "run.json")).expect("removed");
    let told = found(&lab, 0);
    assert!(["run_summary_differs", "run_summary_missing"].iter().all(|code| told.contains(&(*code).into())));
    lab.ran(&["doctor", "--repair"]).exits(0);
    assert!(!place(&run, "run.json").exists());
    // A torn end is cut off, and kept.
    let ledger = fs::read(place(&open, "ledger.ndjson")).expect("a ledger");
    fs::write(place(&open, "ledger.ndjson"), [&ledger[..], b"{\"seq\":9,\"ts\""].concat()).expect("written");
    let torn = found(&lab, 0);
    assert!(torn.iter().any(|code| code == "log_torn"), "{torn:?}");
    lab.ran(&["doctor", "--repair"]).exits(0);
    assert_eq!(fs::read(place(&open, "ledger.ndjson")).expect("a ledger"), ledger);
    // A byte that rotted in a compressed ledger is no torn end: nothing is repaired, and nothing collected.
    let stored = fs::read(place(&run, "ledger.ndjson.zst")).expect("a ledger");
    let mut rotten = stored.clone();
    rotten[20] ^= 1;
    fs::write(place(&run, "ledger.ndjson.zst"), &rotten).expect("written");
    assert!(found(&lab, 1).contains(&"log_damaged".into()));
    lab.ran(&["doctor", "--repair"]).exits(1);
    assert_eq!(fs::read(place(&run, "ledger.ndjson.zst")).expect("a ledger"), rotten);
    lab.ran(&["gc", "--runs-older-than", "0s"]).exits(0);
    assert!(place(&run, "ledger.ndjson.zst").exists());
    fs::write(place(&run, "ledger.ndjson.zst"), &stored).expect("written");
    // A session that somebody removed, and files that are gone.
    lab.start();
    lab.ran(&["rm", &sessions[0]]).exits(0);
    wait_for("the session is gone", || found(&lab, 0).contains(&"run_session_missing".into()).then_some(()));

    // Those that ended go when they are old enough, by the daemon; the one that goes on stays, and so do sessions.
    let told = lab.ran(&["gc", "--runs-older-than", "0s", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(gone_runs(&told), [runs.join(&run)], "{told:#}");
    assert!(place(&run, "ledger.ndjson.zst").exists(), "only told");
    let kept = lab.ran(&["gc", "--json"]).exits(0).json();
    assert!(gone_runs(&kept).is_empty(), "it is young: {kept:#}");
    let freed = lab.ran(&["gc", "--runs-older-than", "0s", "--json"]).exits(0).json();
    assert_eq!(gone_runs(&freed), [runs.join(&run)], "{freed:#}");
    assert!(!lab.home().join("runs").join(&run).exists());
    let gone = lab.ask("GET", &format!("/api/pipelines/{run}"), &Value::Null);
    assert_eq!((gone.status, &gone.body["error"]["code"]), (404, &json!("run_unknown")));
    assert_eq!(lab.get(&format!("/api/pipelines/{open}"))["run_id"], json!(open));
    assert_eq!(lab.show(&sessions[1])["id"], json!(sessions[1]));
    // The next daemon misses nothing.
    lab.restart();
    assert!(!found(&lab, 0).contains(&"log_damaged".into()));
}

//! Results that runs of pipelines share, as users have them: a second run of the same has its results without an agent, also if daemons
//! die between its files and its records.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::pipelines::{WORK, config, judge};

fn said(lab: &Lab, arguments: &[&str]) -> String {
    let output = lab.rekindle(arguments).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Counts the results that are kept for other runs.
fn kept(lab: &Lab) -> usize {
    let entries =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_result = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    entries(lab.home().join("cache")).flat_map(entries).filter(is_result).count()
}

// I4, I11.
#[test]
fn a_second_run_has_the_results_of_the_first_whoever_dies_over_it() {
    let mut lab = Lab::new();
    let config = config(&lab).replace("\nname = \"", "\ncache = true\nname = \"");
    let first = lab.start_run(&config, &json!({}));
    judge(&lab, &first);
    assert_eq!(lab.agents().len(), 4);
    // A result is kept for others after it is recorded: a death in between costs only what the cache had saved.
    wait_for("the last result in the cache", || (kept(&lab) == 5).then_some(()));
    let result = lab.path("work").join("code.txt");
    fs::remove_file(&result).expect("removed");
    lab.kill();
    // The files are as the result left them, and no record says so.
    let place = "pipeline.after_restore#1";
    lab.start_to_die(place);
    wait_for("a daemon", || lab.try_get("/readyz"));
    let second = lab.start_run(&config, &json!({}));
    let mut deaths = 0;
    loop {
        wait_for("a death, or the end", || (lab.is_run_over(&second) || lab.dead()).then_some(()));
        if !lab.dead() {
            break;
        }
        deaths += 1;
        lab.start_to_die(place);
    }
    assert_eq!(deaths, 2, "once for each round's files");
    judge(&lab, &second);
    assert_eq!(lab.agents().len(), 4, "nobody works for what is there");
    // The check of the first round failed, and a failure is no result: it was done again.
    let of = |run: &str, kind: &str| -> Vec<Value> {
        lab.ledger(run).into_iter().filter(|record| record["kind"] == kind).collect()
    };
    let begun: Vec<Value> =
        of(&second, "step.began").iter().map(|record| record["step_id"].clone()).collect();
    assert_eq!(begun, ["verify-1"]);
    for (one, other) in of(&first, "step.finished").iter().zip(of(&second, "step.finished")) {
        assert_eq!(
            (&one["outcome"], &one["key"], &one["to"]),
            (&other["outcome"], &other["key"], &other["to"])
        );
        assert_eq!(other["cached"] == true, other["step_id"] != "verify-1");
    }
    let log = said(&lab, &["pipeline", "log", &second]);
    assert_eq!(log.lines().filter(|line| line.contains("cached")).count(), 5, "{log}");
    // Who wants none of that gets none.
    fs::remove_file(&result).expect("removed");
    let third = lab.start_run(&config, &json!({"no_cache": true}));
    judge(&lab, &third);
    assert_eq!((lab.agents().len(), of(&third, "step.began").len()), (8, 6));
    assert_eq!(fs::read_to_string(&result).expect("a file"), WORK);
    // Kept for others as long as the configuration says.
    lab.configure("[cache]\nmax_bytes = 0\n");
    let output = lab.configured(&["gc", "--json"]).output().expect("it runs");
    let freed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let gone =
        freed["gone"].as_array().expect("a list").iter().filter(|gone| gone["kind"] == "cached result");
    assert_eq!(gone.count(), 5, "{freed:#}");
}

//! A campaign of deaths: a pipeline of three stages and two rounds, of which the daemon, the holder, the agent, or everything at once is
//! killed at every append to the ledger and at random moments. What was finished is never done again, what was cut is done again from
//! the very files of before, and the ledger says which of both it was.
//!
//! `REKINDLE_TEST_LONG=1` runs all of it, `REKINDLE_SEED=n` begins with other moments.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rekindle_holder::client::inspect_all;
use rekindle_holder::tree::signal_exactly;
use rekindle_lab::{look_for, marked};
use rekindle_seeded::Rng;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};
use crate::pipeline_lab::kinds;

/// The steps of a run, in their order: the review sends the work back once.
const STEPS: [&str; 5] = ["implement-1", "review-1", "implement-2", "review-2", "verify-2"];

/// Appends to the ledger by the run's worker: each step begins, and ends together with what follows.
const APPENDS: usize = 2 * STEPS.len();

/// Random moments within steps in all, and how many moments one run goes through at most.
const MOMENTS: usize = 200;
const PER_RUN: usize = 4;

/// More places than a daemon comes by on its way to the end of a run.
const MOST_PLACES: usize = 300;

/// How often is looked at a run that is to die at a place.
const LOOK: Duration = Duration::from_millis(2);

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Holder,
    Agent,
    Everything,
}

const VICTIMS: [Victim; 4] = [Victim::Daemon, Victim::Holder, Victim::Agent, Victim::Everything];

/// When somebody dies.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// The daemon is about to add to the ledger for the n-th time.
    Before(usize),
    /// It has just done so.
    Behind(usize),
    /// This step has begun, and somebody works at it.
    In(&'static str),
    /// So long after the last death, or the start.
    After(Duration),
}

/// A death.
#[derive(Debug, Clone, Copy)]
struct Death(Victim, Moment);

/// What a run comes to that nothing disturbs.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// The key of each step.
    keys: Vec<String>,
    /// The tree that each step left.
    trees: Vec<String>,
    files: BTreeMap<String, String>,
}

/// A home in which the same run is started again and again, each time with the same files.
struct Campaign {
    lab: Lab,
    config: String,
    calm: Outcome,
    took: Duration,
    /// Steps that were cut, in all runs.
    cuts: usize,
}

impl Campaign {
    fn new() -> Campaign {
        let lab = Lab::new();
        let config = config(&lab);
        let calm = Outcome { keys: Vec::new(), trees: Vec::new(), files: BTreeMap::new() };
        let mut campaign = Campaign { lab, config, calm, took: Duration::ZERO, cuts: 0 };
        // The second time everything is at hand.
        let mut run = String::new();
        for _ in 0..2 {
            run = campaign.start();
            let began = Instant::now();
            campaign.see_through(&run);
            campaign.took = began.elapsed();
        }
        campaign.calm = campaign.outcome(&run);
        assert_eq!(campaign.effects(), STEPS.map(|step| (step.to_owned(), 1)).into());
        assert_ne!(campaign.calm.keys[1], campaign.calm.keys[3], "the second review is another step");
        campaign
    }

    fn work(&self) -> PathBuf {
        self.lab.path("work")
    }

    /// Makes the directory what it was at first, and starts a run.
    fn start(&self) -> String {
        for entry in fs::read_dir(self.work()).expect("a directory").flatten() {
            fs::remove_file(entry.path()).expect("removed");
        }
        let _ = fs::remove_file(self.lab.path("effects"));
        self.lab.start_run(&self.config, &json!({"on_cut": "restore"}))
    }

    /// Goes through a run with these deaths, and judges it; returns how many of them came while somebody worked at a step.
    fn play(&mut self, deaths: &[Death]) -> usize {
        let what = format!("{deaths:?}");
        // Counted from the daemon's start on: a fresh one for each run.
        self.lab.kill();
        match deaths {
            [Death(_, moment @ (Moment::Before(_) | Moment::Behind(_)))] => {
                self.lab.start_to_die(&place(*moment));
                wait_for("a daemon", || self.lab.try_get("/readyz"));
            }
            _ => self.lab.start(),
        }
        let run = self.start();
        let mut within = 0;
        for death in deaths {
            self.await_moment(&run, death.1);
            within += usize::from(self.is_worked_at());
            self.strike(death.0);
        }
        self.see_through(&run);
        self.judge(&run, &what);
        within
    }

    /// Has everything die in a step, and the next daemon at a place on its way back; tells whether it came by that.
    fn play_return(&mut self, step: &'static str, place: &str) -> bool {
        self.lab.restart();
        let run = self.start();
        self.await_moment(&run, Moment::In(step));
        self.kill(Victim::Everything);
        self.lab.start_to_die(place);
        wait_for("a death, or the end", || (self.lab.dead() || self.tend(&run)).then_some(()));
        let has_died = self.lab.dead();
        self.see_through(&run);
        self.judge(&run, &format!("{step}, then {place}"));
        has_died
    }

    /// Waits until it is time; returns also when the run is over before.
    fn await_moment(&mut self, run: &str, moment: Moment) {
        let begin = Instant::now();
        let found = look_for(PATIENCE, LOOK, || {
            let is_time = match moment {
                Moment::Before(_) | Moment::Behind(_) => self.lab.dead(),
                // What it does beside its files it does first. Before that an agent may not have been told anything, and then nothing is cut.
                Moment::In(step) => self.effects().contains_key(step) && self.is_worked_at(),
                Moment::After(time) => begin.elapsed() >= time,
            };
            (is_time || self.tend(run)).then_some(())
        });
        found.unwrap_or_else(|| panic!("{moment:?} does not come: {:#?}", self.lab.try_show_run(run)));
    }

    /// Tells whether some agent has a process.
    fn is_worked_at(&self) -> bool {
        let seen = inspect_all(&self.lab.home().join("holders")).unwrap_or_default();
        seen.iter().any(|one| marked(&one.holder_id).members().is_ok_and(|members| !members.is_empty()))
    }

    /// Kills, and starts another daemon where there is none.
    fn strike(&mut self, victim: Victim) {
        self.kill(victim);
        self.lab.start_if_dead();
    }

    /// Kills, with everything else that is to die at the same time.
    fn kill(&mut self, victim: Victim) {
        let seen = inspect_all(&self.lab.home().join("holders")).unwrap_or_default();
        let holders = self.lab.living_holders();
        if matches!(victim, Victim::Daemon | Victim::Everything) {
            self.lab.kill();
        }
        if matches!(victim, Victim::Holder | Victim::Everything) {
            for holder in &holders {
                let _ = signal_exactly(holder, Signal::KILL);
            }
        }
        if matches!(victim, Victim::Agent | Victim::Everything) {
            for one in &seen {
                let _ = marked(&one.holder_id).signal(Signal::KILL);
            }
        }
    }

    /// Says that a run goes on that waits for a person, with the files as they were; tells whether it is over.
    fn tend(&mut self, run: &str) -> bool {
        let Some(view) = self.lab.try_show_run(run) else { return false };
        let why = view["pending"]["why"].as_str().unwrap_or_default();
        // Nobody saw when the agent of a holder that was killed did something last; and three cuts are a person's to look at.
        if ["drift", "too_many_attempts"].contains(&why) {
            let path = format!("/api/pipelines/{run}/resume");
            // It may be at work by now, or the daemon gone.
            let _ = self.lab.try_ask("POST", &path, "", &json!({"on_drift": "restore"}));
        }
        view["status"] != "running"
    }

    fn see_through(&mut self, run: &str) {
        self.lab.start_if_dead();
        let over = look_for(PATIENCE, LOOK, || self.tend(run).then_some(()));
        over.unwrap_or_else(|| panic!("it does not end: {:#?}", self.lab.try_show_run(run)));
    }

    fn judge(&mut self, run: &str, what: &str) {
        let records = self.lab.ledger(run);
        let told = || format!("{what}: {:#?}", kinds(&records));
        let of = |kind: &str, step: &str| {
            records.iter().filter(|record| record["kind"] == kind && record["step_id"] == step).count()
        };
        for (record, seq) in records.iter().zip(1..) {
            assert_eq!(record["seq"], seq, "without a gap: {}", told());
        }
        assert_eq!(
            records.last().map(|last| &last["kind"]),
            Some(&json!("pipeline.completed")),
            "{}",
            told()
        );
        let finished: Vec<&str> = records
            .iter()
            .filter(|record| record["kind"] == "step.finished")
            .filter_map(|record| record["step_id"].as_str())
            .collect();
        assert_eq!(finished, STEPS, "each once: {}", told());
        let effects = self.effects();
        for step in STEPS {
            let (began, cut) = (of("step.began", step), of("step.interrupted", step));
            assert_eq!(began, cut + 1, "{step}: {}", told());
            self.cuts += cut;
            let done = effects.get(step).copied().unwrap_or(0);
            assert!((1..=began).contains(&done), "{step} was done {done} times: {}", told());
        }
        assert_eq!(self.outcome(run), self.calm, "{}", told());
        let nobody = || self.lab.living_holders().is_empty() && self.lab.living_agents().is_empty();
        wait_for("the end of all agents", || nobody().then_some(()));
    }

    fn outcome(&self, run: &str) -> Outcome {
        let records = self.lab.ledger(run);
        let finished: Vec<&Value> =
            records.iter().filter(|record| record["kind"] == "step.finished").collect();
        let text = |name: &str| -> Vec<String> {
            finished.iter().map(|record| record[name].as_str().unwrap_or_default().to_owned()).collect()
        };
        let files = fs::read_dir(self.work()).expect("a directory").flatten().map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("text"))
        });
        Outcome { keys: text("key"), trees: text("to"), files: files.collect() }
    }

    /// How often each step did what it does beside its files, where no restore takes it back.
    fn effects(&self) -> BTreeMap<String, usize> {
        let mut effects = BTreeMap::new();
        for line in fs::read_to_string(self.lab.path("effects")).unwrap_or_default().lines() {
            *effects.entry(line.to_owned()).or_default() += 1;
        }
        effects
    }
}

/// Returns the place where a daemon dies by itself.
fn place(moment: Moment) -> String {
    match moment {
        Moment::Before(nth) => format!("pipeline.before_record#{nth}"),
        Moment::Behind(nth) => format!("pipeline.after_record#{nth}"),
        Moment::In(_) | Moment::After(_) => panic!("{moment:?} is no place"),
    }
}

/// Returns the project's file. What an agent does takes a while, so that it can be cut in the middle of it; what the review of the first
/// round finds is what the second one comes to.
fn config(lab: &Lab) -> String {
    let effects = lab.path("effects").display().to_string();
    format!(
        "version = 1
[agents.demo]
command = {:?}
profile = \"acp\"
[[tasks]]
id = \"T-1\"
goal = \"append code.txt\"
[pipelines.default]
max_rounds = 2
[[pipelines.default.stages]]
name = \"implement\"
agent = \"demo\"
prompt = '''
run echo implement-{{{{round}}}} >> {effects}
{{{{task.goal}}}} round {{{{round}}}}
sleep 15ms
words 10 every 2ms
append notes.txt round {{{{round}}}}
sleep 15ms'''
[[pipelines.default.stages]]
name = \"review\"
agent = \"demo\"
writes = false
outcomes = {{ approved = \"next\", changes_requested = \"implement\" }}
prompt = '''
run echo review-{{{{round}}}} >> {effects}
sleep 15ms
words 10 every 2ms
{{{{review.findings}}}}
outcome changes_requested outcome approved it is fine'''
[[pipelines.default.stages]]
name = \"verify\"
check = [\"sh\", \"-c\", \"echo verify-2 >> {effects}; sleep 0.03; grep -q 'round 2' code.txt\"]
",
        lab.demo(&[])
    )
}

fn is_long() -> bool {
    std::env::var_os("REKINDLE_TEST_LONG").is_some()
}

/// I4, I9, I11: between any two appends to the ledger, and in every step.
#[test]
fn whoever_dies_at_a_boundary_of_the_ledger_no_finished_step_is_done_again() {
    let places = (1..=APPENDS).flat_map(|nth| [Moment::Before(nth), Moment::Behind(nth)]);
    let dying = places.flat_map(|place| [Victim::Daemon, Victim::Everything].map(|dies| Death(dies, place)));
    let working = STEPS.iter().flat_map(|step| VICTIMS.map(|dies| Death(dies, Moment::In(step))));
    let all: Vec<Death> = dying.chain(working).collect();
    let every = if is_long() { 1 } else { all.len().div_ceil(6) };
    let mut campaign = Campaign::new();
    for death in all.into_iter().skip(every / 2).step_by(every) {
        campaign.play(&[death]);
    }
    assert!(campaign.cuts > 0);
}

/// I4, I9, I11: whoever dies on the way back, in the middle of a cut that is recorded or of files that are restored, is followed by one
/// that goes on from there.
#[test]
fn a_daemon_that_dies_on_the_way_back_leaves_it_to_the_next() {
    let mut campaign = Campaign::new();
    if !is_long() {
        for place in ["pipeline.before_restore", "pipeline.after_restore", "*#30"] {
            assert!(campaign.play_return("implement-2", place), "it came by {place}");
        }
        return;
    }
    let died = (1..MOST_PLACES).take_while(|nth| campaign.play_return("implement-2", &format!("*#{nth}")));
    let died = died.count();
    assert!((20..MOST_PLACES - 1).contains(&died), "it came by {died} places");
}

/// I4, I9, I11: several deaths in a run, whoever dies and whenever.
#[test]
fn whoever_dies_at_random_moments_no_finished_step_is_done_again() {
    let seed = std::env::var("REKINDLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut rng = Rng::new(seed);
    let mut campaign = Campaign::new();
    let moments = if is_long() { MOMENTS } else { 6 };
    let mut within = 0;
    while within < moments {
        // So that several of them come before the end, and each of them in any step.
        let most = u64::try_from(campaign.took.as_micros()).expect("no such time") / 2;
        let deaths: Vec<Death> = (0..PER_RUN)
            .map(|_| Death(*rng.pick(&VICTIMS), Moment::After(Duration::from_micros(rng.below(most)))))
            .collect();
        eprintln!("seed {seed}, behind {within}: {deaths:?}");
        within += campaign.play(&deaths);
    }
    assert!(campaign.cuts > 0);
}

/// Returns the project's file with a stage that begins to work, waits for a word in the middle of it, and goes on.
fn held(lab: &Lab) -> String {
    let at_work = "append code.txt begun\\nbarrier here\\nappend code.txt done";
    let text = config(lab).replace("goal = \"append code.txt\"", &format!("goal = \"{at_work}\""));
    let (first, rest) = text.split_once("[[pipelines.default.stages]]").expect("stages");
    let stage = rest.split("[[pipelines.default.stages]]").next().expect("a stage");
    let prompt = stage.find("prompt").expect("a prompt");
    format!("{first}[[pipelines.default.stages]]{}prompt = \"{{{{task.goal}}}}\"\n", &stage[..prompt])
}

/// A run whose only step was cut in the middle by the death of everything, and a person who was at work before a daemon came back.
fn cut_and_edited(lab: &mut Lab) -> String {
    fs::write(lab.path("work/mine.txt"), "of before\n").expect("written");
    let run = lab.start_run(&held(lab), &json!({"on_cut": "restore"}));
    lab.reach("here");
    lab.kill();
    lab.kill_holders();
    wait_for("the end of the agent", || {
        lab.living_agents().iter().for_each(|agent| crate::kills::kill(*agent));
        lab.living_agents().is_empty().then_some(())
    });
    fs::write(lab.path("work/mine.txt"), "edited\n").expect("written");
    lab.start();
    let rests = lab.wait_pending("drift");
    let drift = &rests["pending"]["drift"];
    let paths: Vec<&str> = drift["files"]["first"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    // The agent's own file too: nobody saw when it ended.
    assert_eq!(
        (paths, &drift["unknown_author"]["total"]),
        (vec!["code.txt", "mine.txt"], &json!(2)),
        "{rests:#}"
    );
    lab.pass("here");
    run
}

/// I4, I13: nothing that a person may have done is taken back unasked, and what they say is done.
#[test]
fn an_edit_between_a_death_and_a_resume_is_named_and_done_with_as_somebody_says() {
    for (word, mine, code) in
        [("restore", "of before\n", "begun\ndone\n"), ("accept", "edited\n", "begun\nbegun\ndone\n")]
    {
        let mut lab = Lab::new();
        let run = cut_and_edited(&mut lab);
        let read = |name: &str| fs::read_to_string(lab.path("work").join(name)).expect("a file");
        let key = |lab: &Lab| lab.try_show_run(&run).expect("a run")["stages"][0]["key"].clone();
        let meant = key(&lab);
        lab.pipeline(&["resume", "--on-drift", "stop"])
            .exits(3)
            .tells("mine.txt")
            .tells("--on-drift restore");
        assert_eq!((read("mine.txt").as_str(), read("code.txt").as_str()), ("edited\n", "begun\n"));
        lab.pipeline(&["resume", "--on-drift", word]).exits(0).shows("completed");
        assert_eq!((read("mine.txt").as_str(), read("code.txt").as_str()), (mine, code), "{word}");
        assert_eq!(key(&lab) == meant, word == "restore", "what begins with other files is another step");
        let records = lab.ledger(&run);
        let decided: Vec<&Value> = records
            .iter()
            .filter(|record| record["kind"] == "pipeline.drift")
            .map(|record| &record["decision"])
            .collect();
        assert_eq!(decided, [&json!("stop"), &json!(word)], "{records:#?}");
    }
}

/// I4: one run works in a directory at a time, also under daemons that come after them; the second one finds what the first one did.
#[test]
fn two_runs_in_a_directory_work_one_after_the_other_whoever_dies() {
    let mut lab = Lab::new();
    let first = lab.start_run(&held(&lab), &json!({"on_cut": "restore"}));
    lab.reach("here");
    let second = lab.start_run(&held(&lab), &json!({"on_cut": "restore"}));
    let why = |lab: &Lab, run: &str| {
        lab.try_show_run(run).and_then(|view| view["pending"]["why"].as_str().map(str::to_owned))
    };
    for _ in 0..3 {
        wait_for("the second to wait", || (why(&lab, &second)? == "directory").then_some(()));
        assert_eq!(why(&lab, &first).as_deref(), Some("working"));
        lab.restart();
    }
    lab.pass("here");
    wait_for("the end of the first", || lab.is_run_over(&first).then_some(()));
    // What it works from is not there any more: nobody else's work is built on, or taken back, unasked.
    wait_for("the second to stop", || (why(&lab, &second)? == "drift").then_some(()));
    assert_eq!(fs::read_to_string(lab.path("work/code.txt")).expect("a file"), "begun\ndone\n");
    lab.pipeline(&["resume", &second, "--on-drift", "accept"]).exits(0);
    assert_eq!(fs::read_to_string(lab.path("work/code.txt")).expect("a file"), "begun\ndone\nbegun\ndone\n");
    let at = |run: &str, kind: &str| -> Vec<String> {
        let of = lab.ledger(run).into_iter().filter(|record| record["kind"] == kind);
        of.filter_map(|record| record["ts"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(at(&first, "step.began").len(), 1, "it was never cut");
    assert!(at(&second, "step.began")[0] >= at(&first, "pipeline.completed")[0]);
}

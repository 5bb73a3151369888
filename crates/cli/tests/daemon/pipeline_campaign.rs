//! A campaign of deaths: a home in which the same run of a pipeline of three stages and two rounds is started again and again, somebody
//! dies at moments of it, and what came of it is compared with a run that nothing disturbed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rekindle_holder::client::inspect_all;
use rekindle_holder::tree::signal_exactly;
use rekindle_lab::{look_for, marked};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Lab, PATIENCE, wait_for};
use crate::pipeline_lab::kinds;

/// The steps of a run, in their order: the review sends the work back once.
pub(crate) const STEPS: [&str; 5] = ["implement-1", "review-1", "implement-2", "review-2", "verify-2"];

/// Appends to the ledger by the run's worker: each step begins, and ends together with what follows.
pub(crate) const APPENDS: usize = 2 * STEPS.len();

/// How often is looked at a run that is to die at a place.
const LOOK: Duration = Duration::from_millis(2);

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Daemon,
    Holder,
    Agent,
    Everything,
}

pub(crate) const VICTIMS: [Victim; 4] = [Victim::Daemon, Victim::Holder, Victim::Agent, Victim::Everything];

/// When somebody dies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// The daemon is about to add to the ledger for the n-th time.
    Before(usize),
    /// It has just done so.
    Behind(usize),
    /// This step has begun, and somebody works at it.
    In(&'static str),
    /// So long after somebody was first seen to work at this step, or at once where that is over before.
    Within(&'static str, Duration),
}

/// A death.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Death(pub(crate) Victim, pub(crate) Moment);

/// What a run comes to that nothing disturbs.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// The key of each step.
    keys: Vec<String>,
    /// What each step came to.
    outcomes: Vec<String>,
    /// The tree that each step left.
    trees: Vec<String>,
    files: BTreeMap<String, String>,
}

/// A home in which the same run is started again and again, each time with the same files.
pub(crate) struct Campaign {
    lab: Lab,
    config: String,
    calm: Outcome,
    /// How long a run takes that nothing disturbs.
    pub(crate) took: Duration,
    /// Steps that were cut, in all runs.
    pub(crate) cuts: usize,
    /// Who died while somebody worked at which step, and how often.
    pub(crate) within: BTreeMap<(Victim, String), usize>,
}

impl Campaign {
    /// Makes a home, and goes through the run of a project's file undisturbed. The steps of it are [`STEPS`], and each of them adds its
    /// name to the file of effects.
    pub(crate) fn new(config: impl FnOnce(&Lab) -> String) -> Campaign {
        let lab = Lab::new();
        let config = config(&lab);
        let calm =
            Outcome { keys: Vec::new(), outcomes: Vec::new(), trees: Vec::new(), files: BTreeMap::new() };
        let (took, within) = (Duration::ZERO, BTreeMap::new());
        let mut campaign = Campaign { lab, config, calm, took, cuts: 0, within };
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
        // Agents that keep answers have none of the run before.
        for file in ["effects", "answers"] {
            let _ = fs::remove_file(self.lab.path(file));
        }
        self.lab.start_run(&self.config, &json!({"on_cut": "restore"}))
    }

    /// Goes through a run with these deaths, and judges it; returns how many of them came while somebody worked at a step.
    pub(crate) fn play(&mut self, deaths: &[Death]) -> usize {
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
            if let Some(step) = self.worked_at(&run) {
                *self.within.entry((death.0, step)).or_default() += 1;
                within += 1;
            }
            self.strike(death.0);
        }
        self.see_through(&run);
        self.judge(&run, &what);
        within
    }

    /// Has everything die in a step, and the next daemon at a place on its way back; tells whether it came by that.
    pub(crate) fn play_return(&mut self, step: &'static str, place: &str) -> bool {
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
        let mut seen = None;
        let found = look_for(PATIENCE, LOOK, || {
            let is_time = match moment {
                Moment::Before(_) | Moment::Behind(_) => self.lab.dead(),
                // What it does beside its files it does first. Before that an agent may not have been told anything, and then nothing is cut.
                Moment::In(step) => self.effects().contains_key(step) && self.is_worked_at(),
                Moment::Within(step, time) => {
                    if seen.is_none() && self.worked_at(run).is_some_and(|at| position(&at) >= position(step))
                    {
                        seen = Some(Instant::now());
                    }
                    seen.is_some_and(|seen| seen.elapsed() >= time)
                }
            };
            (is_time || self.tend(run)).then_some(())
        });
        found.unwrap_or_else(|| panic!("{moment:?} does not come: {:#?}", self.lab.try_show_run(run)));
    }

    /// Returns the step at which somebody works, if anybody does.
    fn worked_at(&self, run: &str) -> Option<String> {
        let view = self.lab.try_show_run(run)?;
        let step = view["pending"]["step_id"].as_str()?;
        self.is_worked_at().then(|| step.to_owned())
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
        let gone = look_for(PATIENCE, LOOK, || nobody().then_some(()));
        gone.unwrap_or_else(|| panic!("somebody is left: {:?}, {}", self.lab.living_agents(), told()));
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
        Outcome { keys: text("key"), outcomes: text("outcome"), trees: text("to"), files: files.collect() }
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
        Moment::In(_) | Moment::Within(..) => panic!("{moment:?} is no place"),
    }
}

/// Returns which step of a run this is.
fn position(step: &str) -> Option<usize> {
    STEPS.iter().position(|one| *one == step)
}

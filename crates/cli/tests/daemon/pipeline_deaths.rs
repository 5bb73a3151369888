//! A pipeline of three stages and two rounds, of which the daemon, the holder, the agent, or everything at once is killed at every append
//! to the ledger and at random moments. What was finished is never done again, what was cut is done again from the very files of before,
//! and the ledger says which of both it was. The same for agents that take commands in JSON: one that keeps no answers, one that does,
//! and one that answers again and again.
//!
//! `REKINDLE_TEST_LONG=1` runs all of it, `REKINDLE_SEED=n` begins with other moments.

use std::time::{Duration, Instant};

use rekindle_seeded::Rng;

use crate::lab::Lab;
use crate::pipeline_campaign::{APPENDS, Campaign, Death, Moment, STEPS, VICTIMS, Victim};

/// Deaths while somebody works at a step that the long form of a campaign comes to.
const WITHIN: usize = 200;

/// How many random moments one run goes through.
const PER_RUN: usize = 4;

/// More places than a daemon comes by on its way to the end of a run.
const MOST_PLACES: usize = 300;

fn is_long() -> bool {
    std::env::var_os("REKINDLE_TEST_LONG").is_some()
}

/// What the review says: what it finds in the first round is what the second one comes to.
const REVIEWS: &str = "{{review.findings}}\noutcome changes_requested outcome approved it is fine";

/// Returns the project's file for agents that speak ACP, and a check. What an agent does takes a while, so that it can be cut in the
/// middle of it.
fn acp(lab: &Lab) -> String {
    let effects = lab.path("effects").display().to_string();
    format!(
        "version = 1
[agents.demo]
command = {:?}
profile = \"acp\"
{}
[[pipelines.default.stages]]
name = \"verify\"
check = [\"sh\", \"-c\", \"echo verify-2 >> {effects}; sleep 0.03; grep -q 'round 2' code.txt\"]
",
        lab.demo(&[]),
        work_and_review(&effects, ["demo", "demo"]),
    )
}

/// Flags of the agents that take commands: one that keeps no answers, one that does, one that answers again and again.
fn ndjson_agents(lab: &Lab) -> [(&'static str, Vec<String>); 3] {
    let answers = lab.path("answers").display().to_string();
    [
        ("forgets", lab.demo(&["--ndjson", "--heartbeat", "10ms"])),
        ("keeps", lab.demo(&["--ndjson", "--answers", &answers])),
        ("repeats", lab.demo(&["--ndjson", "--twice"])),
    ]
}

/// Returns the project's file for agents that take commands; the first of them works, and the next ones look at that.
fn ndjson(lab: &Lab, first: usize) -> String {
    let effects = lab.path("effects").display().to_string();
    let mut agents = ndjson_agents(lab);
    agents.rotate_left(first);
    let mut config = String::from("version = 1\n");
    for (name, command) in &agents {
        config.push_str(&format!("[agents.{name}]\ncommand = {command:?}\nprofile = \"ndjson\"\n"));
    }
    let [(works, _), (reviews, _), (verifies, _)] = agents;
    config.push_str(&work_and_review(&effects, [works, reviews]));
    config.push_str(&format!(
        "[[pipelines.default.stages]]
name = \"verify\"
agent = \"{verifies}\"
writes = false
prompt = '''
run echo verify-{{{{round}}}} >> {effects}
sleep 30ms
artifact code.txt'''
"
    ));
    config
}

/// Returns the task and the first two stages of a project's file, and who works at them. The longer they do, the more deaths find them in
/// the middle of it and not on their way there.
fn work_and_review(effects: &str, [works, reviews]: [&str; 2]) -> String {
    let pause = if is_long() { "50ms" } else { "15ms" };
    format!(
        "[[tasks]]
id = \"T-1\"
goal = \"append code.txt\"
[pipelines.default]
max_rounds = 2
[[pipelines.default.stages]]
name = \"implement\"
agent = \"{works}\"
prompt = '''
run echo implement-{{{{round}}}} >> {effects}
{{{{task.goal}}}} round {{{{round}}}}
sleep {pause}
words 10 every 2ms
append notes.txt round {{{{round}}}}
sleep {pause}'''
[[pipelines.default.stages]]
name = \"review\"
agent = \"{reviews}\"
writes = false
outcomes = {{ approved = \"next\", changes_requested = \"implement\" }}
prompt = '''
run echo review-{{{{round}}}} >> {effects}
sleep {pause}
words 10 every 2ms
{REVIEWS}'''
"
    )
}

/// Has somebody die between any two appends to the ledger, and in every step; in the short form at so many of these moments.
fn die_at_boundaries(campaign: &mut Campaign, short: usize) {
    let places = (1..=APPENDS).flat_map(|nth| [Moment::Before(nth), Moment::Behind(nth)]);
    let moments = places.chain(STEPS.map(Moment::In));
    let all: Vec<Death> = moments.flat_map(|at| VICTIMS.map(|dies| Death(dies, at))).collect();
    // An odd number, so that each of the four victims has its turn.
    let every = if is_long() { 1 } else { (all.len() / short) | 1 };
    for death in all.into_iter().skip(every / 2).step_by(every) {
        campaign.play(&[death]);
    }
    assert!(campaign.cuts > 0);
}

/// Runs in which nobody need have been met at work: of a few, all may be drawn in vain on a busy machine.
const SPARE_RUNS: usize = 8;

/// Has somebody die at random moments until so many of them came while somebody worked at a step.
fn die_at_random(campaign: &mut Campaign, wanted: usize) {
    let seed = std::env::var("REKINDLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (mut rng, began) = (Rng::new(seed), Instant::now());
    let (mut within, mut runs) = (0, 0);
    while within < wanted {
        // Only those are counted that find somebody at work: with less than one a run the moments are drawn in vain.
        assert!(runs < wanted + SPARE_RUNS, "{within} of {wanted} deaths within steps in {runs} runs");
        // About as long as a step takes, and several in some of them.
        let most = u64::try_from(campaign.took.as_micros()).expect("no such time") / STEPS.len() as u64;
        let mut steps = [0; PER_RUN].map(|_| rng.index(STEPS.len()));
        steps.sort_unstable();
        let deaths = steps.map(|step| {
            let moment = Moment::Within(STEPS[step], Duration::from_micros(rng.below(most)));
            Death(*rng.pick(&VICTIMS), moment)
        });
        let before = campaign.cuts;
        eprintln!("seed {seed}, run {runs}: {deaths:?}");
        let met = campaign.play(&deaths);
        (runs, within) = (runs + 1, within + met);
        eprintln!("{met} of them within steps ({within}), {} steps cut", campaign.cuts - before);
    }
    let (cuts, took) = (campaign.cuts, began.elapsed().as_secs());
    eprintln!(
        "seed {seed}: {within} deaths within steps, {cuts} cuts, {runs} runs, {took} s: {:#?}",
        campaign.within
    );
    if is_long() {
        assert!(cuts > 0);
        // Whoever may die did so, and in every step.
        let is_met = |met: &dyn Fn(&(Victim, String)) -> bool| campaign.within.keys().any(met);
        assert!(VICTIMS.iter().all(|victim| is_met(&|(dies, _)| dies == victim)));
        assert!(STEPS.iter().all(|step| is_met(&|(_, within)| within == step)));
    }
}

/// I4, I9, I11: between any two appends to the ledger, and in every step.
#[test]
fn whoever_dies_at_a_boundary_of_the_ledger_no_finished_step_is_done_again() {
    die_at_boundaries(&mut Campaign::new(acp), 6);
}

/// I4, I9, I11: whoever dies on the way back, in the middle of a cut that is recorded or of files that are restored, is followed by one
/// that goes on from there.
#[test]
fn a_daemon_that_dies_on_the_way_back_leaves_it_to_the_next() {
    let mut campaign = Campaign::new(acp);
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
    die_at_random(&mut Campaign::new(acp), if is_long() { WITHIN } else { 6 });
}

/// I4, I9, I11: all of it for agents that take commands; in the long form each of them has each part.
#[test]
fn whoever_dies_no_command_that_was_answered_is_sent_again() {
    for first in if is_long() { 0..3 } else { 0..1 } {
        let mut campaign = Campaign::new(|lab| ndjson(lab, first));
        die_at_boundaries(&mut campaign, 3);
        die_at_random(&mut campaign, if is_long() { WITHIN / 3 } else { 2 });
    }
}

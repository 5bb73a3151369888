//! What holds for every ledger with any evidence, and for runs through a world in which agents and we die at any moment.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::next_step::calm;
use super::script::{Ledger, id, intention, tree};
use crate::blob_id::BlobId;
use crate::event::{BudgetPart, OnDrift, StepCut, StepFinished, StepInterrupted};
use crate::id::{RunId, SessionId, StepId};
use crate::pipeline::evidence::{
    AgentFound, CacheFound, Continuation, Evidence, RunFound, SignsOfLife, TreeFound, Verdict,
};
use crate::pipeline::next_step::{NextStep, Rest, Waits, next_step};
use crate::pipeline::{Following, RunStatus, compose, outcome};

/// Whatever may stand in a ledger; where it cannot follow, it is left out.
const RECORDS: [&str; 24] = [
    "began",
    "began",
    "began",
    "remind",
    "finish completed",
    "finish completed",
    "finish approved",
    "finish changes_requested",
    "finish trivial",
    "finish failed",
    "cached completed",
    "cached approved",
    "interrupt agent_gone",
    "interrupt cancelled",
    "interrupt try_later",
    "drift stop found=9",
    "drift accept found=9",
    "drift restore found=9",
    "intend",
    "complete",
    "fail",
    "abort",
    "reopen",
    "reopen",
];

prop_compose! {
    fn ledgers()(start in prop::sample::select(vec!["start", "start-ask", "start-restore", "start-continue"]),
                 picks in prop::collection::vec((0..RECORDS.len(), any::<bool>()), 0..60)) -> Ledger {
        let mut ledger = Ledger::of(start);
        for (pick, goes_on) in picks {
            let record = RECORDS[pick];
            // Mostly a run goes on as it is meant to.
            if let Following::Step(next) = ledger.state.following() && goes_on {
                let _ = ledger.push(&format!("intend {next}"));
            }
            if record == "intend" {
                if ledger.state.current_step().is_some() {
                    let _ = ledger.push(&format!("intend {} from=9", ledger.step().id));
                }
            } else {
                let _ = ledger.push(record);
            }
        }
        ledger
    }
}

fn trees() -> impl Strategy<Value = BlobId> {
    prop::sample::select(vec![tree(1), tree(2), tree(3), tree(9)])
}

prop_compose! {
    fn evidence()(
        agent in prop::sample::select(vec![AgentFound::Followed, AgentFound::Lives, AgentFound::Silent, AgentFound::Unread, AgentFound::Gone, AgentFound::Gone]),
        run in prop::sample::select(vec![
            RunFound::Open, RunFound::WaitsForPerson, RunFound::Completed(Verdict::Clear), RunFound::Completed(Verdict::Unclear),
            RunFound::Completed(Verdict::Lost), RunFound::Failed, RunFound::EndedByRule, RunFound::Cancelled, RunFound::Interrupted,
            RunFound::TryLater, RunFound::NotLaunched,
        ]),
        found in prop_oneof![
            1 => Just(TreeFound::NotCaptured), 1 => Just(TreeFound::Unreadable),
            4 => (trees(), 0..2u64, 0..2u64).prop_map(|(tree, after_cut, unknown_author)| TreeFound::Captured { tree, after_cut, unknown_author }),
        ],
        restoring in prop::option::of(trees()),
        cache in prop_oneof![3 => Just(CacheFound::Miss), 1 => trees().prop_map(CacheFound::Hit), 1 => Just(CacheFound::BeingMade)],
        continuation in prop::sample::select(vec![Continuation::None, Continuation::Told, Continuation::Native]),
        word in prop::option::of(prop::sample::select(OnDrift::ALL.to_vec())),
        (is_held_elsewhere, is_overdue, has_manifest, is_directory_free, has_environment) in any::<(bool, bool, bool, bool, bool)>(),
        (has_forgotten, is_left) in any::<(bool, bool)>(),
        signs in prop::sample::select(vec![SignsOfLife::Heard, SignsOfLife::Missing, SignsOfLife::Stalled]),
        (has_place, is_spent) in any::<(bool, bool)>(),
        retry in 0..3u64,
    ) -> Evidence {
        Evidence {
            is_held_elsewhere: is_held_elsewhere && is_overdue, agent, run, has_forgotten, is_overdue, signs, tree: found, restoring,
            has_manifest, cache, continuation, is_directory_free, has_environment, has_place: has_place || is_overdue,
            spent: (is_spent && is_overdue).then_some(BudgetPart::Cost), retry_in: Duration::from_secs(retry / 2), is_left, word,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// I11: a finished step never runs again.
    #[test]
    fn nothing_finished_is_done_again_and_no_file_is_touched_beside_an_agent(ledger in ledgers(), about in evidence()) {
        let state = &ledger.state;
        let step = next_step(state, &about);
        let current = state.current_step();
        let acts = matches!(
            step,
            NextStep::Begin | NextStep::RestoreAndRetry(_) | NextStep::ContinueWithContext | NextStep::UseCached(_)
        );
        if acts {
            prop_assert_eq!(state.status, RunStatus::Running);
            let current = current.expect("there is something to be done");
            prop_assert!(current.open_attempt().is_none(), "nobody works at it");
            prop_assert_eq!(about.agent, AgentFound::Gone);
            prop_assert!(about.is_directory_free && !about.is_held_elsewhere);
            prop_assert!(matches!(step, NextStep::UseCached(_)) || about.has_place && about.spent.is_none());
        }
        match &step {
            NextStep::Intend(next) => prop_assert!(state.steps().all(|done| done.id != *next && done.result.is_some())),
            NextStep::Complete => prop_assert_eq!(state.following(), Following::Complete),
            NextStep::Finish(_) | NextStep::Interrupt(_) => {
                prop_assert!(current.is_some_and(|step| step.open_attempt().is_some()));
                prop_assert_eq!(about.agent, AgentFound::Gone);
            }
            NextStep::Decide(_) => prop_assert!(current.is_some_and(|step| step.open_attempt().is_none())),
            // What others may have changed goes only if a person said so, or it is on record.
            NextStep::RestoreAndRetry(wanted) => {
                let current = current.expect("a step");
                let TreeFound::Captured { tree, after_cut, unknown_author } = about.tree else {
                    return Err(TestCaseError::fail("nobody has looked"));
                };
                let is_clean = current.cut().is_some() && after_cut == 0 && unknown_author == 0;
                let is_said = current.drift.is_some_and(|drift| drift.decision == OnDrift::Restore && drift.found == tree);
                prop_assert!(tree == *wanted || is_clean || is_said || about.restoring == Some(*wanted));
                prop_assert!(about.has_manifest);
            }
            _ => {}
        }
        let (stages, rounds): (Vec<_>, BTreeSet<_>) = state.steps().map(|step| (step.id.clone(), step.id.clone())).unzip();
        prop_assert_eq!(stages.len(), rounds.len(), "each stage has one step in a round");
    }

    #[test]
    fn a_run_comes_to_an_end_whatever_dies_on_the_way(start in 0..4usize, dice in prop::collection::vec(any::<u8>(), 0..120)) {
        let start = ["start", "start-ask", "start-restore", "start-continue"][start];
        let mut world = World::new(Ledger::of(start), dice);
        for _ in 0..2_000 {
            if world.ledger.state.status != RunStatus::Running {
                break;
            }
            world.turn();
        }
        let state = &world.ledger.state;
        prop_assert!(matches!(state.status, RunStatus::Completed | RunStatus::Failed), "{:?}", state);
        prop_assert_eq!(state.expected_tree(), Some(world.tree), "the directory has what the last step left");
        let about = world.evidence();
        prop_assert!(matches!(next_step(state, &about), NextStep::Rest(Rest::Completed | Rest::Failed)));
    }
}

/// A directory, an agent and its session, around a run. While there are dice left, anything may happen.
struct World {
    ledger: Ledger,
    dice: std::vec::IntoIter<u8>,
    trees: u32,
    tree: BlobId,
    restoring: Option<BlobId>,
    agent: AgentFound,
    run: RunFound,
    is_captured: bool,
    after_cut: u64,
    word: Option<OnDrift>,
    cache: CacheFound,
}

impl World {
    fn new(ledger: Ledger, dice: Vec<u8>) -> World {
        World {
            ledger,
            dice: dice.into_iter(),
            trees: 0,
            tree: tree(1),
            restoring: None,
            agent: AgentFound::Gone,
            run: RunFound::Open,
            is_captured: false,
            after_cut: 0,
            word: None,
            cache: CacheFound::Miss,
        }
    }

    fn evidence(&self) -> Evidence {
        let found = TreeFound::Captured { tree: self.tree, after_cut: self.after_cut, unknown_author: 0 };
        Evidence {
            agent: self.agent,
            run: self.run,
            tree: if self.is_captured { found } else { TreeFound::NotCaptured },
            restoring: self.restoring,
            cache: self.cache,
            continuation: Continuation::Native,
            word: self.word,
            ..calm()
        }
    }

    fn roll(&mut self) -> u8 {
        self.dice.next().unwrap_or(0)
    }

    fn other_tree(&mut self) -> BlobId {
        self.trees += 1;
        BlobId::of(&self.trees.to_le_bytes())
    }

    fn take(&mut self, records: &[crate::line::Draft]) {
        for record in records {
            self.ledger.take(&record.event).expect("what is to be done next may be recorded");
        }
    }

    /// We are asked once, and do what we say, unless we die on the way.
    fn turn(&mut self) {
        match self.roll() % 8 {
            // We die, and start again knowing nothing but what is recorded.
            1 => {
                if self.agent == AgentFound::Followed {
                    let dies_too = self.roll() % 2 == 1;
                    self.agent = if dies_too { AgentFound::Unread } else { AgentFound::Lives };
                }
                (self.is_captured, self.word) = (false, None);
            }
            // Somebody edits a file.
            2 if self.agent == AgentFound::Gone => {
                self.tree = self.other_tree();
                self.is_captured = false;
                self.after_cut += 1;
            }
            3 => self.cache = CacheFound::BeingMade,
            4 => self.cache = CacheFound::Hit(self.ledger.state.expected_tree().expect("it was started")),
            _ => {}
        }
        let step = next_step(&self.ledger.state, &self.evidence());
        self.carry_out(&step);
    }

    fn carry_out(&mut self, step: &NextStep) {
        let state = self.ledger.state.clone();
        let from = state.expected_tree().expect("it was started");
        let intend = |id: &StepId| Ok(intention(id, from));
        match step {
            NextStep::Intend(_) | NextStep::Complete | NextStep::Fail(_) => {
                let records = compose::follow(&state, |_, id| intend(id)).expect("it follows");
                self.take(&records);
            }
            NextStep::Begin | NextStep::ContinueWithContext => self.begin(),
            NextStep::RestoreAndRetry(wanted) => {
                if self.restore(*wanted) {
                    self.begin();
                }
            }
            NextStep::UseCached(to) => {
                if self.restore(*to) {
                    self.finish(true);
                }
            }
            NextStep::Await(Waits::Agent | Waits::Heartbeat | Waits::Stalled) => self.work(),
            NextStep::Await(Waits::Person) => self.run = RunFound::Open,
            NextStep::Await(Waits::Silence) => self.agent = AgentFound::Unread,
            NextStep::Await(Waits::SameKey) => self.cache = CacheFound::Miss,
            NextStep::Await(Waits::Directory | Waits::Place | Waits::Time(_)) => {}
            NextStep::Adopt => self.agent = AgentFound::Followed,
            NextStep::Harvest => {
                self.agent = AgentFound::Gone;
                if matches!(self.run, RunFound::Open | RunFound::WaitsForPerson) {
                    self.run = RunFound::Interrupted;
                }
            }
            NextStep::EndAgent => {
                self.agent = AgentFound::Gone;
                if self.run == RunFound::Open {
                    self.run = RunFound::EndedByRule;
                }
            }
            NextStep::Remind => {
                let record = compose::remind(self.ledger.step(), RunId::from_ulid(0)).expect("it goes on");
                self.take(&[record]);
                (self.agent, self.run) = (AgentFound::Followed, RunFound::Open);
            }
            NextStep::Capture => self.is_captured = true,
            NextStep::Interrupt(reason) => self.interrupt(*reason),
            NextStep::Decide(decision) => {
                let text = format!("drift {} found=0", decision.what.as_str());
                let crate::event::Event::PipelineDrift(mut drift) = self.ledger.event(&text) else {
                    unreachable!()
                };
                drift.found = self.tree;
                let anew = decision.intend_anew.then(|| intention(&self.ledger.step().id, self.tree));
                self.take(&compose::decide_drift(drift, anew));
            }
            NextStep::Finish(_) => self.finish(false),
            // Somebody looks, and says that it is to go on.
            NextStep::Rest(
                Rest::Drift | Rest::Asks | Rest::Cancelled | Rest::TooManyAttempts | Rest::NotLaunched,
            ) => {
                self.word =
                    Some(if self.roll().is_multiple_of(2) { OnDrift::Restore } else { OnDrift::Accept });
            }
            NextStep::Rest(why) => panic!("{why:?} is not to be expected here"),
        }
    }

    /// Returns false if we die before it is done.
    fn restore(&mut self, wanted: BlobId) -> bool {
        assert_eq!(
            self.agent,
            AgentFound::Gone,
            "the old tree of processes is gone before files are touched"
        );
        if self.roll() % 4 == 1 {
            (self.tree, self.restoring) = (self.other_tree(), Some(wanted));
            (self.is_captured, self.word) = (false, None);
            return false;
        }
        (self.tree, self.restoring, self.after_cut) = (wanted, None, 0);
        self.roll() % 4 != 1
    }

    fn begin(&mut self) {
        let step = self.ledger.step();
        let record =
            compose::begin(step, SessionId::from_ulid(u128::from(step.attempts)), RunId::from_ulid(0));
        self.take(&[record]);
        (self.agent, self.run, self.is_captured) = (AgentFound::Followed, RunFound::Open, false);
        (self.word, self.cache) = (None, CacheFound::Miss);
    }

    /// The agent works for a while.
    fn work(&mut self) {
        let writes =
            self.ledger.state.stage(&self.ledger.step().id.stage).is_some_and(|(_, stage)| stage.writes);
        if writes {
            self.tree = self.other_tree();
        }
        match self.roll() % 10 {
            1 => self.agent = AgentFound::Silent,
            2 => self.agent = AgentFound::Unread,
            3 => self.run = RunFound::WaitsForPerson,
            4 => self.run = RunFound::Completed(Verdict::Unclear),
            5 => self.run = RunFound::Cancelled,
            6 => self.run = RunFound::TryLater,
            7 => self.run = RunFound::NotLaunched,
            _ => self.run = RunFound::Completed(Verdict::Clear),
        }
    }

    fn interrupt(&mut self, reason: StepCut) {
        let step = self.ledger.step();
        let record = StepInterrupted {
            step_id: step.id.clone(),
            attempt: step.attempts,
            reason,
            detail: None,
            died_at: None,
            tree: Some(self.tree),
        };
        self.after_cut = 0;
        self.take(&[record.into()]);
    }

    fn finish(&mut self, cached: bool) {
        let step = self.ledger.step().clone();
        let stage = self.ledger.state.stage(&step.id.stage).expect("a stage").1.clone();
        let good = stage.outcomes.keys().next().map_or(outcome::COMPLETED, String::as_str).to_owned();
        let violates = !stage.writes && self.tree != step.from;
        let outcome = match self.roll() % 6 {
            _ if violates => outcome::FAILED.to_owned(),
            1 if !cached => outcome::FAILED.to_owned(),
            2 if stage.outcomes.len() > 1 => "changes_requested".to_owned(),
            _ => good,
        };
        let finished = StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: outcome.into(),
            payload: None,
            payload_blob: None,
            to: self.tree,
            files_touched: None,
            usage: None,
            cached,
            counts: crate::event::StepCounts::default(),
        };
        let to = self.tree;
        let records = compose::finish(&self.ledger.state, finished, |_, next| Ok(intention(next, to)));
        self.take(&records.expect("it may be recorded"));
        (self.is_captured, self.after_cut, self.word) = (false, 0, None);
        self.cache = CacheFound::Miss;
    }
}

#[test]
fn a_world_without_accidents_goes_straight_to_its_end() {
    let mut world = World::new(Ledger::of("start"), Vec::new());
    let mut turns = 0;
    while world.ledger.state.status == RunStatus::Running {
        world.turn();
        turns += 1;
        assert!(turns < 100, "{:?}", world.ledger.state);
    }
    let done: Vec<String> = world.ledger.state.steps().map(|step| step.id.to_string()).collect();
    assert_eq!(done, ["implement-1", "review-1", "verify-1", "document-1"]);
    assert_eq!(world.ledger.state.following(), Following::Complete);
    assert_eq!(world.ledger.step().id, id("document-1"));
}

//! Every row of the decision table, and what must never be decided.

use super::*;
use crate::blob_id::BlobId;
use crate::event::{Event, Restoring, SessionFilesRestored, SessionWorktreeAdded, Worktree};
use crate::session::tests::log::Log;
use crate::session::tests::script::{draft, worktree};

const STARTED: &str = "session.created; message.user; run.started msg=1";
const AGENT: &str = "agent.launching; agent.started";
const GONE: &str = "agent.exited";
const QUEUED: &str = "message.user msg=2 queued=true";

fn nobody() -> Circumstances {
    Circumstances {
        found: AgentPresence::Nobody,
        has_directory: true,
        has_environment: true,
        failed_launches: 0,
        load_in: Duration::ZERO,
        shortage: None,
        interrupted_for: Duration::from_secs(3600),
        takes_checkpoints: false,
    }
}

fn found(found: AgentPresence) -> Circumstances {
    Circumstances { found, ..nobody() }
}

fn state(appends: &[&str]) -> SessionState {
    Log::of(appends).replay.state
}

fn check(appends: &[&str], about: &Circumstances, expected: Step) {
    assert_eq!(next_step(&state(appends), about), expected, "{appends:?}, {about:?}");
}

// I4, I9: a living agent is taken over whatever it is doing, and one that does not answer is left alone.
#[test]
fn what_lives_is_adopted_and_what_is_silent_is_waited_for() {
    for appends in [&[STARTED, AGENT][..], &[STARTED, AGENT, "run.completed"], &[STARTED, AGENT, QUEUED]] {
        check(appends, &found(AgentPresence::Lives), Step::Adopt);
        let step = next_step(&state(appends), &found(AgentPresence::Silent));
        assert!(matches!(step, Step::Wait(_)), "{appends:?}: {step:?}");
    }
    check(&[STARTED, AGENT, "run.completed", "session.closed"], &found(AgentPresence::Lives), Step::Dismiss);
}

// I6: what ended is read before anything is decided about it.
#[test]
fn what_is_dead_is_read_and_what_vanished_is_buried() {
    check(&[STARTED, AGENT], &found(AgentPresence::Dead), Step::Harvest);
    let buried = |rebooted, reason| {
        check(&[STARTED, AGENT], &found(AgentPresence::Vanished { rebooted }), Step::Bury { reason });
    };
    buried(false, InterruptReason::ProcessRestart);
    buried(true, InterruptReason::MachineRestart);
}

// I5: a run is begun again only while its prompt has reached nobody.
#[test]
fn a_run_that_reached_nobody_goes_on_as_the_same_run() {
    check(&[STARTED], &nobody(), Step::Launch);
    check(&[STARTED, AGENT, GONE], &nobody(), Step::Launch);
    let often = Circumstances { failed_launches: MOST_LAUNCHES, ..nobody() };
    check(&[STARTED], &often, Step::Fail(Held::Budget));
    let nowhere = Circumstances { has_directory: false, ..nobody() };
    check(&[STARTED], &nowhere, Step::Fail(Held::NoDirectory));
}

#[test]
fn a_worktree_is_made_before_anything_is_launched_in_it() {
    let mut state = state(&[STARTED]);
    state.worktree = Some(Box::new(Worktree::wanted(worktree())));
    let nowhere = Circumstances { has_directory: false, takes_checkpoints: true, ..nobody() };
    assert_eq!(next_step(&state, &nowhere), Step::AddWorktree);
    state.run.as_mut().expect("a run").cancel = Some(CancelReason::User);
    assert_eq!(next_step(&state, &nowhere), Step::Cancel);
    state.run.as_mut().expect("a run").cancel = None;
    let added =
        Event::from(SessionWorktreeAdded { commit: "c0ffee".into(), carried: 0, copied: 0, setup: None });
    state.apply(state.last_seq + 1, state.created_at, &added).expect("made");
    assert_eq!(next_step(&state, &nobody()), Step::Launch);
    // One that somebody removed is not made again: what was in it would be missing.
    assert_eq!(next_step(&state, &nowhere), Step::Fail(Held::NoDirectory));
}

// I12: what runs out comes back; an acknowledged run waits for that and never fails for it.
#[test]
fn a_launch_for_which_something_ran_out_waits_and_is_never_given_up() {
    let short = |launches: u32, ago: u64| Circumstances {
        shortage: Some(Shortage { launches, ago: Duration::from_millis(ago) }),
        ..nobody()
    };
    for (launches, ago, left) in [
        (1, 0, 250),
        (1, 100, 150),
        (2, 0, 500),
        (3, 0, 1000),
        (5, 0, 4000),
        (6, 0, 5000),
        (1000, 4000, 1000),
    ] {
        check(&[STARTED], &short(launches, ago), Step::Wait(Duration::from_millis(left)));
        check(&[STARTED, AGENT, GONE], &short(launches, ago), Step::Wait(Duration::from_millis(left)));
    }
    for (launches, ago) in [(1, 250), (3, 1000), (u32::MAX, 5000)] {
        check(&[STARTED], &short(launches, ago), Step::Launch);
    }
    let cut = [STARTED, AGENT, "run.interrupted reason=agent_exit", GONE];
    check(&cut, &short(9, 0), Step::Continue { attempt: 2 });
    // What is decided by people, and what no room would change, does not wait for it.
    check(&[STARTED, "run.cancel_requested"], &short(1, 0), Step::Cancel);
    let nowhere = Circumstances { has_directory: false, ..short(1, 0) };
    check(&[STARTED], &nowhere, Step::Fail(Held::NoDirectory));
    let often = Circumstances { failed_launches: MOST_LAUNCHES, ..short(1, 0) };
    check(&[STARTED], &often, Step::Fail(Held::Budget));
    check(&[STARTED, AGENT], &Circumstances { found: AgentPresence::Lives, ..short(1, 0) }, Step::Adopt);
}

// I13: nothing follows a cancel but the end, and what was queued afterwards.
#[test]
fn a_cancel_wins() {
    check(&[STARTED, "run.cancel_requested"], &nobody(), Step::Cancel);
    let cut = "run.interrupted reason=agent_exit";
    check(&[STARTED, "run.cancel_requested", cut], &nobody(), Step::Rest(None));
    check(&[STARTED, cut, "run.cancel_requested"], &nobody(), Step::Rest(None));
}

#[test]
fn an_interruption_is_continued_twice_and_not_at_once() {
    let cut = &[STARTED, AGENT, "run.interrupted reason=agent_exit", GONE][..];
    check(cut, &nobody(), Step::Continue { attempt: 2 });
    let soon = Circumstances { interrupted_for: Duration::from_millis(50), ..nobody() };
    check(cut, &soon, Step::Wait(Duration::from_millis(200)));
    let mut third = state(cut);
    if let Some(run) = &mut third.run {
        run.attempt = 3;
    }
    assert_eq!(next_step(&third, &nobody()), Step::Rest(Some(Held::Budget)));
    let nowhere = Circumstances { has_directory: false, ..nobody() };
    check(cut, &nowhere, Step::Rest(Some(Held::NoDirectory)));
    let bare = Circumstances { has_environment: false, ..nobody() };
    check(cut, &bare, Step::Rest(Some(Held::NoEnvironment)));
}

#[test]
fn people_are_asked_when_they_want_to_be_and_when_effects_are_uncertain() {
    let cut = state(&[STARTED, AGENT, "run.interrupted reason=agent_exit", GONE]);
    for (policy, held) in [(ResumePolicy::Ask, Held::Asks), (ResumePolicy::Never, Held::Never)] {
        let mut state = cut.clone();
        state.options.resume = policy;
        assert_eq!(next_step(&state, &nobody()), Step::Rest(Some(held)));
    }
    let mut uncertain = cut;
    if let Some(cut) = &mut uncertain.recovery.interruption {
        cut.uncertain_turn = true;
    }
    assert_eq!(next_step(&uncertain, &nobody()), Step::Rest(Some(Held::Uncertain)));
    uncertain.options.on_uncertain = OnUncertain::Continue;
    assert_eq!(next_step(&uncertain, &nobody()), Step::Continue { attempt: 2 });
    check(&[STARTED, "run.interrupted reason=wait_timeout"], &nobody(), Step::Rest(Some(Held::TimedOut)));
}

#[test]
fn the_queue_waits_behind_a_continuation_and_moves_when_a_run_has_ended() {
    let message = state(&[STARTED, QUEUED]).queue[0];
    check(&[STARTED, QUEUED, "run.completed"], &nobody(), Step::Begin(message));
    check(&[STARTED, QUEUED, "run.interrupted reason=agent_exit"], &nobody(), Step::Continue { attempt: 2 });
    check(&[STARTED, "run.completed"], &nobody(), Step::Rest(None));
    check(&["session.created"], &nobody(), Step::Rest(None));
}

#[test]
fn a_deletion_is_finished_once_nobody_is_left() {
    check(&[STARTED, AGENT, "session.deleted"], &found(AgentPresence::Lives), Step::Dismiss);
    check(&[STARTED, AGENT, "session.deleted"], &found(AgentPresence::Dead), Step::Harvest);
    check(
        &[STARTED, AGENT, "session.deleted"],
        &found(AgentPresence::Vanished { rebooted: false }),
        Step::Remove,
    );
    check(&["session.created", "session.deleted"], &nobody(), Step::Remove);
}

const START: &str = "run.checkpoint at=start how=live";

fn with_checkpoints() -> Circumstances {
    Circumstances { takes_checkpoints: true, ..nobody() }
}

// I5: a prompt is given to nobody before its checkpoint is recorded, and nothing begins before that of the last run's end.
#[test]
fn checkpoints_come_before_what_would_change_the_directory() {
    let about = with_checkpoints();
    check(&[STARTED], &about, Step::Checkpoint);
    check(&[STARTED, START], &about, Step::Launch);
    check(&[STARTED, START, AGENT, GONE], &about, Step::Launch);
    check(&[STARTED, AGENT, GONE], &about, Step::Checkpoint);
    let completed = [STARTED, START, AGENT, "run.completed", GONE];
    check(&completed, &about, Step::Checkpoint);
    check(&[&completed[..], &["run.checkpoint at=end"]].concat(), &about, Step::Rest(None));
    check(&[&completed[..], &["session.closed"]].concat(), &about, Step::Checkpoint);
    check(&[STARTED, QUEUED, START, "run.completed"], &about, Step::Checkpoint);
    let cut = [STARTED, START, AGENT, "run.interrupted reason=agent_exit", GONE];
    check(&cut, &about, Step::Checkpoint);
    check(&[&cut[..], &["run.checkpoint at=end"]].concat(), &about, Step::Continue { attempt: 2 });
    check(&[&cut[..], &["run.started run=2 continues=1 attempt=2"]].concat(), &about, Step::Checkpoint);
    // A log without checkpoints gets none for what is over.
    check(&[STARTED, "run.completed"], &about, Step::Rest(None));
}

#[test]
fn nothing_that_ends_a_run_waits_for_its_checkpoint() {
    let about = with_checkpoints();
    check(&[STARTED, "run.cancel_requested"], &about, Step::Cancel);
    check(&[STARTED], &Circumstances { has_directory: false, ..about }, Step::Fail(Held::NoDirectory));
    check(&[STARTED], &Circumstances { failed_launches: MOST_LAUNCHES, ..about }, Step::Fail(Held::Budget));
    check(&[STARTED, START, "session.deleted"], &about, Step::Remove);
    // What waits for something else is captured when that is there: its directory may change until then.
    check(&[STARTED], &Circumstances { has_environment: false, ..about }, Step::Launch);
    let short = Shortage { launches: 1, ago: Duration::ZERO };
    check(
        &[STARTED],
        &Circumstances { shortage: Some(short), ..about },
        Step::Wait(Duration::from_millis(250)),
    );
    let load_in = Duration::from_secs(5);
    check(&[STARTED], &Circumstances { load_in, ..about }, Step::AwaitLoad(load_in));
    // A living agent is met first, and one that is dead is read.
    check(&[STARTED, AGENT], &Circumstances { found: AgentPresence::Lives, ..about }, Step::Adopt);
    check(&[STARTED, AGENT], &Circumstances { found: AgentPresence::Dead, ..about }, Step::Harvest);
}

// I13, I14: whoever comes finishes it, and nothing begins before.
#[test]
fn files_that_are_being_restored_come_before_every_run() {
    let mut state = state(&["session.created"]);
    state.restoring = Some(Restoring::new(BlobId::of(b"tree")));
    assert_eq!(next_step(&state, &nobody()), Step::RestoreFiles);
    let queued = draft(QUEUED);
    state.apply(2, state.created_at, &queued.event).expect("prompts queue meanwhile");
    assert_eq!(next_step(&state, &nobody()), Step::RestoreFiles);
    let started = draft("run.started msg=2");
    assert!(state.apply(3, state.created_at, &started.event).is_err(), "nothing begins");
    let tree = BlobId::of(b"tree");
    let (undo, files, error) = (None, Vec::new(), None);
    let done = Event::from(SessionFilesRestored { tree, undo, changed: 1, files, left: 0, error });
    state.apply(3, state.created_at, &done).expect("it ends");
    assert!(state.apply(4, state.created_at, &done).is_err(), "once");
    assert_eq!(next_step(&state, &nobody()), Step::Begin(state.queue[0]));
    state.restoring = Some(Restoring::new(tree));
    state.deleted = true;
    assert_eq!(next_step(&state, &nobody()), Step::Remove);
}

#[test]
fn what_a_run_left_is_captured_before_its_files_are_put_back() {
    let mut state = state(&[STARTED, "run.checkpoint at=start how=live", AGENT, "run.completed"]);
    state.restoring = Some(Restoring::new(BlobId::of(b"tree")));
    state.agent = None;
    let about = Circumstances { takes_checkpoints: true, ..nobody() };
    assert_eq!(next_step(&state, &about), Step::Checkpoint);
    assert_eq!(next_step(&state, &nobody()), Step::RestoreFiles, "where none are taken");
    let end = draft("run.checkpoint at=end how=live");
    state.apply(state.last_seq + 1, state.created_at, &end.event).expect("it is due");
    assert_eq!(next_step(&state, &about), Step::RestoreFiles);
}

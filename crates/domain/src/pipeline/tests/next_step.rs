//! Every row of the decision table.

use std::time::Duration;

use super::script::{Ledger, id, tree};
use crate::event::{BudgetPart, OnDrift, StepCut};
use crate::pipeline::FailReason;
use crate::pipeline::evidence::{
    AgentFound, CacheFound, Continuation, Evidence, RunFound, SignsOfLife, TreeFound, Verdict,
};
use crate::pipeline::next_step::{Decision, Finish, NextStep, Rest, Waits, next_step};
use crate::recovery::AgentPresence;

const INTENDED: &str = "start; intend implement-1;";
const BEGAN: &str = "start; intend implement-1; began;";
const CUT: &str = "start; intend implement-1; began; interrupt agent_gone;";
const CHECK_CUT: &str = "start-continue; intend implement-1; began; finish completed; intend review-1; began; finish approved; \
     intend verify-1; began; interrupt agent_gone;";

/// Nobody works, the files are what the first step begins with, and nothing is in the way.
pub(super) fn calm() -> Evidence {
    Evidence {
        is_held_elsewhere: false,
        agent: AgentFound::Gone,
        run: RunFound::Open,
        has_forgotten: false,
        is_overdue: false,
        signs: SignsOfLife::Heard,
        tree: captured(1, 0, 0),
        restoring: None,
        has_manifest: true,
        cache: CacheFound::Miss,
        continuation: Continuation::None,
        is_directory_free: true,
        has_environment: true,
        has_place: true,
        spent: None,
        retry_in: Duration::ZERO,
        is_left: false,
        word: None,
    }
}

fn captured(n: u8, after_cut: u64, unknown_author: u64) -> TreeFound {
    TreeFound::Captured { tree: tree(n), after_cut, unknown_author }
}

fn check(script: &str, about: &Evidence, expected: NextStep) {
    assert_eq!(next_step(&Ledger::of(script).state, about), expected, "{script} {about:?}");
}

fn rests(script: &str, about: &Evidence, why: Rest) {
    check(script, about, NextStep::Rest(why));
}

#[test]
fn a_run_that_has_ended_or_is_held_elsewhere_rests_whatever_is_found() {
    let failed = "start; intend implement-1; began; finish failed; fail";
    let document = "intend document-1; began; finish completed";
    let done = format!(
        "start; intend implement-1; began; finish completed; intend review-1; began; finish trivial; {document}; complete"
    );
    for agent in [AgentFound::Followed, AgentFound::Lives, AgentFound::Unread, AgentFound::Gone] {
        let about = Evidence { agent, word: Some(OnDrift::Restore), ..calm() };
        rests("", &about, Rest::NotStarted);
        rests(&done, &about, Rest::Completed);
        rests(failed, &about, Rest::Failed);
        rests(&format!("{BEGAN} abort"), &about, Rest::Aborted);
        for script in ["", &done, failed, BEGAN, CUT, INTENDED] {
            rests(script, &Evidence { is_held_elsewhere: true, ..about }, Rest::HeldElsewhere);
        }
    }
}

#[test]
fn a_run_that_came_from_elsewhere_rests_until_somebody_says_that_it_goes_on() {
    let said = Evidence { word: Some(OnDrift::Stop), ..calm() };
    let lost = Evidence { run: RunFound::Interrupted, ..calm() };
    for script in [INTENDED, BEGAN, CUT, "start;"] {
        rests(&format!("{script} import"), &lost, Rest::Imported);
    }
    check(&format!("{INTENDED} import"), &said, NextStep::Begin);
    // What an agent there was in the middle of is done again, with the files of its beginning, whatever the agent can do.
    let native = Evidence { continuation: Continuation::Native, ..said };
    for script in [BEGAN, CUT] {
        check(&format!("{script} import"), &native, NextStep::Begin);
        rests(&format!("{script} import"), &Evidence { tree: captured(9, 0, 0), ..lost }, Rest::Imported);
        let drifted = Evidence { tree: captured(9, 0, 0), ..native };
        let stop = Decision { what: OnDrift::Stop, intend_anew: false };
        check(&format!("{script} import"), &drifted, NextStep::Decide(stop));
    }
    // From there on it is a run like any other.
    check(&format!("{BEGAN} import; began;"), &calm(), NextStep::Harvest);
    let failed = "start; intend implement-1; began; finish failed; fail; import";
    rests(failed, &calm(), Rest::Failed);
    check(&format!("{failed}; reopen"), &calm(), NextStep::Intend(id("implement-2")));
}

/// That nothing is pending is no end: only the outcomes of all stages are one.
#[test]
fn what_follows_a_step_and_is_not_recorded_is_recorded() {
    check("start", &calm(), NextStep::Intend(id("implement-1")));
    let implemented = "start; intend implement-1; began; finish completed";
    check(implemented, &calm(), NextStep::Intend(id("review-1")));
    let reviewed = format!("{implemented}; intend review-1; began;");
    check(&format!("{reviewed} finish approved"), &calm(), NextStep::Intend(id("verify-1")));
    check(&format!("{reviewed} finish changes_requested"), &calm(), NextStep::Intend(id("implement-2")));
    let failed = FailReason::StepFailed(id("review-1"));
    check(&format!("{reviewed} finish failed"), &calm(), NextStep::Fail(failed));
    let last = format!("{reviewed} finish trivial; intend document-1; began; finish completed");
    check(&last, &calm(), NextStep::Complete);
    check(
        "start; intend implement-1; began; finish failed; fail; reopen",
        &calm(),
        NextStep::Intend(id("implement-2")),
    );
}

/// I4, I9: what lives is taken over, what is silent is waited for, what has ended is read first.
#[test]
fn an_agent_is_taken_over_or_read_before_anything_else() {
    for run in
        [RunFound::Open, RunFound::WaitsForPerson, RunFound::Completed(Verdict::Clear), RunFound::Interrupted]
    {
        for (agent, expected) in [
            (AgentFound::Lives, NextStep::Adopt),
            (AgentFound::Unread, NextStep::Harvest),
            (AgentFound::Silent, NextStep::Await(Waits::Silence)),
        ] {
            check(BEGAN, &Evidence { agent, run, is_overdue: true, ..calm() }, expected);
        }
    }
    let followed = Evidence { agent: AgentFound::Followed, ..calm() };
    check(BEGAN, &followed, NextStep::Await(Waits::Agent));
    check(BEGAN, &Evidence { is_overdue: true, ..followed }, NextStep::EndAgent);
    // I9: silence is shown, and ends nobody.
    let missing = Evidence { signs: SignsOfLife::Missing, ..followed };
    check(BEGAN, &missing, NextStep::Await(Waits::Heartbeat));
    let stalled = Evidence { signs: SignsOfLife::Stalled, ..followed };
    check(BEGAN, &stalled, NextStep::Await(Waits::Stalled));
    check(BEGAN, &Evidence { is_overdue: true, ..stalled }, NextStep::EndAgent);
    let asks = Evidence { run: RunFound::WaitsForPerson, is_overdue: true, ..followed };
    check(BEGAN, &asks, NextStep::Await(Waits::Person));
    // It is gone, and its session has not recorded that.
    check(BEGAN, &calm(), NextStep::Harvest);
    check(BEGAN, &Evidence { run: RunFound::WaitsForPerson, ..calm() }, NextStep::Harvest);
    for (presence, agent) in [
        (AgentPresence::Lives, AgentFound::Lives),
        (AgentPresence::Silent, AgentFound::Silent),
        (AgentPresence::Dead, AgentFound::Unread),
        (AgentPresence::Vanished { rebooted: true }, AgentFound::Unread),
        (AgentPresence::Nobody, AgentFound::Gone),
    ] {
        assert_eq!(AgentFound::from(presence), agent);
    }
}

#[test]
fn a_run_that_ended_is_finished_when_its_agent_is_gone_and_its_files_are_captured() {
    let finish = |run: RunFound, expected: Finish| {
        let followed = Evidence { agent: AgentFound::Followed, run, ..calm() };
        check(BEGAN, &followed, NextStep::EndAgent);
        let gone = Evidence { agent: AgentFound::Gone, tree: TreeFound::NotCaptured, ..followed };
        check(BEGAN, &gone, NextStep::Capture);
        rests(BEGAN, &Evidence { tree: TreeFound::Unreadable, ..gone }, Rest::NoDirectory);
        // Whatever the files are by now: they are what the step left.
        check(BEGAN, &Evidence { tree: captured(77, 3, 3), ..gone }, NextStep::Finish(expected));
    };
    finish(RunFound::Completed(Verdict::Clear), Finish::AsSaid);
    finish(RunFound::Failed, Finish::AsSaid);
    finish(RunFound::EndedByRule, Finish::EndedByRule);
    finish(RunFound::Completed(Verdict::Lost), Finish::Unclear);
}

#[test]
fn an_agent_that_names_no_outcome_is_reminded_once() {
    let unclear = Evidence { run: RunFound::Completed(Verdict::Unclear), tree: captured(5, 0, 0), ..calm() };
    for agent in [AgentFound::Followed, AgentFound::Gone] {
        check(BEGAN, &Evidence { agent, ..unclear }, NextStep::Remind);
    }
    rests(BEGAN, &Evidence { has_environment: false, ..unclear }, Rest::NoEnvironment);
    let reminded = format!("{BEGAN} remind");
    check(&reminded, &Evidence { agent: AgentFound::Followed, ..unclear }, NextStep::EndAgent);
    check(&reminded, &unclear, NextStep::Finish(Finish::Unclear));
    let clear = Evidence { run: RunFound::Completed(Verdict::Clear), ..unclear };
    check(&reminded, &clear, NextStep::Finish(Finish::AsSaid));
    // The next attempt may be reminded again.
    check(&format!("{reminded}; interrupt agent_gone; began"), &unclear, NextStep::Remind);
}

#[test]
fn a_run_that_was_cut_is_recorded_with_what_it_left() {
    for (run, cut) in [
        (RunFound::Interrupted, StepCut::AgentGone),
        (RunFound::Cancelled, StepCut::Cancelled),
        (RunFound::TryLater, StepCut::TryLater),
        (RunFound::NotLaunched, StepCut::NotLaunched),
    ] {
        let cut_now = Evidence { run, tree: TreeFound::NotCaptured, ..calm() };
        check(BEGAN, &cut_now, NextStep::Capture);
        check(BEGAN, &Evidence { tree: captured(9, 0, 4), ..cut_now }, NextStep::Interrupt(cut));
        check(BEGAN, &Evidence { tree: TreeFound::Unreadable, ..cut_now }, NextStep::Interrupt(cut));
        check(BEGAN, &Evidence { agent: AgentFound::Followed, ..cut_now }, NextStep::EndAgent);
    }
}

#[test]
fn a_step_begins_when_its_directory_is_free_and_as_expected() {
    check(INTENDED, &calm(), NextStep::Begin);
    check(INTENDED, &Evidence { tree: TreeFound::NotCaptured, ..calm() }, NextStep::Capture);
    rests(INTENDED, &Evidence { tree: TreeFound::Unreadable, ..calm() }, Rest::NoDirectory);
    rests(INTENDED, &Evidence { has_environment: false, ..calm() }, Rest::NoEnvironment);
    let busy = Evidence { is_directory_free: false, tree: TreeFound::NotCaptured, ..calm() };
    check(INTENDED, &busy, NextStep::Await(Waits::Directory));
    let later = Evidence { retry_in: Duration::from_secs(5), ..calm() };
    check(INTENDED, &later, NextStep::Await(Waits::Time(Duration::from_secs(5))));
    // Nothing is restored for an attempt that needs no restore, and nothing is missing then.
    check(INTENDED, &Evidence { has_manifest: false, ..calm() }, NextStep::Begin);
}

#[test]
fn files_that_are_not_as_expected_stop_a_run_until_somebody_decides() {
    let drifted = Evidence { tree: captured(9, 0, 0), ..calm() };
    let decide = |what, intend_anew| NextStep::Decide(Decision { what, intend_anew });
    check(INTENDED, &drifted, decide(OnDrift::Stop, false));
    let stopped = format!("{INTENDED} drift stop found=9;");
    rests(&stopped, &drifted, Rest::Drift);
    // Other files than those that the decision was about.
    check(&stopped, &Evidence { tree: captured(8, 0, 0), ..calm() }, decide(OnDrift::Stop, false));
    // Somebody put them back.
    check(&stopped, &calm(), NextStep::Begin);
    let said = |word| Evidence { word: Some(word), ..drifted };
    for script in [INTENDED, &stopped] {
        check(script, &said(OnDrift::Restore), decide(OnDrift::Restore, false));
        check(script, &said(OnDrift::Accept), decide(OnDrift::Accept, true));
        let lost = Evidence { has_manifest: false, ..said(OnDrift::Restore) };
        rests(script, &lost, Rest::ManifestMissing);
    }
    let restored = format!("{INTENDED} drift restore found=9;");
    check(&restored, &drifted, NextStep::RestoreAndRetry(tree(1)));
    rests(&restored, &Evidence { has_environment: false, ..drifted }, Rest::NoEnvironment);
    // We died on the way: what lies between two trees is nobody's change.
    let half = Evidence { tree: captured(55, 0, 0), restoring: Some(tree(1)), ..calm() };
    check(&restored, &half, NextStep::RestoreAndRetry(tree(1)));
    let other = Evidence { restoring: Some(tree(99)), ..half };
    check(&restored, &other, decide(OnDrift::Stop, false));
    check(&format!("{INTENDED} drift accept found=9; intend implement-1 from=9"), &drifted, NextStep::Begin);
}

#[test]
fn a_step_that_was_cut_is_restored_and_begun_again() {
    for script in [CUT, CUT.replace("start;", "start-restore;").as_str()] {
        check(script, &Evidence { tree: captured(9, 0, 0), ..calm() }, NextStep::RestoreAndRetry(tree(1)));
        check(script, &calm(), NextStep::RestoreAndRetry(tree(1)));
        rests(script, &Evidence { has_manifest: false, ..calm() }, Rest::ManifestMissing);
        let half = Evidence { tree: captured(55, 9, 9), restoring: Some(tree(1)), ..calm() };
        check(script, &half, NextStep::RestoreAndRetry(tree(1)));
    }
    // Told at its start to restore, it does so though its agent could go on.
    let native = Evidence { tree: captured(9, 0, 0), continuation: Continuation::Native, ..calm() };
    check(&CUT.replace("start;", "start-restore;"), &native, NextStep::RestoreAndRetry(tree(1)));
    check(CUT, &native, NextStep::ContinueWithContext);
}

/// Files that somebody else may have changed are never taken back unasked.
#[test]
fn a_cut_step_whose_files_others_may_have_changed_is_not_restored_by_itself() {
    for (after_cut, unknown) in [(1, 0), (0, 1), (2, 3)] {
        let about = Evidence { tree: captured(9, after_cut, unknown), ..calm() };
        let decide = |what, intend_anew| NextStep::Decide(Decision { what, intend_anew });
        check(CUT, &about, decide(OnDrift::Stop, false));
        rests(&format!("{CUT} drift stop found=9"), &about, Rest::Drift);
        check(CUT, &Evidence { word: Some(OnDrift::Accept), ..about }, decide(OnDrift::Accept, true));
        check(CUT, &Evidence { word: Some(OnDrift::Restore), ..about }, decide(OnDrift::Restore, false));
        check(&format!("{CUT} drift restore found=9"), &about, NextStep::RestoreAndRetry(tree(1)));
        let anew = format!("{CUT} drift accept found=9; intend implement-1 from=9");
        check(&anew, &about, NextStep::Begin);
    }
}

#[test]
fn a_cut_agent_that_goes_on_is_told_what_is_there_unless_somebody_surely_changed_it() {
    let native = Evidence { continuation: Continuation::Native, tree: captured(9, 0, 4), ..calm() };
    check(CUT, &native, NextStep::ContinueWithContext);
    rests(CUT, &Evidence { has_environment: false, ..native }, Rest::NoEnvironment);
    let told = Evidence { continuation: Continuation::Told, ..native };
    check(&CUT.replace("start;", "start-continue;"), &told, NextStep::ContinueWithContext);
    let restored = Evidence { tree: captured(9, 0, 0), ..told };
    check(CUT, &restored, NextStep::RestoreAndRetry(tree(1)));
    // A command can only be run again.
    let command = Evidence { tree: captured(9, 0, 0), continuation: Continuation::None, ..calm() };
    check(CHECK_CUT, &command, NextStep::RestoreAndRetry(tree(2)));
    let changed = Evidence { tree: captured(9, 1, 0), ..native };
    let decide = |what| NextStep::Decide(Decision { what, intend_anew: false });
    check(CUT, &changed, decide(OnDrift::Stop));
    rests(&format!("{CUT} drift stop found=9"), &changed, Rest::Drift);
    check(CUT, &Evidence { word: Some(OnDrift::Accept), ..changed }, decide(OnDrift::Accept));
    check(&format!("{CUT} drift accept found=9"), &changed, NextStep::ContinueWithContext);
    check(CUT, &Evidence { word: Some(OnDrift::Restore), ..changed }, decide(OnDrift::Restore));
    check(&format!("{CUT} drift restore found=9"), &changed, NextStep::RestoreAndRetry(tree(1)));
}

/// I13: what a person cancelled goes on only when a person says so; and nothing is tried for ever.
#[test]
fn a_cut_step_is_held_for_a_person_where_that_is_due() {
    let native = Evidence { continuation: Continuation::Native, ..calm() };
    let said = Evidence { word: Some(OnDrift::Stop), ..native };
    let ask = CUT.replace("start;", "start-ask;");
    let cancelled = CUT.replace("agent_gone", "cancelled");
    let often = format!("{CUT} began; interrupt agent_gone; began; interrupt try_later");
    for (script, why) in [(&ask, Rest::Asks), (&cancelled, Rest::Cancelled), (&often, Rest::TooManyAttempts)]
    {
        for about in [native, calm(), Evidence { tree: TreeFound::NotCaptured, ..calm() }] {
            rests(script, &about, why);
        }
        check(script, &said, NextStep::ContinueWithContext);
        let command = Evidence { continuation: Continuation::None, ..said };
        check(script, &command, NextStep::RestoreAndRetry(tree(1)));
    }
    check(&format!("{CUT} began; interrupt try_later"), &native, NextStep::ContinueWithContext);
    // What a cancel cut once does not hold what comes after it.
    check(&format!("{cancelled} began; interrupt agent_gone"), &native, NextStep::ContinueWithContext);
}

#[test]
fn a_check_that_cannot_be_started_is_tried_once_and_again_when_somebody_says_so() {
    let not_there = CHECK_CUT.replace("agent_gone", "not_launched");
    rests(&not_there, &calm(), Rest::NotLaunched);
    rests(&not_there, &Evidence { tree: TreeFound::NotCaptured, ..calm() }, Rest::NotLaunched);
    // What was cut for another reason begins again by itself, and so does an agent.
    check(CHECK_CUT, &calm(), NextStep::RestoreAndRetry(tree(2)));
    check(&CUT.replace("agent_gone", "not_launched"), &calm(), NextStep::RestoreAndRetry(tree(1)));
    let said = Evidence { word: Some(OnDrift::Stop), ..calm() };
    check(&not_there, &said, NextStep::RestoreAndRetry(tree(2)));
    rests(&format!("{not_there} began; interrupt not_launched"), &calm(), Rest::NotLaunched);
}

/// The old process tree is proven gone before any file is touched, whatever the ledger says.
#[test]
fn a_living_agent_of_a_cut_step_is_ended_first() {
    for script in [INTENDED, CUT] {
        for (agent, expected) in [
            (AgentFound::Followed, NextStep::EndAgent),
            (AgentFound::Lives, NextStep::EndAgent),
            (AgentFound::Silent, NextStep::Await(Waits::Silence)),
            (AgentFound::Unread, NextStep::Harvest),
        ] {
            check(script, &Evidence { agent, cache: CacheFound::Hit(tree(5)), ..calm() }, expected);
        }
    }
}

#[test]
fn a_result_that_was_there_before_is_used_where_no_foreign_change_is_lost() {
    let hit = Evidence { cache: CacheFound::Hit(tree(5)), ..calm() };
    for script in [INTENDED, CUT] {
        check(script, &hit, NextStep::UseCached(tree(5)));
        // Restored already, or on the way, when we died.
        check(script, &Evidence { tree: captured(5, 9, 9), ..hit }, NextStep::UseCached(tree(5)));
        let half = Evidence { tree: captured(55, 9, 9), restoring: Some(tree(5)), ..hit };
        check(script, &half, NextStep::UseCached(tree(5)));
        // Somebody said that their changes are taken back.
        let taken_back = format!("{script}; drift restore found=9");
        check(&taken_back, &Evidence { tree: captured(9, 1, 0), ..hit }, NextStep::UseCached(tree(5)));
        let stop = NextStep::Decide(Decision { what: OnDrift::Stop, intend_anew: false });
        check(script, &Evidence { tree: captured(9, 1, 0), ..hit }, stop);
        let made = Evidence { cache: CacheFound::BeingMade, ..calm() };
        check(script, &made, NextStep::Await(Waits::SameKey));
    }
    check(CUT, &Evidence { tree: captured(9, 0, 0), ..hit }, NextStep::UseCached(tree(5)));
    // Nobody works for it, so nothing that an agent needs is missed.
    check(INTENDED, &Evidence { has_environment: false, ..hit }, NextStep::UseCached(tree(5)));
}

/// Without another word an agent goes on only if it brings its session back: else its step is done again, with the files of before.
#[test]
fn an_agent_that_comes_back_without_its_session_is_ended_and_its_step_restored() {
    let continued = format!("{CUT} began session=1;");
    let forgot = Evidence { has_forgotten: true, tree: captured(9, 0, 0), ..calm() };
    for run in [RunFound::Open, RunFound::WaitsForPerson, RunFound::Completed(Verdict::Clear)] {
        let about = Evidence { run, ..forgot };
        check(&continued, &Evidence { agent: AgentFound::Followed, ..about }, NextStep::EndAgent);
        check(&continued, &Evidence { agent: AgentFound::Lives, ..about }, NextStep::Adopt);
        let told = continued.replace("start;", "start-continue;");
        let followed = Evidence { agent: AgentFound::Followed, ..about };
        assert_ne!(next_step(&Ledger::of(&told).state, &about), NextStep::Interrupt(StepCut::NotContinued));
        if run == RunFound::Open {
            check(&told, &followed, NextStep::Await(Waits::Agent));
            // Its session has not recorded its end.
            check(&continued, &about, NextStep::Harvest);
        } else if run != RunFound::WaitsForPerson {
            check(&continued, &about, NextStep::Interrupt(StepCut::NotContinued));
        }
    }
    let native = Evidence { continuation: Continuation::Native, tree: captured(9, 0, 0), ..calm() };
    let cut = format!("{continued} interrupt not_continued;");
    check(&cut, &native, NextStep::RestoreAndRetry(tree(1)));
    // It was no attempt, and is not made again, whatever cuts the next one.
    let again = format!("{cut} began; interrupt agent_gone;");
    check(&again, &native, NextStep::RestoreAndRetry(tree(1)));
    rests(&format!("{again} began; interrupt agent_gone"), &native, Rest::TooManyAttempts);
}

/// What an attempt left whose end nobody saw may be anybody's, also when the one that went on from there was seen to end.
#[test]
fn the_end_of_a_continuation_proves_nothing_of_what_was_there_before() {
    let unseen = |script: &str| Ledger::of(script).step().proven_death().is_none();
    assert!(!unseen(CUT));
    let lost = CUT.replace("agent_gone", "agent_gone unseen=1");
    assert!(unseen(&lost));
    assert!(unseen(&format!("{lost} began session=1; interrupt not_continued")));
    assert!(unseen(&format!(
        "{lost} began session=1; interrupt agent_gone; began session=1; interrupt agent_gone"
    )));
    // It began with files that were restored.
    assert!(!unseen(&format!("{lost} began session=2; interrupt agent_gone")));
    assert!(!unseen(&format!("{CUT} began session=1; interrupt agent_gone")));
}

/// A run that is to ask is taken over where its agent lives, and read where it has ended; nothing is begun without a word.
#[test]
fn a_run_that_was_left_goes_on_by_itself_only_if_it_may() {
    let left = Evidence { is_left: true, ..calm() };
    let ask = |script: &str| script.replace("start;", "start-resume-ask;");
    for script in [INTENDED, CUT] {
        assert_ne!(next_step(&Ledger::of(script).state, &left), NextStep::Rest(Rest::Left));
        rests(&ask(script), &left, Rest::Left);
        let said = Evidence { word: Some(OnDrift::Stop), ..left };
        assert_ne!(next_step(&Ledger::of(&ask(script)).state, &said), NextStep::Rest(Rest::Left));
        assert_ne!(next_step(&Ledger::of(&ask(script)).state, &calm()), NextStep::Rest(Rest::Left));
    }
    check(&ask(BEGAN), &Evidence { agent: AgentFound::Lives, ..left }, NextStep::Adopt);
    let ended = Evidence { run: RunFound::Completed(Verdict::Clear), ..left };
    check(&ask(BEGAN), &ended, NextStep::Finish(Finish::AsSaid));
    rests(&ask(BEGAN), &Evidence { run: RunFound::Completed(Verdict::Unclear), ..left }, Rest::Left);
    check(
        &ask("start; intend implement-1; began; finish completed"),
        &left,
        NextStep::Intend(id("review-1")),
    );
}

/// Nothing begins without a place, and who has none is where it was.
#[test]
fn what_has_no_place_waits_for_one() {
    let none = Evidence { has_place: false, ..calm() };
    check(INTENDED, &none, NextStep::Await(Waits::Place));
    let cut = Evidence { tree: captured(9, 0, 0), ..none };
    check(CUT, &cut, NextStep::Await(Waits::Place));
    check(CUT, &Evidence { continuation: Continuation::Native, ..cut }, NextStep::Await(Waits::Place));
    let unclear = Evidence { run: RunFound::Completed(Verdict::Unclear), tree: captured(5, 0, 0), ..none };
    check(BEGAN, &unclear, NextStep::Await(Waits::Place));
    // Who works goes on, and what needs nobody to work needs no place.
    check(BEGAN, &Evidence { agent: AgentFound::Followed, ..none }, NextStep::Await(Waits::Agent));
    check(INTENDED, &Evidence { cache: CacheFound::Hit(tree(5)), ..none }, NextStep::UseCached(tree(5)));
    // Before that nobody looks at the directory: somebody else may work there.
    for tree in [TreeFound::NotCaptured, TreeFound::Unreadable, captured(9, 1, 1)] {
        check(INTENDED, &Evidence { tree, ..none }, NextStep::Await(Waits::Place));
        rests(INTENDED, &Evidence { tree, has_environment: false, ..none }, Rest::NoEnvironment);
    }
    // What rests for its files waits for nothing until somebody says more.
    let stopped = format!("{INTENDED} drift stop found=9");
    rests(&stopped, &Evidence { tree: captured(9, 0, 0), ..none }, Rest::Drift);
    let said = Evidence { tree: TreeFound::NotCaptured, word: Some(OnDrift::Restore), ..none };
    check(&stopped, &said, NextStep::Await(Waits::Place));
}

/// What goes on is ended, and nothing else begins.
#[test]
fn a_run_whose_budget_is_used_up_fails() {
    let spent = Evidence { spent: Some(BudgetPart::Tokens), ..calm() };
    let fails = NextStep::Fail(FailReason::Budget(BudgetPart::Tokens));
    check(INTENDED, &spent, fails.clone());
    check(CUT, &spent, fails);
    for run in [RunFound::Open, RunFound::WaitsForPerson] {
        check(BEGAN, &Evidence { agent: AgentFound::Followed, run, ..spent }, NextStep::EndAgent);
        // Nothing is ended before it is known what became of it.
        check(BEGAN, &Evidence { run, ..spent }, NextStep::Harvest);
    }
    let ended = Evidence { run: RunFound::EndedByRule, ..spent };
    check(BEGAN, &ended, NextStep::Finish(Finish::EndedByRule));
    let done = "start; intend implement-1; began; finish completed; intend review-1; began; finish trivial; intend document-1; \
                began; finish completed";
    check(done, &spent, NextStep::Complete);
    check(INTENDED, &Evidence { cache: CacheFound::Hit(tree(5)), ..spent }, NextStep::UseCached(tree(5)));
    assert_eq!(FailReason::Budget(BudgetPart::WallTime).to_string(), "budget: wall time");
}

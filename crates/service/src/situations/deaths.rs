//! Agents that die: when, how often, with or without their holder, and what comes of it under each policy.

use rekindle_domain::event::{OnUncertain, ResumePolicy};
use rekindle_domain::recovery::Held;

use super::home::{Home, Setup};
use super::table::Table;

/// What the first run of a session begins with.
const BEGUN: &str = "message.user; run.started; agent.launching; input.queued prompt";

/// What its continuation is when all goes well.
const CONTINUED: &str =
    "agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";

/// What is done until the death, its records, and whether a tool call was open then.
const MOMENTS: [(&str, &str, bool); 5] = [
    ("", "", false),
    ("text", "message.agent; ", false),
    ("tool", "tool.call; ", true),
    ("tool done", "tool.call; tool.update; ", false),
    ("text tool done text tool", "message.agent; tool.call; tool.update; message.agent; tool.call; ", true),
];

const WAYS: [(&str, &str); 3] = [("die", "agent_exit"), ("exit", "agent_exit"), ("lost", "holder_lost")];

// I5, I6: a run that was cut ends once, with its reason, and its prompt is not said again: what goes on is a continuation, by
// itself only if nothing is uncertain.
#[test]
fn a_turn_that_is_cut_goes_on_as_its_policy_says() {
    let mut table = Table::default();
    for (words, records, uncertain) in MOMENTS {
        for (way, reason) in WAYS {
            for resume in [ResumePolicy::Auto, ResumePolicy::Ask, ResumePolicy::Never] {
                for on_uncertain in [OnUncertain::Ask, OnUncertain::Continue] {
                    let life: &'static str = format!("{words} {way}").leak();
                    let mut home = Home::with(Setup::policy(resume, on_uncertain), &[life]);
                    let tools = if uncertain { " tools" } else { "" };
                    let cut = format!("{BEGUN}; {records}run.interrupted {reason}{tools}; agent.exited");
                    let held = match resume {
                        ResumePolicy::Ask => Held::Asks.words(),
                        ResumePolicy::Never => Held::Never.words(),
                        ResumePolicy::Auto if uncertain && on_uncertain == OnUncertain::Ask => {
                            Held::Uncertain.words()
                        }
                        ResumePolicy::Auto => "",
                    };
                    let name = format!("{life}, {resume:?}, {on_uncertain:?}");
                    let status =
                        if reason == "holder_lost" { "interrupted_startup" } else { "interrupted_agent" };
                    table.row(&name, home.send(), &cut, status, held);
                    if held.is_empty() {
                        let news = format!("run.started attempt=2; {CONTINUED}");
                        table.row(&name, home.wait_long(), &news, "idle", "");
                    } else {
                        table.row(&name, home.wait_long(), "", status, held);
                        home.resume(&[]).expect("resumed");
                        let news = format!("run.started attempt=2; {CONTINUED}");
                        table.row(&name, &mut home, &news, "idle", "");
                    }
                }
            }
        }
    }
    table.done(246);
}

// I14: a continuation that is cut too is continued once more; the third time is a person's.
#[test]
fn the_budget_of_continuations_is_two() {
    let mut table = Table::default();
    for (lives, news, held) in [
        (&["die"][..], "run.started attempt=2; RESTORED; run.completed", ""),
        (&["die", "die"], "run.started attempt=2; CUT; run.started attempt=3; RESTORED; run.completed", ""),
        (
            &["die", "die", "die"],
            "run.started attempt=2; CUT; run.started attempt=3; CUT",
            Held::Budget.words(),
        ),
    ] {
        let mut home = Home::new(lives);
        home.send().news();
        let restored = "agent.launching; session.restored continued; input.queued prompt; message.agent";
        let cut = "agent.launching; session.restored continued; input.queued prompt; run.interrupted agent_exit; agent.exited";
        let news = news.replace("RESTORED", restored).replace("CUT", cut);
        let status = if held.is_empty() { "idle" } else { "interrupted_agent" };
        table.row(&lives.join("|"), home.wait_long(), &news, status, held);
        assert_eq!(home.scripted.launches(), lives.len() + usize::from(held.is_empty()));
    }
    table.done(3);
}

// An agent that dies when nothing goes on takes nothing with it, and the next message gets another.
#[test]
fn an_idle_agent_may_die() {
    let mut table = Table::default();
    for lose in [false, true] {
        let mut home = Home::new(&["text end"]);
        home.send().news();
        if lose {
            home.scripted.lose()
        } else {
            home.scripted.kill()
        }
        table.row("death", home.settle(), "agent.exited", "idle", "");
        let news = "message.user; run.started; agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";
        table.row("message", home.send(), news, "idle", "");
    }
    table.done(4);
}

// I9: without a trace of the holder nobody says that nothing happened.
#[test]
fn a_holder_of_which_nothing_is_left_makes_the_turn_uncertain() {
    let mut table = Table::default();
    for (life, rebooted, tail) in [
        ("hang", false, "run.interrupted process_restart turn; agent.exited"),
        ("hang", true, "run.interrupted machine_restart turn; agent.exited"),
        ("tool hang", false, "run.interrupted process_restart tools turn; agent.exited"),
    ] {
        let mut home = Home::new(&[life]);
        home.send().news();
        home.scripted.world().rebooted = rebooted;
        home.scripted.vanish();
        table.row(life, home.settle(), tail, "interrupted_startup", Held::Uncertain.words());
    }
    table.done(3);
}

// I9: nobody of an old agent is left when the next one begins.
#[test]
fn no_agent_is_launched_beside_what_is_left_of_the_last() {
    let mut home = Home::new(&["hang"]);
    home.send().news();
    home.scripted.leave_behind(true);
    home.scripted.lose();
    home.wait_long();
    assert_eq!(home.news(), "");
    assert_eq!(home.held(), "processes of its dead agent are still running: 21");
    home.scripted.leave_behind(false);
    home.wait_long();
    assert_eq!(
        home.news(),
        format!("run.interrupted holder_lost; agent.exited; run.started attempt=2; {CONTINUED}")
    );
}

#[test]
fn a_copied_home_goes_on_with_nothing_by_itself() {
    let mut home = Home::new(&["hang"]);
    home.send().news();
    home.scripted.copy();
    let mut table = Table::default();
    let cut = "run.interrupted holder_lost turn; agent.exited";
    table.row("copy", home.wait_long(), cut, "interrupted_startup", Held::Uncertain.words());
    table.done(1);
}

// A command is run again only when a person says so: nothing is known of what it did.
#[test]
fn commands_end_with_their_process() {
    let mut table = Table::default();
    for (life, news, status, held) in [
        ("text end", "message.agent; run.completed; agent.exited", "idle", ""),
        ("text exit", "message.agent; run.failed; agent.exited", "idle", ""),
        (
            "text die",
            "message.agent; run.interrupted agent_exit turn; agent.exited",
            "interrupted_agent",
            Held::Command.words(),
        ),
        (
            "text lost",
            "message.agent; run.interrupted holder_lost turn; agent.exited",
            "interrupted_startup",
            Held::Command.words(),
        ),
    ] {
        let mut home = Home::with(Setup::command(), &[life]);
        table.row(life, home.send(), &format!("{BEGUN}; {news}"), status, held);
        table.row(life, home.wait_long(), "", status, held);
    }
    table.done(8);
}

// A tool call that was allowed may have had its effect; one that was refused has not.
#[test]
fn a_permission_makes_a_tool_call_uncertain() {
    let mut table = Table::default();
    for (option, tools) in [("allow_once", " tools"), ("reject_once", "")] {
        for (life, reason) in [("ask die", "agent_exit"), ("ask lost", "holder_lost")] {
            let mut home = Home::with(Setup::policy(ResumePolicy::Never, OnUncertain::Ask), &[life]);
            home.send().news();
            home.answer(option).expect("answered");
            let news = format!(
                "run.resumed answered; input.queued answer; run.interrupted {reason}{tools}; agent.exited"
            );
            table.is(&format!("{life}, {option}"), &home.news(), &news);
        }
    }
    table.done(4);
}

// I14: each cut is judged by itself, however often the same session is cut.
#[test]
fn continuations_are_cut_in_tool_calls_too() {
    let mut table = Table::default();
    let begun = "agent.launching; session.restored continued; input.queued prompt; tool.call; run.interrupted agent_exit tools; agent.exited";
    let done =
        "agent.launching; session.restored continued; input.queued prompt; message.agent; run.completed";
    for (lives, news, status, held) in [
        (&["tool die"][..], format!("run.started attempt=2; {done}"), "idle", ""),
        (
            &["tool die", "tool die"],
            format!("run.started attempt=2; {begun}; run.started attempt=3; {done}"),
            "idle",
            "",
        ),
        (
            &["tool die", "tool die", "tool die"],
            format!("run.started attempt=2; {begun}; run.started attempt=3; {begun}"),
            "interrupted_agent",
            Held::Budget.words(),
        ),
    ] {
        let mut home = Home::with(Setup::policy(ResumePolicy::Auto, OnUncertain::Continue), lives);
        home.send().news();
        table.row(&lives.join("|"), home.wait_long(), &news, status, held);
    }
    let mut home = Home::new(&["text die", "tool die"]);
    home.send().news();
    let news = format!("run.started attempt=2; {begun}");
    table.row("text, then a tool", home.wait_long(), &news, "interrupted_agent", Held::Uncertain.words());
    table.done(4);
}

// I12: what cannot be written is in the journal until it can, and that is shown.
#[test]
fn a_full_disk_delays_what_an_agent_said_and_loses_nothing() {
    let mut home = Home::new(&["hang text tool done end"]);
    home.send().news();
    home.fill_disk(true);
    home.scripted.go_on();
    home.pass(std::time::Duration::from_secs(10));
    assert_eq!((home.news(), home.held().is_empty()), (String::new(), false));
    home.fill_disk(false);
    let mut table = Table::default();
    let news = "message.agent; tool.call; tool.update; run.completed";
    table.row("room again", home.wait_long(), news, "idle", "");
    table.done(1);
}

// I5: whoever resumes a session is not told that nothing was cut because nobody has looked yet.
#[test]
fn a_resume_before_anybody_has_looked_finds_the_dead_agent_first() {
    for resume in [ResumePolicy::Auto, ResumePolicy::Ask, ResumePolicy::Never] {
        for words in ["hang", "text hang", "tool hang"] {
            let mut home = Home::with(Setup::policy(resume, OnUncertain::Ask), &[words, "text end"]);
            home.send();
            home.daemon_ends();
            home.scripted.lose();
            home.start().resume(&[]).unwrap_or_else(|error| panic!("{resume:?} {words}: {error}"));
            home.wait_long();
            let counts = ["run.interrupted", "run.started", "run.completed"].map(|kind| home.count(kind));
            assert_eq!((counts, home.scripted.launches()), ([1, 2, 1], 2), "{resume:?} {words}");
        }
    }
}

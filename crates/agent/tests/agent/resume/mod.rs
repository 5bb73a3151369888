//! Every way in which an agent may forget, times every moment at which it may die, times what was agreed on, once or twice
//! within a minute: generated, played in memory, and judged by what really happened.

mod actor;
mod world;

use rekindle_domain::event::{Event, OnUncertain, ResumePolicy};
use rekindle_domain::recovery::Held;
use rekindle_domain::session::End;

use actor::{At, BUILD, FIRST, Load, SECOND, SHIP};
use world::World;

const MOMENTS: [At; 7] =
    [At::Prompted, At::Counted, At::MidText, At::MidTool, At::Asking, At::GrantedMidTool, At::Ended];

const POLICIES: [(ResumePolicy, OnUncertain); 4] = [
    (ResumePolicy::Auto, OnUncertain::Ask),
    (ResumePolicy::Auto, OnUncertain::Continue),
    (ResumePolicy::Ask, OnUncertain::Ask),
    (ResumePolicy::Never, OnUncertain::Continue),
];

/// One case of the matrix.
#[derive(Debug, Clone, Copy)]
struct Case {
    load: Load,
    moment: At,
    policy: (ResumePolicy, OnUncertain),
    twice: bool,
    /// The turn that is cut is the session's first.
    first: bool,
    /// The supervisor dies just before the agent does.
    restarts: bool,
}

fn cases() -> impl Iterator<Item = Case> {
    let both = [false, true];
    Load::ALL.into_iter().flat_map(move |load| {
        MOMENTS.into_iter().flat_map(move |moment| {
            POLICIES.into_iter().flat_map(move |policy| {
                both.into_iter().flat_map(move |twice| {
                    both.into_iter().flat_map(move |first| {
                        both.into_iter().map(move |restarts| Case {
                            load,
                            moment,
                            policy,
                            twice,
                            first,
                            restarts,
                        })
                    })
                })
            })
        })
    })
}

/// Plays a case and judges it; returns what is wrong.
fn judge(case: Case) -> Result<(), String> {
    let kills = [case.moment; 2];
    let kills = &kills[..if case.twice { 2 } else { 1 }];
    let mut world = World::new(case.load, case.policy.0, case.policy.1);
    if !case.first {
        world.message(FIRST);
    }
    world.kill_at(kills, case.restarts);
    world.message(SECOND);
    oracle(case, &world)
}

fn oracle(case: Case, world: &World) -> Result<(), String> {
    let wrong = |why: String| Err(why);
    // The work is done, each part of it once, and the last run says so.
    let run = world.state.run.as_ref().ok_or("no run")?;
    if run.end != Some(End::Completed) {
        return wrong(format!("the run ended as {:?}", run.end));
    }
    for command in [BUILD, SHIP] {
        let times = world.disk.effects.iter().filter(|effect| *effect == command).count();
        if times != 1 {
            return wrong(format!("{command:?} was run {times} times"));
        }
    }
    // The request is told exactly once to whoever continues, unless it has shown that it has it.
    for told in world.told.iter().filter(|told| told.text.contains("[Resume Context]")) {
        let (times, expected) = (told.text.matches(SECOND).count(), usize::from(!told.shown));
        if times != expected {
            return wrong(format!(
                "the request was told {times} times, shown: {}: {}",
                told.shown, told.text
            ));
        }
    }
    // Nobody hears the same words twice.
    let said: Vec<String> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::MessageAgent(said) => serde_json::from_str(said.content.as_json()).ok(),
            _ => None,
        })
        .collect();
    for word in ["alpha", "beta", "fine"] {
        let times = said.iter().flat_map(|text| text.split_whitespace()).filter(|said| *said == word).count();
        if times > 1 {
            return wrong(format!("{word:?} was said {times} times: {said:?}"));
        }
    }
    verdicts(case, world)?;
    uncertain(case, world)
}

/// The verdict on each load is what really was there.
fn verdicts(case: Case, world: &World) -> Result<(), String> {
    let restored: Vec<(&str, &str)> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::SessionRestored(restored) => Some((restored.method.as_ref(), restored.verdict.as_ref())),
            _ => None,
        })
        .collect();
    let loads: Vec<&str> =
        restored.iter().filter(|(method, _)| *method == "load").map(|(_, verdict)| *verdict).collect();
    let truth = world.loaded.iter().map(|whole| match (whole, case.load) {
        // It answers first: what it will replay is not known then.
        (_, Load::Destroys) => "continued",
        (true, _) => "continued",
        (false, _) => "shorter",
    });
    let truth: Vec<&str> = truth.collect();
    if loads != truth {
        return Err(format!("verdicts {loads:?} on loads that were {truth:?}"));
    }
    let forgets = matches!(case.load, Load::Refuses | Load::Hangs | Load::Nothing | Load::Empty);
    let reprimed = restored.contains(&("context", "reprimed"));
    let continued = world.told.iter().any(|told| told.text.contains("[Resume Context]"));
    if forgets && continued != reprimed {
        return Err(format!("a new agent was told, and the log says {restored:?}"));
    }
    Ok(())
}

/// A step that had begun is named by its command, and holds the session if that was agreed on; nothing else does.
fn uncertain(case: Case, world: &World) -> Result<(), String> {
    let cuts: Vec<Vec<&str>> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::RunInterrupted(cut) => {
                Some(cut.uncertain.iter().map(|tool| tool.input.as_deref().unwrap_or_default()).collect())
            }
            _ => None,
        })
        .collect();
    let expected: Vec<&str> = match case.moment {
        At::MidTool => vec![BUILD],
        At::GrantedMidTool => vec![SHIP],
        _ => Vec::new(),
    };
    if case.moment != At::Ended && cuts.first() != Some(&expected) {
        return Err(format!("uncertain were {cuts:?}, begun was {expected:?}"));
    }
    let held = world.held.first().copied();
    let expected = match case.policy {
        _ if case.moment == At::Ended => None,
        (ResumePolicy::Ask, _) => Some(Held::Asks),
        (ResumePolicy::Never, _) => Some(Held::Never),
        (ResumePolicy::Auto, OnUncertain::Ask) if !expected.is_empty() => Some(Held::Uncertain),
        (ResumePolicy::Auto, OnUncertain::Ask) if case.moment == At::Asking => Some(Held::Unanswered),
        (ResumePolicy::Auto, _) => None,
    };
    if held != expected {
        return Err(format!("held by {held:?}, agreed on was {expected:?}"));
    }
    Ok(())
}

// I5, I6, I12
#[test]
fn whatever_an_agent_forgets_and_whenever_it_dies() {
    let wrong: Vec<String> =
        cases().filter_map(|case| judge(case).err().map(|why| format!("{case:?}: {why}"))).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases().count(), wrong.join("\n"));
}

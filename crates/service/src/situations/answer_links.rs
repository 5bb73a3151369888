//! Answer links: made while a question is open, replaced one by another, ended with their question however that ends.

use std::time::Duration;

use rekindle_domain::token::TokenState;
use rekindle_wire::code::Code;

use super::home::Home;
use crate::answer_links::AnswerLinks;

fn linker(home: &Home) -> AnswerLinks {
    let base = "https://box.example".parse().expect("an address");
    AnswerLinks::new(home.workers().records.clone(), base, Duration::from_secs(60))
}

/// Returns how the links of the session stand: for whom, for which option, and why they ended.
fn standings(home: &Home) -> Vec<String> {
    let tokens = home.workers().records.store.open_session(home.session).expect("there").tokens;
    let mut links: Vec<_> = tokens.tokens.values().filter(|token| token.scope.option_id.is_some()).collect();
    links.sort_by_key(|token| token.minted_seq);
    let line = |token: &&rekindle_domain::token::Token| {
        let state = match &token.state {
            TokenState::Revoked { reason, .. } => reason.clone(),
            other => format!("{other:?}"),
        };
        let (by, option) = (token.by.as_deref(), token.scope.option_id.as_deref());
        format!("{} {} {state}", by.unwrap_or_default(), option.unwrap_or_default())
    };
    links.iter().map(line).collect()
}

#[test]
fn links_end_with_their_question_however_it_ends() {
    for (end, reason) in [("answer", "answered"), ("death", "interrupted")] {
        let mut home = Home::new(&["ask text end"]);
        home.send();
        let (wait, linker) = (home.wait_id(), linker(&home));
        let minted = linker.mint(home.session, wait, "phone").expect("made");
        let labels: Vec<&str> = minted.links.iter().map(|link| link.label.as_str()).collect();
        assert_eq!(labels.len(), 2, "once, and never always: {labels:?}");
        linker.mint(home.session, wait, "slack").expect("made");
        linker.mint(home.session, wait, "phone").expect("made");
        let open = standings(&home);
        let ends: Vec<&str> =
            open.iter().filter_map(|line| line.rsplit_once(' ')).map(|(_, end)| end).collect();
        assert_eq!(ends, ["replaced", "replaced", "Active", "Active", "Active", "Active"], "{open:?}");
        match end {
            "answer" => home.answer("allow_once").expect("answered"),
            _ => home.scripted.kill(),
        }
        home.wait_long();
        let over = standings(&home);
        let ended = over.iter().filter(|line| line.ends_with(reason)).count();
        assert_eq!(ended, 4, "{end}: {over:?}");
        let late = linker.mint(home.session, wait, "phone").expect_err("it is over");
        assert_eq!(late.code, Code::WaitClosed, "{end}");
        assert_eq!(standings(&home), over, "nothing is minted behind the end");
    }
}

/// Whoever loses a race looks again: one of them comes last, and only its links are good.
#[test]
fn of_many_who_make_links_at_once_the_last_one_counts() {
    let mut home = Home::new(&["ask text end"]);
    home.send();
    let (wait, session, linker) = (home.wait_id(), home.session, linker(&home));
    std::thread::scope(|scope| {
        let mint = || linker.mint(session, wait, "phone").expect("made").links.len();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(mint)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().expect("ended") == 2));
    });
    let standings = standings(&home);
    let count = |end: &str| standings.iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((count("Active"), count("replaced")), (2, 14), "{standings:?}");
}

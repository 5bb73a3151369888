//! The life of a resume token: what each step allows next, and what a bearer is told at each.

use super::*;
use crate::session::tests::log::session;
use crate::session::tests::script::{at, draft, now};

/// The secret of every token here.
const SECRET: [u8; 32] = [7; 32];
/// The hash of the answer that is given.
const ANSWER: &str = "a1";
const MINTED: &str = "token.minted expires=60";
const CONSUMED: &str = "token.consumed answer_hash=a1";

fn scope() -> TokenScope {
    TokenScope {
        session_id: session(),
        run_id: "run_1".parse().expect("an id"),
        wait_id: "wait_1".parse().expect("an id"),
        option_id: None,
    }
}

fn token(number: u64) -> TokenId {
    format!("rt_{number}").parse().expect("an id")
}

/// Returns the text of token 1 and what it parses to.
fn shown() -> (String, Presented) {
    Presented::mint(token(1), SECRET)
}

/// The clock and the newest record, in seconds.
fn moment(wall: i64, newest: i64) -> Moment {
    Moment { now: now(at(wall)), newest: at(newest) }
}

/// Returns the index after some events, as records 1, 2 and so on; tokens are minted with the known secret.
fn index(events: &[&str]) -> TokenIndex {
    let mut index = TokenIndex::empty(session());
    for (at, event) in events.iter().enumerate() {
        apply(&mut index, at as u64 + 1, event).unwrap_or_else(|illegal| panic!("{events:?}: {illegal}"));
    }
    index
}

fn apply(index: &mut TokenIndex, seq: u64, event: &str) -> Result<(), IllegalTransition> {
    let event =
        event.replace("token.minted", &format!("token.minted secret_hash={}", shown().1.secret_hash()));
    index.apply(seq, at(0), &draft(&event).event)
}

/// Checks what the bearer of a token is told, before it expires and with the answer, unless told otherwise.
fn check(events: &[&str], expected: Result<Accepted, Rejection>) {
    let found = index(events).validate(&shown().1, &scope(), ANSWER, moment(59, 10));
    assert_eq!(found, expected, "{events:?}");
}

/// Checks that an event is refused after others, for a reason, and leaves no trace.
fn check_refused(events: &[&str], event: &str, why: &str) {
    let before = index(events);
    let mut after = before.clone();
    let illegal = apply(&mut after, 99, event).expect_err(event);
    assert!(illegal.why.contains(why) && event.starts_with(&illegal.kind), "{event}: {illegal}");
    assert_eq!(after, before, "{event} was refused and yet left a trace");
}

// I7: the first answer wins, the same answer again gets the recorded result, another one a conflict.
#[test]
fn a_bearer_is_told_where_the_token_stands() {
    let revoked = |why: &str| Err(Rejection::Revoked(why.into()));
    for (events, expected) in [
        (&[][..], Err(Rejection::Unknown)),
        (&["token.minted token=2"], Err(Rejection::Unknown)),
        (&["token.minted"], Ok(Accepted::Fresh)),
        (&[MINTED], Ok(Accepted::Fresh)),
        (&[MINTED, CONSUMED], Ok(Accepted::Repeated { seq: 2 })),
        (
            &["token.minted token=2", MINTED, CONSUMED, "token.revoked token=2"],
            Ok(Accepted::Repeated { seq: 3 }),
        ),
        (&[MINTED, "token.consumed answer_hash=b2"], Err(Rejection::Consumed)),
        // The answer was not recorded: nobody can say whether this is the same.
        (&[MINTED, "token.consumed"], Err(Rejection::Consumed)),
        (&[MINTED, "token.revoked reason=cancelled"], revoked("cancelled")),
        (&[MINTED, "token.expired"], Err(Rejection::Expired)),
        // Another token's end is not this one's.
        (&[MINTED, "token.minted token=2", "token.revoked token=2"], Ok(Accepted::Fresh)),
    ] {
        check(events, expected);
    }
}

#[test]
fn a_wrong_secret_is_told_nothing_not_even_that_the_token_exists() {
    let (_, wrong) = Presented::mint(token(1), [8; 32]);
    for events in [&[MINTED][..], &[MINTED, CONSUMED], &[MINTED, "token.revoked"], &[MINTED, "token.expired"]]
    {
        let index = index(events);
        for (scope, now) in
            [(scope(), moment(59, 0)), (scope(), moment(99, 0)), (foreign_scopes()[0].clone(), moment(0, 0))]
        {
            assert_eq!(index.validate(&wrong, &scope, ANSWER, now), Err(Rejection::Unknown), "{events:?}");
        }
    }
}

fn foreign_scopes() -> [TokenScope; 3] {
    [
        TokenScope { session_id: "sess_2".parse().expect("an id"), ..scope() },
        TokenScope { run_id: "run_2".parse().expect("an id"), ..scope() },
        TokenScope { wait_id: "wait_2".parse().expect("an id"), ..scope() },
    ]
}

#[test]
fn a_token_is_good_for_its_own_session_run_and_wait_only() {
    for foreign in foreign_scopes() {
        for events in [&[MINTED][..], &[MINTED, CONSUMED], &[MINTED, "token.revoked"]] {
            let found = index(events).validate(&shown().1, &foreign, ANSWER, moment(59, 0));
            assert_eq!(found, Err(Rejection::Scope), "{foreign:?}");
        }
    }
}

// A link answers once, with its own option, and never with another, used or not.
#[test]
fn a_token_of_an_option_takes_no_other_answer() {
    let minted = "token.minted scope_option=allow by=phone";
    let answers =
        [(Some("allow"), true), (Some("reject"), false), (Some("allow_always"), false), (None, false)];
    for (option, fits) in answers {
        let wanted = TokenScope { option_id: option.map(Into::into), ..scope() };
        for (events, accepted) in [
            (&[minted][..], Ok(Accepted::Fresh)),
            (&[minted, CONSUMED], Err(Rejection::Used)),
            (&[minted, "token.revoked reason=replaced"], Err(Rejection::Revoked("replaced".into()))),
        ] {
            let found = index(events).validate(&shown().1, &wanted, ANSWER, moment(59, 0));
            assert_eq!(found, if fits { accepted } else { Err(Rejection::Scope) }, "{events:?} {option:?}");
        }
        // Whoever is known otherwise finds what came of it.
        let repeated = index(&[minted, CONSUMED]).judge(token(1), ANSWER, moment(59, 0));
        assert_eq!(repeated, Ok(Accepted::Repeated { seq: 2 }));
        // Any other token takes any answer.
        let found = index(&["token.minted"]).validate(&shown().1, &wanted, ANSWER, moment(59, 0));
        assert_eq!(found, Ok(Accepted::Fresh), "{option:?}");
    }
}

#[test]
fn a_token_expires_at_its_time_but_not_by_a_clock_that_was_set_back() {
    let (timed, endless) = (index(&[MINTED]), index(&["token.minted"]));
    for (wall, newest, is_active) in [
        (0, 0, true),
        (59, 10, true),
        (60, 10, false),
        (61, 61, false),
        (61, 62, true),
        (60, 60, false),
        (99, 100, true),
    ] {
        let now = moment(wall, newest);
        let expected = if is_active { Ok(Accepted::Fresh) } else { Err(Rejection::Expired) };
        let found = timed.validate(&shown().1, &scope(), ANSWER, now);
        assert_eq!((found, timed.is_active(token(1), now)), (expected, is_active), "{now:?}");
        assert_eq!(endless.validate(&shown().1, &scope(), ANSWER, now), Ok(Accepted::Fresh));
        assert!(endless.is_active(token(1), now) && !endless.is_active(token(2), now));
        // What was recorded is not a matter of clocks: a repeat finds the first result at any time.
        let used = index(&[MINTED, CONSUMED]);
        assert_eq!(used.validate(&shown().1, &scope(), ANSWER, now), Ok(Accepted::Repeated { seq: 2 }));
        for ended in [CONSUMED, "token.revoked", "token.expired"] {
            assert!(!index(&["token.minted", ended]).is_active(token(1), now), "{ended}");
        }
    }
}

// I7: a token is consumed at most once, and never after it was taken back or ran out.
#[test]
fn an_ended_token_stays_as_it_ended() {
    let ends = ["token.consumed answer_hash=a1", "token.revoked reason=x", "token.expired"];
    for first in ends {
        for second in ends {
            check_refused(&["token.minted", first], second, "rt_1 is not active any more");
        }
        check_refused(&[], first, "rt_1 was never minted");
        check_refused(&["token.minted token=2"], first, "rt_1 was never minted");
        check_refused(&["token.minted", first], "token.minted", "rt_1 exists already");
    }
}

#[test]
fn a_token_is_minted_once_and_for_this_session_and_its_wait() {
    check_refused(&["token.minted"], "token.minted", "rt_1 exists already");
    check_refused(&["token.minted"], "token.minted wait=2 token=1", "rt_1 exists already");
    check_refused(&[], "token.minted scope_session=2", "the scope of rt_1 is not this session and wait");
    check_refused(&[], "token.minted scope_wait=2", "the scope of rt_1 is not this session and wait");
    // Several may be good for one wait.
    let index = index(&["token.minted run=4", "token.minted token=2 expires=60"]);
    let found = |number| index.tokens.get(&token(number)).expect("minted");
    assert_eq!((found(1).minted_seq, found(2).minted_seq), (1, 2));
    assert_eq!((found(1).expires_at, found(2).expires_at), (None, Some(at(60))));
    assert_eq!(found(1).scope, TokenScope { run_id: "run_4".parse().expect("an id"), ..scope() });
    assert_eq!(
        (found(1).state == TokenState::Active, &*found(1).secret_hash),
        (true, shown().1.secret_hash())
    );
}

#[test]
fn a_token_as_text_comes_back_and_malformed_ones_are_unknown() {
    let (text, minted) = shown();
    assert_eq!(text, format!("rt_1.{}", "07".repeat(32)));
    assert_eq!(text.parse(), Ok(minted.clone()));
    assert_eq!(minted.secret_hash(), sha256_hex("07".repeat(32).as_bytes()));
    assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for bad in [
        "",
        "rt_1",
        "rt_1.",
        ".",
        &text[..text.len() - 1],
        &format!("{text}0"),
        &text.replace("rt_", "run_"),
        &text.replace("rt_1", "rt_"),
        &text.replace("rt_1", "rt_../1"),
        &text.replace('.', ":"),
        &text.replace('.', ".."),
        &format!(" {text}"),
        &format!("{text}\n"),
    ] {
        assert_eq!(bad.parse::<Presented>(), Err(Rejection::Unknown), "{bad:?}");
    }
    // Of the right shape but not the secret: another hash, so the same refusal.
    let upper: Presented = Presented::mint(token(1), [0xab; 32])
        .0
        .to_uppercase()
        .replace("RT_", "rt_")
        .parse()
        .expect("its shape");
    assert_ne!(upper, Presented::mint(token(1), [0xab; 32]).1);
}

#[test]
fn neither_secret_nor_hash_is_shown_for_debugging() {
    let (text, minted) = shown();
    let secret = text.split_once('.').expect("a secret").1;
    let index = index(&[MINTED]);
    for shown in [
        format!("{minted:?} {minted:#?}"),
        format!("{index:?} {index:#?}"),
        format!("{:?}", index.tokens[&token(1)]),
    ] {
        assert!(shown.contains("rt_1") || shown.contains("wait_1"), "it says which token: {shown}");
        assert!(!shown.contains(secret) && !shown.contains(minted.secret_hash()), "{shown}");
    }
    let file = serde_json::to_string(&index).expect("JSON");
    assert!(!file.contains(secret), "a secret is never on disk");
    assert_eq!(serde_json::from_str::<TokenIndex>(&file).expect("readable"), index);
}

#[test]
fn every_refusal_has_its_own_words() {
    let all = [
        (Rejection::Unknown, "not known"),
        (Rejection::Expired, "has expired"),
        (Rejection::Revoked("cancelled".into()), "revoked: cancelled"),
        (Rejection::Consumed, "another answer"),
        (Rejection::Used, "link was already used"),
        (Rejection::Scope, "another wait"),
    ];
    for (rejection, words) in all {
        assert!(rejection.to_string().contains(words), "{rejection}");
    }
}

#[test]
fn an_index_ahead_passes_over_what_it_has_seen_and_does_not_go_back() {
    let mut index = index(&[MINTED, CONSUMED]);
    let hash = ChainHash::from_hex(b"0123456789abcdef");
    let ahead = Position { last_seq: 2, log_offset: 200, last_hash: hash };
    index.set_position(ahead);
    let before = index.clone();
    for (seq, event) in
        [(1, MINTED), (2, CONSUMED), (2, "token.minted token=5"), (1, "token.revoked token=9")]
    {
        assert_eq!(apply(&mut index, seq, event), Ok(()), "{event} was seen before");
    }
    index.set_position(Position { last_seq: 1, log_offset: 100, last_hash: None });
    index.set_position(Position { last_seq: 2, log_offset: 999, last_hash: None });
    assert_eq!((&index, index.position()), (&before, ahead));
    // The next record is taken in.
    assert_eq!(apply(&mut index, 3, "token.minted token=5"), Ok(()));
    let next = Position { last_seq: 3, log_offset: 300, last_hash: hash };
    index.set_position(next);
    assert_eq!((index.tokens.len(), index.position()), (2, next));
}

#[test]
fn only_the_oldest_ended_tokens_are_forgotten_and_never_an_active_one() {
    let mut index = TokenIndex::empty(session());
    // Two active ones, older than all the others; then many that end at once.
    let (active, ended) = (2, MAX_ENDED as u64 + 10);
    let mut seq = 0;
    let mut next = |event: String| {
        seq += 1;
        (seq, event)
    };
    for number in 1..=active {
        let (seq, event) = next(format!("token.minted token={number}"));
        apply(&mut index, seq, &event).expect("legal");
    }
    // Numbers go down, so that the oldest is not the least.
    for number in (1000 - ended + 1..=1000).rev() {
        for event in ["token.minted", "token.revoked"].map(|kind| format!("{kind} token={number}")) {
            let (seq, event) = next(event);
            apply(&mut index, seq, &event).expect("legal");
        }
    }
    let now = moment(0, 0);
    assert!((1..=active).all(|number| index.is_active(token(number), now)), "an active one was forgotten");
    let kept: Vec<u64> =
        (1000 - ended + 1..=1000).filter(|n| index.tokens.contains_key(&token(*n))).collect();
    // The last one ended after the last was minted, so one more than the limit is there.
    let newest: Vec<u64> = (1000 - ended + 1..=1000).take(MAX_ENDED + 1).collect();
    assert_eq!(kept, newest);
}

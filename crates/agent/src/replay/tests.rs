//! Tables and properties of the comparison.

use proptest::prelude::*;

use super::*;

fn replay(pieces: &[(char, &str)]) -> Replay {
    let voice = |sign| match sign {
        'u' => Voice::User,
        'a' => Voice::Agent,
        _ => Voice::Thought,
    };
    Replay {
        pieces: pieces.iter().map(|(sign, text)| (voice(*sign), (*text).into())).collect(),
        ..Replay::default()
    }
}

fn turn(prompt: &str, answer: &str) -> Turn {
    Turn { prompt: Some(prompt.into()), answer: Some(answer.into()) }
}

#[test]
fn verdicts() {
    use Verdict::{Continued, Shorter, Unverified};
    let two = [turn("one", "first answer"), turn("two", "second")];
    let all: &[(char, &str)] = &[('u', "one"), ('a', "first answer"), ('u', "two"), ('a', "second")];
    type Case<'a> = (&'a str, &'a [(char, &'a str)], Verdict);
    let cases: &[Case<'_>] = &[
        ("all there", all, Continued),
        (
            "white space differs",
            &[('u', " one\n"), ('a', "first\n\n answer"), ('u', "two"), ('a', "second ")],
            Continued,
        ),
        (
            "in pieces",
            &[('u', "one"), ('a', "first"), ('a', " ans"), ('a', "wer"), ('u', "two"), ('a', "second")],
            Continued,
        ),
        (
            "extras",
            &[
                ('u', "<context>"),
                ('u', "one"),
                ('t', "hm"),
                ('a', "I look"),
                ('a', "first answer"),
                ('u', "two"),
                ('a', "second"),
                ('u', "cut"),
            ],
            Continued,
        ),
        ("no prompts in the replay", &[('a', "first answer"), ('a', "second")], Continued),
        ("the last answer is missing", &[('u', "one"), ('a', "first answer"), ('u', "two")], Shorter),
        ("a prompt is missing", &[('u', "one"), ('a', "first answer"), ('a', "second")], Shorter),
        ("another order", &[('u', "two"), ('a', "second"), ('u', "one"), ('a', "first answer")], Shorter),
        ("another voice", &[('u', "one"), ('t', "first answer"), ('u', "two"), ('a', "second")], Shorter),
        ("only part of an answer", &[('u', "one"), ('a', "first"), ('u', "two"), ('a', "second")], Shorter),
        ("words run together", &[('u', "one"), ('a', "firstanswer"), ('u', "two"), ('a', "second")], Shorter),
        ("nothing", &[], Shorter),
    ];
    for (name, pieces, expected) in cases {
        assert_eq!(compare(Request::Load, &replay(pieces), &two, false).0, *expected, "{name}");
    }
    assert_eq!(compare(Request::Resume, &replay(&[]), &two, false).0, Unverified, "resume replays nothing");
    assert_eq!(compare(Request::Resume, &replay(all), &two, false).0, Continued, "unless it does");
    assert_eq!(compare(Request::Load, &replay(&[]), &[], false).0, Unverified, "nothing to compare");
    assert_eq!(
        compare(Request::Load, &replay(&[('u', "cut")]), &[], false).0,
        Continued,
        "the cut run alone"
    );
    assert_eq!(compare(Request::Load, &replay(&all[..1]), &two, true).0, Unverified, "more may come");
}

#[test]
fn what_an_agent_should_remember_is_read_from_the_log() {
    let log = [
        r#"{"kind":"run.started","run_id":"run_1","boot_id":"boot_1"}"#,
        r#"{"kind":"agent.ready","holder_id":"h_1","cursor":"s1"}"#,
        r#"{"kind":"input.queued","run_id":"run_1","holder_id":"h_1","input_seq":3,"what":"prompt","line":"{\"method\":\"session/prompt\",\"params\":{\"prompt\":[{\"type\":\"text\",\"text\":\"one\"}]}}\n","sha256":""}"#,
        r#"{"kind":"message.agent","run_id":"run_1","message_id":"msg_1","content":"I look"}"#,
        r#"{"kind":"message.agent","run_id":"run_1","message_id":"msg_2","content":[{"type":"text","text":"first"}]}"#,
        r#"{"kind":"run.completed","run_id":"run_1","stop_reason":"end_turn"}"#,
        r#"{"kind":"run.started","run_id":"run_2","boot_id":"boot_1"}"#,
        r#"{"kind":"input.queued","run_id":"run_2","holder_id":"h_1","input_seq":4,"what":"prompt","line":{"blob":"00","size":9},"sha256":""}"#,
        r#"{"kind":"message.agent","run_id":"run_2","message_id":"msg_3","content":{"blob":"00","size":9}}"#,
        r#"{"kind":"run.completed","run_id":"run_2"}"#,
        r#"{"kind":"run.started","run_id":"run_3","boot_id":"boot_1"}"#,
        r#"{"kind":"message.agent","run_id":"run_3","message_id":"msg_4","content":"half","partial":true}"#,
        r#"{"kind":"run.interrupted","run_id":"run_3","reason":"agent_exit"}"#,
    ];
    let mut spoken = Spoken::default();
    let note = |spoken: &mut Spoken, record: &str| {
        let kind =
            Object::parse(record).and_then(|object| object.text("kind").map(String::from)).expect("a kind");
        spoken.note(&Event::read(&kind, record).expect("a record"));
    };
    for record in log {
        note(&mut spoken, record);
    }
    assert_eq!(spoken.turns(), [turn("one", "first"), Turn::default()]);
    note(&mut spoken, r#"{"kind":"agent.ready","holder_id":"h_2","cursor":"s1"}"#);
    assert_eq!(spoken.turns().len(), 2, "the same session in another process");
    note(&mut spoken, r#"{"kind":"agent.ready","holder_id":"h_3","cursor":"s2"}"#);
    assert!(spoken.turns().is_empty(), "another session");
}

proptest! {
    /// A replay of exactly what was said is complete, however it is cut into pieces and spaced; without any one
    /// answer that stands nowhere else it is not.
    #[test]
    fn exact_replays_are_complete_and_gaps_are_found(
        turns in proptest::collection::vec(("[a-c ]{0,6}p", "[a-c \n]{1,8}"), 1..6),
        cut in any::<prop::sample::Index>(),
        missing in any::<prop::sample::Index>(),
    ) {
        let turns: Vec<Turn> =
            turns.iter().enumerate().map(|(n, (p, a))| turn(&format!("{p}{n}"), &format!("{a}{n}"))).collect();
        let mut whole = Replay::default();
        for turn in &turns {
            let answer = turn.answer.clone().unwrap_or_default();
            let at = (0..=answer.len()).rev().find(|at| answer.is_char_boundary(*at) && *at <= cut.index(answer.len() + 1)).unwrap_or(0);
            whole.pieces.push((Voice::User, turn.prompt.clone().unwrap_or_default().replace(' ', " \n ")));
            whole.pieces.push((Voice::Agent, answer[..at].to_owned()));
            whole.pieces.push((Voice::Agent, answer[at..].to_owned()));
        }
        prop_assert_eq!(compare(Request::Load, &whole, &turns, false).0, Verdict::Continued);
        let gone = missing.index(turns.len());
        let mut shorter = whole.clone();
        shorter.pieces.drain(gone * 3 + 1..gone * 3 + 3);
        prop_assert_eq!(compare(Request::Load, &shorter, &turns, false).0, Verdict::Shorter);
    }
}

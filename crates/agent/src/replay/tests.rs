//! Tables and properties of the comparison.

use proptest::prelude::*;

use rekindle_domain::event::Event;

use super::*;
use crate::json::Object;
use crate::said::Request;

fn replay(pieces: &[(char, &str)]) -> Replay {
    let voice = |sign| match sign {
        'u' => Voice::User,
        'a' => Voice::Agent,
        _ => Voice::Thought,
    };
    let mut replay = Replay::default();
    for (number, (sign, text)) in pieces.iter().enumerate() {
        replay.push_text(voice(*sign), (*text).to_owned(), number as u64);
    }
    replay
}

fn turn(prompt: &str, answer: &str) -> ExpectedTurn {
    ExpectedTurn { prompt: Some(prompt.into()), answer: Some(answer.into()) }
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
        (
            "a warning of the adapter's is not replayed",
            &[('u', "one"), ('a', "answer"), ('u', "two"), ('a', "second")],
            Continued,
        ),
        ("the end of a word", &[('u', "one"), ('a', "swer"), ('u', "two"), ('a', "second")], Shorter),
        ("nothing", &[], Shorter),
    ];
    for (name, pieces, expected) in cases {
        assert_eq!(compare(Request::Load, &replay(pieces), &two, None, false).0, *expected, "{name}");
    }
    assert_eq!(
        compare(Request::Resume, &replay(&[]), &two, None, false).0,
        Unverified,
        "resume replays nothing"
    );
    assert_eq!(compare(Request::Resume, &replay(all), &two, None, false).0, Continued, "unless it does");
    assert_eq!(compare(Request::Load, &replay(&[]), &[], None, false).0, Unverified, "nothing to compare");
    assert_eq!(
        compare(Request::Load, &replay(&[('u', "cut")]), &[], None, false).0,
        Continued,
        "the cut run alone"
    );
    assert_eq!(compare(Request::Load, &replay(&all[..1]), &two, None, true).0, Unverified, "more may come");
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
    assert_eq!(spoken.turns(), [turn("one", "first"), ExpectedTurn::default()]);
    note(&mut spoken, r#"{"kind":"agent.ready","holder_id":"h_2","cursor":"s1"}"#);
    assert_eq!(spoken.turns().len(), 2, "the same session in another process");
    note(&mut spoken, r#"{"kind":"agent.ready","holder_id":"h_3","cursor":"s2"}"#);
    assert!(spoken.turns().is_empty(), "another session");
}

/// A log in which a first turn has ended and a second was cut: its request, its prompt, and what else is in it.
fn cut_turn(extra: &[&str]) -> Spoken {
    let sent = |run: &str, text: &str| {
        let line = serde_json::json!({"params": {"prompt": [{"type": "text", "text": text}]}}).to_string();
        serde_json::json!({"kind": "input.queued", "run_id": run, "holder_id": "h_1", "input_seq": 1,
            "what": "prompt", "line": line, "sha256": ""})
        .to_string()
    };
    let log = [
        r#"{"kind":"agent.ready","holder_id":"h_1","cursor":"s1"}"#.to_owned(),
        r#"{"kind":"message.user","message_id":"msg_1","content":"one"}"#.to_owned(),
        r#"{"kind":"run.started","run_id":"run_1","boot_id":"boot_1","message_id":"msg_1"}"#.to_owned(),
        sent("run_1", "one"),
        r#"{"kind":"message.agent","run_id":"run_1","message_id":"msg_2","content":"first"}"#.to_owned(),
        r#"{"kind":"run.completed","run_id":"run_1"}"#.to_owned(),
        r#"{"kind":"message.user","message_id":"msg_3","content":"two\nlines"}"#.to_owned(),
        r#"{"kind":"run.started","run_id":"run_2","boot_id":"boot_1","message_id":"msg_3"}"#.to_owned(),
        sent("run_2", "two\nlines"),
        r#"{"kind":"tool.call","run_id":"run_2","tool_call_id":"t1","title":"make"}"#.to_owned(),
        r#"{"kind":"message.agent","run_id":"run_2","message_id":"msg_4","content":"half a","partial":true}"#
            .to_owned(),
        r#"{"kind":"run.interrupted","run_id":"run_2","reason":"agent_exit"}"#.to_owned(),
        r#"{"kind":"run.started","run_id":"run_3","boot_id":"boot_1","attempt":2,"continues":"run_2"}"#
            .to_owned(),
    ];
    let mut spoken = Spoken::default();
    for record in log.iter().map(String::as_str).chain(extra.iter().copied()) {
        let kind =
            Object::parse(record).and_then(|object| object.text("kind").map(String::from)).expect("a kind");
        spoken.note(&Event::read(&kind, record).expect("a record"));
    }
    spoken
}

#[test]
fn the_request_of_a_cut_turn_counts_when_prompts_are_replayed() {
    use Verdict::{Continued, Shorter, Unverified};
    let spoken = cut_turn(&[]);
    let judge = |method, pieces: &[(char, &str)], goes_on| {
        let (verdict, counts) = compare(method, &replay(pieces), spoken.turns(), spoken.cut(), goes_on);
        (verdict, counts.request_shown)
    };
    let one = [('u', "one"), ('a', "first")];
    let shown: &[(char, &str)] = &[one[0], one[1], ('u', "two lines")];
    assert_eq!(judge(Request::Load, shown, false), (Continued, Some(true)));
    assert_eq!(
        judge(Request::Load, &one, false),
        (Shorter, Some(false)),
        "it forgot the prompt that was cut"
    );
    assert_eq!(judge(Request::Load, &[], false), (Shorter, Some(false)), "it forgot everything");
    assert_eq!(judge(Request::Resume, &[], false), (Unverified, Some(false)), "it shows nothing");
    assert_eq!(judge(Request::Load, &one, true), (Unverified, Some(false)), "it may come");
    let before: &[(char, &str)] = &[('u', "two\nlines"), one[0], one[1]];
    assert_eq!(
        judge(Request::Load, before, false),
        (Shorter, Some(false)),
        "the same words of an earlier turn"
    );
    let merged: &[(char, &str)] = &[('u', "one"), ('a', "I look.\nfirst\n"), ('u', "two\nlines\nGo on")];
    assert_eq!(judge(Request::Load, merged, false), (Continued, Some(true)), "messages joined into one");
    let other = cut_turn(&[r#"{"kind":"agent.ready","holder_id":"h_2","cursor":"s2"}"#]);
    assert!(other.turns().is_empty(), "another session of the agent's");
    let (verdict, counts) = compare(Request::Load, &replay(shown), other.turns(), other.cut(), false);
    assert_eq!((verdict, counts.request_shown), (Shorter, Some(false)), "was never asked there");
}

#[test]
fn a_continuation_that_had_the_whole_request_shows_it_too() {
    let prompt = |text: &str| {
        let line = serde_json::json!({"params": {"prompt": [{"type": "text", "text": text}]}}).to_string();
        serde_json::json!({"kind": "input.queued", "run_id": "run_3", "holder_id": "h_2", "input_seq": 1,
            "what": "prompt", "line": line, "sha256": ""})
        .to_string()
    };
    let cut = r#"{"kind":"run.interrupted","run_id":"run_3","reason":"agent_exit"}"#;
    for (text, shown) in [("[Resume Context]\n\ntwo\nlines\n\nGo on.", true), ("Go on.", false)] {
        let prompt = prompt(text);
        let spoken = cut_turn(&[r#"{"kind":"agent.ready","holder_id":"h_2","cursor":"s2"}"#, &prompt, cut]);
        let replay = replay(&[('u', text)]);
        let (_, counts) = compare(Request::Load, &replay, spoken.turns(), spoken.cut(), false);
        assert_eq!(counts.request_shown, Some(shown), "{text}");
    }
}

#[test]
fn what_is_told_beyond_the_log_is_found_behind_the_prompt_that_was_cut() {
    let spoken = cut_turn(&[]);
    let tool = |id: &str, status: &str| ReplayedTool {
        call: UncertainTool { tool_call_id: id.into(), title: "make".into(), kind: None, input: None },
        status: Some(status.into()),
        files: Vec::new(),
    };
    let mut told = replay(&[('a', "an old greeting"), ('u', "one"), ('a', "first"), ('u', "two lines")]);
    told.push_tool(tool("t1", "failed"));
    told.push_text(Voice::Agent, "half a".into(), 10);
    told.push_text(Voice::Agent, " sentence".into(), 11);
    told.push_tool(tool("t2", "in_progress"));
    told.push_tool(tool("t2", "completed"));
    told.push_text(Voice::Agent, "I went".into(), 12);
    told.push_text(Voice::Agent, " on".into(), 13);
    let cut = spoken.cut().expect("a turn that was cut");
    let found = beyond(&told, cut);
    assert_eq!(
        found,
        [Unrecorded::Tool(tool("t2", "completed")), Unrecorded::Said { text: "I went on".into(), first: 12 }],
        "the tool and the text that the log has are not told again"
    );
    let mut lost = replay(&[('u', "one"), ('a', "first")]);
    lost.push_tool(tool("t9", "completed"));
    assert_eq!(beyond(&lost, cut), [], "without that prompt nothing can be told apart");
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
        let turns: Vec<ExpectedTurn> =
            turns.iter().enumerate().map(|(n, (p, a))| turn(&format!("{p}{n}"), &format!("{a}{n}"))).collect();
        let mut whole = Replay::default();
        for turn in &turns {
            let answer = turn.answer.clone().unwrap_or_default();
            let at = (0..=answer.len()).rev().find(|at| answer.is_char_boundary(*at) && *at <= cut.index(answer.len() + 1)).unwrap_or(0);
            whole.push_text(Voice::User, turn.prompt.clone().unwrap_or_default().replace(' ', " \n "), 1);
            whole.push_text(Voice::Agent, answer[..at].to_owned(), 1);
            whole.push_text(Voice::Agent, answer[at..].to_owned(), 1);
        }
        prop_assert_eq!(compare(Request::Load, &whole, &turns, None, false).0, Verdict::Continued);
        let gone = missing.index(turns.len());
        let mut shorter = whole.clone();
        shorter.pieces.drain(gone * 3 + 1..gone * 3 + 3);
        prop_assert_eq!(compare(Request::Load, &shorter, &turns, None, false).0, Verdict::Shorter);
    }
}

//! What prompts mean, by example, and that no text at all upsets the parser.

use proptest::prelude::*;

use super::*;
use crate::help::DIRECTIVES;

fn only(line: &str) -> Step {
    step(line).unwrap_or_else(|| panic!("{line} is a directive"))
}

#[test]
fn directives_are_read_with_their_arguments() {
    let text = |text: &str| text.to_owned();
    let millis = Duration::from_millis;
    let cases = [
        ("say Hello, world", Step::Say(text("Hello, world"))),
        ("plan a; b;c", Step::Plan(vec![text("a"), text("b"), text("c")])),
        ("tool read src/main.rs", Step::Tool { kind: text("read"), title: text("src/main.rs") }),
        ("tool frobnicate it", Step::Tool { kind: text("other"), title: text("frobnicate it") }),
        ("write a/b.txt two words", Step::Write { path: text("a/b.txt"), text: text("two words") }),
        ("append log one", Step::Append { path: text("log"), text: text("one") }),
        ("guarded make it", Step::Guarded(text("make it"))),
        ("ask sure?", Step::Ask(vec![text("sure?")])),
        ("ask-two A | B b", Step::Ask(vec![text("A"), text("B b")])),
        ("withdraw it", Step::Withdraw { after: millis(100), text: text("it") }),
        ("withdraw 5ms it", Step::Withdraw { after: millis(5), text: text("it") }),
        ("sleep 200ms", Step::Sleep(millis(200))),
        ("words 5000", Step::Words { count: 5000, every: Duration::ZERO }),
        ("words 5 every 1ms", Step::Words { count: 5, every: millis(1) }),
        ("usage 1200 300 0.05", Step::Usage { input: 1200, output: 300, cost: 0.05 }),
        ("hang", Step::Hang { deaf: false }),
        ("hang deaf", Step::Hang { deaf: true }),
        ("crash", Step::Crash(Crash::Exit(1))),
        ("crash 42", Step::Crash(Crash::Exit(42))),
        ("crash mid-line", Step::Crash(Crash::MidLine)),
        ("noise so what", Step::Noise(b"so what\n".into())),
        ("noise binary", Step::Noise(b"\x00\x01\xfe\xff{\xc3\x28}\x80\n".into())),
        ("huge 20MiB", Step::Huge(20 << 20)),
        ("stderr 10MB", Step::Stderr(Some(10_000_000))),
        ("stderr endless", Step::Stderr(None)),
        ("grandchild 30 detach", Step::Grandchild { seconds: 30, detach: true }),
        ("refuse no more", Step::Refuse { code: -32603, text: text("no more") }),
        ("refuse -32000 log in", Step::Refuse { code: -32000, text: text("log in") }),
        ("stop-reason max_tokens", Step::StopReason(text("max_tokens"))),
        (
            "outcome approved it is fine",
            Step::Say(text("Done.\n\n```json\n{\"findings\":\"it is fine\",\"outcome\":\"approved\"}\n```")),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(only(line), expected, "{line}");
    }
}

#[test]
fn what_is_not_quite_a_directive_is_plain_words() {
    let lines = [
        "hang on a minute",
        "sleep well",
        "forget about it",
        "crash course",
        "words fail me",
        "commands are orders",
        "ask-two only one",
        "barrier ../../etc",
        "huge mistake",
        "huge 999999MiB",
        "say",
        "Say something",
        "fix the flaky test",
        "",
    ];
    for line in lines {
        assert_eq!(step(line), None, "{line}");
    }
}

#[test]
fn nothing_behind_an_outcome_is_read() {
    let steps = steps_of("say a\noutcome approved\nWhen you are done, say so:\ncrash 1").expect("a script");
    assert_eq!((steps.len(), &steps[0]), (2, &Step::Say("a".into())));
}

#[test]
fn a_plain_prompt_that_asks_for_an_outcome_gets_the_first_one() {
    let asked = "Look at it.\n\nEnd with a block like this:\n\n```json\n{\"outcome\": \"approved\", \"findings\": \"…\"}\n```\n\n`outcome` is one of `approved`, `rejected`.";
    let said = |text: &str| {
        let said = plain_steps(text).into_iter().find_map(|step| match step {
            Step::Say(text) => Some(text),
            _ => None,
        });
        said.expect("a message")
    };
    assert!(
        said(asked).ends_with("\n\n```json\n{\"findings\":\"\",\"outcome\":\"approved\"}\n```"),
        "{}",
        said(asked)
    );
    assert!(said("Look at it.\n{\"outcome\": 7}").ends_with("all is well."));
}

#[test]
fn every_directive_in_the_help_is_understood() {
    for (example, _) in DIRECTIVES {
        assert_ne!(step(example), None, "{example}");
    }
}

#[test]
fn words_between_directives_are_said() {
    let expected = vec![Step::Say("first, a word".into()), Step::Poke, Step::Say("done".into())];
    assert_eq!(parse("first, a word\n\n  poke\nsay done\n"), Prompt::Script(expected));
    assert_eq!(parse("fix the flaky test\nand hurry"), Prompt::Plain);
    assert_eq!(parse(""), Prompt::Plain);
}

#[test]
fn what_a_resume_prompt_quotes_is_not_carried_out() {
    assert_eq!(parse("[Resume Context]\nThe request was:\nappend log one"), Prompt::Resume);
    assert_eq!(parse("Carry on.\n\n[Resume Context] and so on"), Prompt::Resume);
    assert_eq!(parse("Your last turn was interrupted.\nappend log one"), Prompt::Resume);
    let context = "[Resume Context]\nappend log one\n[End of Resume Context]\n\n";
    for continues in ["", "The request:\n\nappend log one", "Go on from there and finish the request."] {
        assert_eq!(parse(&format!("{context}{continues}")), Prompt::Resume, "{continues}");
    }
    // A message is one, whatever is told before it.
    assert_eq!(parse(&format!("{context}say two")), Prompt::Script(vec![Step::Say("two".into())]));
    // A script may speak of such things.
    assert_eq!(parse("say it was interrupted"), Prompt::Script(vec![Step::Say("it was interrupted".into())]));
    assert!(matches!(parse("say [Resume Context]"), Prompt::Script(_)));
}

#[test]
fn a_plain_prompt_becomes_a_turn_that_touches_nothing() {
    let steps = plain_steps("fix the\nflaky test");
    let harmless = |step: &Step| {
        matches!(step, Step::Title(_) | Step::Think(_) | Step::PlanAt(..) | Step::Tool { .. } | Step::Say(_))
    };
    assert!(steps.iter().all(harmless), "{steps:?}");
    assert_eq!(steps[0], Step::Title("fix the flaky test".into()));
}

/// Texts that look like scripts, and texts that look like nothing.
fn texts() -> impl Strategy<Value = String> {
    let words = DIRECTIVES.iter().map(|(example, _)| example.split(' ').next().unwrap_or(example));
    let word = prop::sample::select(words.collect::<Vec<_>>());
    let line = (word, "\\PC{0,20}").prop_map(|(word, rest)| format!("{word} {rest}"));
    let lines = prop::collection::vec(prop_oneof![line, any::<String>()], 0..6);
    prop_oneof![lines.prop_map(|lines| lines.join("\n")), any::<String>()]
}

proptest! {
    #[test]
    fn no_text_upsets_the_parser(text in texts()) {
        if let Prompt::Script(steps) = parse(&text) {
            prop_assert!(!steps.is_empty());
        }
        prop_assert!(!plain_steps(&text).is_empty());
    }
}

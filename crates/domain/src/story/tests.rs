//! Stories, as agents are told them.

use super::*;

fn story(records: &[(&str, &str)]) -> Story {
    let mut story = Story::default();
    for (kind, record) in records {
        story.note(&Event::read(kind, record).expect("a record"));
    }
    story
}

const MESSAGE: (&str, &str) = ("message.user", r#"{"message_id":"msg_1","content":"fix the test"}"#);
const RUN: (&str, &str) =
    ("run.started", r#"{"run_id":"run_1","boot_id":"boot_1","message_id":"msg_1","attempt":1}"#);
const DONE: (&str, &str) =
    ("tool.call", r#"{"tool_call_id":"t1","title":"read the test","status":"completed"}"#);
const BEGUN: (&str, &str) =
    ("tool.call", r#"{"tool_call_id":"t2","title":"rm -rf build","status":"in_progress"}"#);
const SAID: (&str, &str) =
    ("message.agent", r#"{"message_id":"msg_2","content":"I found it","partial":true}"#);

const CUT: (&str, &str) = (
    "run.interrupted",
    r#"{"run_id":"run_1","reason":"agent_exit","uncertain":[{"tool_call_id":"t2","title":"rm -rf build"}]}"#,
);

#[test]
fn a_continuation_says_what_is_done_what_is_uncertain_and_where_it_was_cut() {
    let story = story(&[MESSAGE, RUN, DONE, BEGUN, SAID, CUT]);
    let text = story.continuation(2, false);
    for words in ["fix the test", "attempt 2", "- read the test", "- rm -rf build", "I found it"] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }
    let (done, uncertain) = text.split_once("not known").expect("both lists");
    assert!(!done.contains("rm -rf") && uncertain.contains("rm -rf"));
    let short = story.continuation(2, true);
    assert!(!short.contains("fix the test"), "one who was there remembers the request: {short}");
    assert!(short.contains("- rm -rf build"));
}

#[test]
fn a_digest_tells_the_turns_before_the_newest() {
    let second = ("message.user", r#"{"message_id":"msg_3","content":[{"type":"text","text":"and now?"}]}"#);
    let run = ("run.started", r#"{"run_id":"run_2","boot_id":"boot_1","message_id":"msg_3","attempt":1}"#);
    let one = story(&[MESSAGE, RUN, DONE, SAID]);
    assert!(!one.has_past());
    let two = story(&[MESSAGE, RUN, DONE, SAID, second, run]);
    assert!(two.has_past());
    let text = two.digest();
    assert!(text.contains("fix the test") && text.contains("I found it") && !text.contains("and now"));
}

const AGAIN: (&str, &str) = ("message.user", r#"{"message_id":"msg_3","content":"and now?"}"#);
const NEXT: (&str, &str) =
    ("run.started", r#"{"run_id":"run_3","boot_id":"boot_1","message_id":"msg_3","attempt":1}"#);
const SENT: (&str, &str) = (
    "input.queued",
    r#"{"run_id":"run_1","holder_id":"h_1","input_seq":3,"what":"prompt","line":"x","sha256":"x"}"#,
);
const CANCELLED: (&str, &str) = ("run.cancelled", r#"{"run_id":"run_1"}"#);

#[test]
fn a_turn_that_was_cancelled_before_anybody_heard_of_it_is_not_told() {
    let unheard = story(&[MESSAGE, RUN, CANCELLED, AGAIN, NEXT]);
    assert!(!unheard.has_past(), "{}", unheard.digest());
    let heard = story(&[MESSAGE, RUN, SENT, SAID, CANCELLED, AGAIN, NEXT]).digest();
    assert!(heard.contains("fix the test\n(cancelled by the user)\n"), "{heard}");
}

#[test]
fn a_turn_is_told_as_cancelled_when_its_continuation_was() {
    let on = ("run.started", r#"{"run_id":"run_2","boot_id":"boot_1","attempt":2,"continues":"run_1"}"#);
    let ended = ("run.cancelled", r#"{"run_id":"run_2"}"#);
    let begun = story(&[MESSAGE, RUN, SENT, CUT, on, ended, AGAIN, NEXT]).digest();
    let asked = ("run.cancel_requested", r#"{"run_id":"run_1","why":"user"}"#);
    let owed = story(&[MESSAGE, RUN, SENT, CUT, asked, AGAIN, NEXT]).digest();
    for text in [begun, owed] {
        assert_eq!(text.matches("(cancelled by the user)").count(), 1, "{text}");
    }
}

#[test]
fn a_story_stays_short_however_long_the_log_is() {
    let mut story = Story::default();
    let long = "x".repeat(100_000);
    for number in 0..500 {
        let message = format!(r#"{{"message_id":"msg_{number}","content":"{long}"}}"#);
        let run = format!(
            r#"{{"run_id":"run_{number}","boot_id":"boot_1","message_id":"msg_{number}","attempt":1}}"#
        );
        story.note(&Event::read("message.user", &message).expect("a record"));
        story.note(&Event::read("run.started", &run).expect("a record"));
        let said = format!(r#"{{"message_id":"msg_9","content":"{long}"}}"#);
        story.note(&Event::read("message.agent", &said).expect("a record"));
    }
    assert!(story.digest().len() < 64_000, "{}", story.digest().len());
}

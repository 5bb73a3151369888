//! Records and words become pieces: nothing twice, nothing lost, nothing that does something to a terminal.

use std::sync::Arc;

use rekindle_store::blobs::Blobs;
use rekindle_store::disk::RealDisk;
use rekindle_store::layout::Layout;
use rekindle_wire::event::{Delta, DeltaKind};

use super::*;
use crate::live::run_end::RunEnd;

fn picture() -> Picture {
    Picture::new(Payloads::Here(Blobs::reading(Arc::new(RealDisk), Layout::new("/nowhere"))))
}

fn record(fields: &str) -> String {
    format!(r#"{{"seq":1,"ts":"2026-02-21T10:01:25.000Z",{fields}}}"#)
}

fn words(id: &str, text: &str, at: usize) -> Delta {
    Delta { run_id: None, message_id: id.into(), kind: DeltaKind::Message, text: text.into(), at }
}

fn whole(id: &str, text: &str) -> String {
    let text = serde_json::to_string(text).expect("JSON");
    record(&format!(r#""kind":"message.agent","message_id":"{id}","content":{text}"#))
}

/// Returns what goes to stdout.
fn answer(pieces: impl IntoIterator<Item = Piece>) -> String {
    let text = |piece| match piece {
        Piece::Answer(text) => text,
        Piece::AnswerEnd => "|".into(),
        _ => String::new(),
    };
    pieces.into_iter().map(text).collect()
}

fn lines(pieces: &[Piece]) -> Vec<&str> {
    pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Line((_, text)) | Piece::Tool(_, (_, text)) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_message_is_shown_once_as_words_and_then_the_rest() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_1", "Hel", 0)));
    shown += &answer(picture.messages.add_delta(words("msg_1", "lo \x1b[3", 3)));
    shown += &answer(picture.record(&whole("msg_1", "Hello \x1b[31mworld")));
    assert_eq!(shown, "Hello world|");
    assert_eq!(answer(picture.record(&whole("msg_2", "whole"))), "whole|");
}

#[test]
fn words_that_were_missed_are_made_good_by_the_record() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_1", "one ", 0)));
    picture.messages.forget_waiting();
    shown += &answer(picture.messages.add_delta(words("msg_1", "three ", 8)));
    shown += &answer(picture.record(&whole("msg_1", "one two three four")));
    assert_eq!(shown, "one two three four|");
}

#[test]
fn the_next_message_waits_for_the_end_of_the_one_that_is_shown() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_1", "o", 0)));
    assert!(shown.is_empty() && picture.messages.waits(), "something may come before it");
    shown += &answer(picture.messages.add_delta(words("msg_1", "ne ", 1)));
    shown += &answer(picture.messages.add_delta(words("msg_2", "three ", 0)));
    shown += &answer(picture.messages.add_delta(words("msg_3", "five", 0)));
    assert!(shown == "one " && !picture.messages.waits(), "{shown}");
    shown += &answer(picture.record(&whole("msg_1", "one two")));
    assert_eq!(shown, "one two|three ");
    shown += &answer(picture.messages.add_delta(words("msg_2", "four", 6)));
    shown += &answer(picture.record(&whole("msg_2", "three four")));
    assert_eq!(shown, "one two|three four|five");
    // A stream that was taken up again may tell of a message once more.
    shown += &answer(picture.messages.add_delta(words("msg_1", "one ", 0)));
    shown += &answer(picture.record(&whole("msg_3", "five")));
    assert_eq!(shown, "one two|three four|five|");
}

#[test]
fn the_end_of_a_message_that_nobody_heard_of_comes_before_the_next() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_2", "two", 0)));
    shown += &answer(picture.record(&whole("msg_1", "one")));
    assert_eq!(shown, "one|two");
    let _ = picture.record(&whole("msg_2", "two"));
    assert_eq!(answer(picture.messages.add_delta(words("msg_3", "three", 0))), "");
    assert_eq!(answer(picture.messages.show_waiting()), "three");
}

#[test]
fn a_message_that_never_became_a_record_holds_up_none_behind_it() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_1", "lost ", 0)));
    shown += &answer(picture.messages.show_waiting());
    shown += &answer(picture.messages.add_delta(words("msg_2", "kept", 0)));
    shown += &answer(picture.record(&whole("msg_2", "kept")));
    assert_eq!(shown, "lost kept|");
    let _ = picture.record(&record(r#""kind":"run.failed","run_id":"run_1","error":"x""#));
    let _ = picture.messages.add_delta(words("msg_3", "next", 0));
    assert_eq!(answer(picture.messages.show_waiting()), "next");
}

#[test]
fn words_that_say_where_they_stand_are_shown_at_once_and_once() {
    let mut picture = picture();
    let mut shown = answer(picture.messages.add_delta(words("msg_1", "one ", 0)));
    picture.messages.forget_waiting();
    // A successor tells everything again; then something is missing.
    shown += &answer(picture.messages.add_delta(words("msg_1", "one two ", 0)));
    shown += &answer(picture.messages.add_delta(words("msg_1", "four", 14)));
    assert_eq!(shown, "one two ");
    shown += &answer(picture.record(&whole("msg_1", "one two three four")));
    assert_eq!(shown, "one two three four|");
}

#[test]
fn a_message_whose_beginning_was_missed_is_told_again() {
    let mut picture = picture();
    let _ = picture.messages.add_delta(words("msg_1", "middle", 0));
    let _ = picture.messages.show_waiting();
    let pieces = picture.record(&whole("msg_1", "the middle of it"));
    assert_eq!(lines(&pieces), ["(the message again, from its beginning)"]);
    assert_eq!(answer(pieces), "the middle of it|");
}

#[test]
fn a_tool_call_is_a_line_with_a_mark() {
    let mut picture = picture();
    let mut shown = Vec::new();
    for fields in [
        r#""kind":"tool.call","tool_call_id":"t1","title":"cargo\u001b[2J test","status":"pending""#,
        r#""kind":"tool.update","tool_call_id":"t1","status":"in_progress""#,
        r#""kind":"tool.update","tool_call_id":"t1","title":"cargo test -p x""#,
        r#""kind":"tool.update","tool_call_id":"t1","status":"failed""#,
        r#""kind":"tool.call","tool_call_id":"t2","title":"edit","status":"completed","raw":{"content":[{"type":"diff","path":"a","newText":"x\n"}]}"#,
        r#""kind":"tool.update","tool_call_id":"t2","raw":{"content":[{"type":"diff","path":"a","newText":"x\n"}]}"#,
    ] {
        shown.extend(picture.record(&record(fields)));
    }
    assert_eq!(
        lines(&shown),
        [
            "▸ cargo test",
            "▸ cargo test -p x",
            "✗ cargo test -p x",
            "✓ edit",
            "  new a",
            "  @@ -0,0 +1 @@",
            "  +x"
        ]
    );
}

#[test]
fn what_happens_to_a_run_is_said_in_one_line_each() {
    let mut picture = picture();
    for (fields, expected) in [
        (
            r#""kind":"run.adopted","run_id":"run_1","boot_id":"boot_2","gap":12"#,
            "a new daemon took over the run; nothing is lost",
        ),
        (r#""kind":"run.failed","run_id":"run_1","error":"it\ndid""#, "failed: it did"),
        (r#""kind":"run.cancelled","run_id":"run_1","by":"user""#, "cancelled by you"),
        (r#""kind":"message.user","message_id":"msg_1","content":"do it""#, "> do it"),
        (
            r#""kind":"session.restored","method":"load","verdict":"shorter""#,
            "the agent does not remember all of the conversation",
        ),
    ] {
        assert_eq!(lines(&picture.record(&record(fields))), [expected]);
    }
    let cut = r#""kind":"run.interrupted","run_id":"run_1","reason":"agent_exit","uncertain":[{"tool_call_id":"t","title":"rm"}]"#;
    let pieces = picture.record(&record(cut));
    assert_eq!(
        lines(&pieces),
        ["interrupted: the agent's process ended", "  may or may not have happened: rm"]
    );
    assert_eq!(pieces.last(), Some(&Piece::Ended("run_1".into(), RunEnd::Interrupted)));
}

#[test]
fn a_wait_is_asked_and_answered() {
    let mut picture = picture();
    let asked = r#""kind":"run.waiting","run_id":"run_1","wait_id":"wait_1","wait_kind":"permission","resume_token_id":"rt_1","request":{"params":{"options":[{"optionId":"a","name":"Yes"}]}}"#;
    let pieces = picture.record(&record(asked));
    let [Piece::Asked(ask)] = pieces.as_slice() else { panic!("one question: {pieces:?}") };
    assert_eq!((ask.wait_id.as_str(), ask.choices.len()), ("wait_1", 1));
    let over = r#""kind":"run.resumed","run_id":"run_1","wait_id":"wait_1","how":"answered","by":"web","answer":"{\"result\":{\"outcome\":{\"optionId\":\"a\"}}}""#;
    let pieces = picture.record(&record(over));
    let [Piece::AskOver(over)] = pieces.as_slice() else { panic!("one end: {pieces:?}") };
    assert_eq!((over.wait_id.as_str(), over.text(ask).as_str()), ("wait_1", "answered by web: Yes"));
}

#[test]
fn rubbish_is_named_and_survived() {
    assert_eq!(lines(&picture().record("not a record")), ["a record cannot be read"]);
    assert_eq!(picture().record(&record(r#""kind":"galaxy.merged","stars":5"#)), []);
}

#[test]
fn a_long_prompt_is_shown_by_its_beginning() {
    let said = |text: &str| {
        let text = serde_json::to_string(text).expect("plain");
        let user = format!(r#""kind":"message.user","message_id":"msg_1","content":{text}"#);
        let pieces = picture().record(&record(&user));
        lines(&pieces).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said("one\ntwo\n"), ["> one", "> two"]);
    let twenty: String = (1..=20).map(|n| format!("{n}\n")).collect();
    assert_eq!(said(&twenty).len(), 20);
    let many = said(&format!("{twenty}21"));
    assert_eq!(many.len(), 21);
    assert_eq!(
        (many[19].as_str(), many[20].as_str()),
        ("> 20", "> … (21 lines, 53 bytes; rekindle log shows all of it)")
    );
    let long = said(&"ü".repeat(5000));
    assert_eq!((long.len(), long[0].chars().count()), (2, 2002));
    assert_eq!(long[1], "> … (1 line, 9.8 KiB; rekindle log shows all of it)");
}

#[test]
fn what_an_agent_says_in_events_is_seen_and_how_often_it_says_that_it_lives_is_not() {
    let mut picture = picture();
    let mut shown = |what: &str, text: &str| {
        let pieces =
            picture.record(&record(&format!(r#""kind":"agent.notice","what":"{what}","text":"{text}""#)));
        lines(&pieces).join("|")
    };
    assert_eq!(shown("late_event", "b.failed"), "late event: b.failed");
    assert_eq!(shown("log", "info: \\u001b[2Jhello"), "log: info: hello");
    assert_eq!(
        (shown("terminal_event", "b.completed"), shown("heartbeats", "3 so far")),
        (String::new(), String::new())
    );
}

#[test]
fn a_change_that_stands_right_above_is_not_shown_again_by_its_question() {
    let content = r#"[{"type":"diff","path":"a","newText":"x\n"}]"#;
    let call = format!(
        r#""kind":"tool.call","tool_call_id":"t1","title":"edit a","status":"pending","raw":{{"content":{content}}}"#
    );
    let asked = format!(
        r#""kind":"run.waiting","run_id":"run_1","wait_id":"wait_1","wait_kind":"permission","resume_token_id":"rt_1","request":{{"params":{{"toolCall":{{"title":"edit a","content":{content}}},"options":[]}}}}"#
    );
    let question = |picture: &mut Picture| {
        let pieces = picture.record(&record(&asked));
        let [Piece::Asked(ask)] = pieces.as_slice() else { panic!("one question: {pieces:?}") };
        ask.lines.iter().map(|(_, line)| line.clone()).collect::<Vec<_>>()
    };
    let head = "The agent asks for permission: edit a";
    let whole = [head, "  new a", "  @@ -0,0 +1 @@", "  +x"];
    let mut told = picture();
    assert_eq!(lines(&told.record(&record(&call))), ["▸ edit a", "  new a", "  @@ -0,0 +1 @@", "  +x"]);
    assert_eq!(question(&mut told), [head, "  the change is shown above"]);
    // Whoever sees only the question, or something else between, is told.
    assert_eq!(question(&mut picture()), whole);
    let mut told = picture();
    let _ = told.record(&record(&call));
    let _ = told.record(&self::whole("msg_1", "words"));
    assert_eq!(question(&mut told), whole);
}

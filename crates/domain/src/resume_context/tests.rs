//! Stories, as agents are told them.

use super::*;
use crate::event::Drift;

fn story(records: &[(&str, &str)]) -> ConversationHistory {
    let mut story = ConversationHistory::default();
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
    r#"{"run_id":"run_1","reason":"agent_exit","uncertain":[{"tool_call_id":"t2","title":"Shell","input":"rm -rf build"}]}"#,
);

#[test]
fn a_continuation_says_what_is_done_what_is_uncertain_and_where_it_was_cut() {
    let cut = [LAUNCH, MESSAGE, RUN, SENT, DONE, BEGUN, SAID, CUT, AGAIN_LAUNCH];
    let told = story(&cut).continuation(2, None);
    assert!(told.with_request, "one who was not there needs the request: {told:?}");
    let text = told.before;
    for words in ["attempt 2", "- read the test", "- Shell: rm -rf build", "I found it", "The request:"] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }
    let (done, uncertain) = text.split_once("not known").expect("both lists");
    assert!(!done.contains("rm -rf") && uncertain.contains("rm -rf"));
    let short = story(&[&cut[..], &[loaded("continued", 2, 2, Some(true))]].concat()).continuation(2, None);
    assert!(!short.with_request, "one who has shown it remembers the request: {short:?}");
    assert!(short.before.contains("rm -rf build"));
}

#[test]
fn files_that_the_cut_turn_touched_are_told_apart_from_those_that_somebody_else_may_have_touched() {
    let touched = |how: &str| {
        let first = r#"[{"path":"src/a.rs","change":"modified","lines_added":1,"lines_removed":0}]"#;
        let touched = format!(r#"{{"total":1,"lines_added":1,"lines_removed":0,"first":{first}}}"#);
        format!(r#"{{"run_id":"run_1","at":"end","how":"{how}","root":"/w","files_touched":{touched}}}"#)
    };
    for (how, told) in [("live", true), ("late", false)] {
        let record = touched(how);
        let records = [LAUNCH, MESSAGE, RUN, SENT, CUT, ("run.checkpoint", record.as_str()), AGAIN_LAUNCH];
        let text = story(&records).continuation(2, None).before;
        assert_eq!(text.contains("Files touched:\n- /w/src/a.rs\n"), told, "{how}: {text}");
        let doubtful = "by it or by somebody else: no daemon was running when it ended:\n- /w/src/a.rs\n";
        assert_eq!(text.contains(doubtful), !told, "{how}: {text}");
    }
}

#[test]
fn the_request_is_told_unless_the_replay_has_shown_it() {
    let cut = [LAUNCH, MESSAGE, RUN, SENT, CUT, AGAIN_LAUNCH];
    for (how, restored, past, request) in [
        ("nothing was brought back", None, false, false),
        ("all is there", Some(loaded("continued", 2, 2, Some(true))), true, true),
        ("the prompt that was cut is missing", Some(loaded("shorter", 2, 2, Some(false))), true, false),
        ("an earlier turn is missing", Some(loaded("shorter", 2, 1, Some(true))), false, true),
        ("an empty load", Some(empty()), false, false),
        ("no replay at all", Some(loaded("unverified", 2, 0, Some(false))), true, false),
    ] {
        let story = story(&[&cut[..], restored.as_slice()].concat());
        assert_eq!(story.memory(), Memory { past, request }, "{how}");
        assert_eq!(story.continuation(2, None).with_request, !request, "{how}");
    }
}

#[test]
fn a_new_agent_is_told_of_earlier_turns_and_each_step_once() {
    let first = ("message.user", r#"{"message_id":"msg_0","content":"look around"}"#);
    let run = ("run.started", r#"{"run_id":"run_0","boot_id":"boot_1","message_id":"msg_0","attempt":1}"#);
    let answer = ("message.agent", r#"{"message_id":"msg_9","content":"a parser"}"#);
    let edit = (
        "tool.call",
        r#"{"tool_call_id":"t5","title":"Edit","status":"completed","input":"src/a.rs","files":["/w/src/a.rs"]}"#,
    );
    let again = (
        "tool.call",
        r#"{"tool_call_id":"t6","title":"Edit","status":"completed","input":"src/a.rs","files":["/w/src/a.rs"]}"#,
    );
    let on = ("run.started", r#"{"run_id":"run_2","boot_id":"boot_1","attempt":2,"continues":"run_1"}"#);
    let more = ("message.agent", r#"{"message_id":"msg_8","content":"and more","partial":true}"#);
    let cut = ("run.interrupted", r#"{"run_id":"run_2","reason":"agent_exit"}"#);
    let log = [
        LAUNCH,
        first,
        run,
        answer,
        MESSAGE,
        RUN,
        SENT,
        edit,
        SAID,
        CUT,
        AGAIN_LAUNCH,
        on,
        again,
        more,
        cut,
        AGAIN_LAUNCH,
    ];
    let text = story(&log).continuation(3, None).before;
    for (words, times) in [
        ("User: look around", 1),
        ("Agent: a parser", 1),
        ("attempt 1 before the cut:\nI found it", 1),
        ("attempt 2 before the cut:\nand more", 1),
        ("- Edit: src/a.rs", 1),
        ("- /w/src/a.rs", 1),
        ("rm -rf build", 1),
        ("attempt 3", 1),
    ] {
        assert_eq!(text.matches(words).count(), times, "{words:?} in {text}");
    }
    let loaded =
        story(&[&log[..], &[loaded("continued", 2, 2, Some(true))]].concat()).continuation(3, None).before;
    assert!(!loaded.contains("look around"), "who remembers is not told again: {loaded}");
}

#[test]
fn a_question_that_nobody_answered_is_to_be_asked_again() {
    let waiting = (
        "run.waiting",
        r#"{"run_id":"run_1","wait_id":"wait_1","wait_kind":"permission","resume_token_id":"rt_1","tool_call_id":"t2"}"#,
    );
    let answered =
        ("run.resumed", r#"{"run_id":"run_1","wait_id":"wait_1","how":"answered","granted":true}"#);
    let cut = ("run.interrupted", r#"{"run_id":"run_1","reason":"agent_exit"}"#);
    let open =
        story(&[LAUNCH, MESSAGE, RUN, SENT, BEGUN, waiting, cut, AGAIN_LAUNCH]).continuation(2, None).before;
    assert!(
        open.contains("nobody had answered. Ask again before you continue with it:\n- rm -rf build\n"),
        "{open}"
    );
    let settled = story(&[LAUNCH, MESSAGE, RUN, SENT, BEGUN, waiting, answered, CUT, AGAIN_LAUNCH])
        .continuation(2, None)
        .before;
    assert!(!settled.contains("nobody had answered"), "{settled}");
}

#[test]
fn a_message_comes_with_what_the_agent_has_forgotten() {
    let log = [LAUNCH, MESSAGE, RUN, SENT, SAID, CUT, AGAIN, NEXT, AGAIN_LAUNCH];
    let with =
        |restored: (&'static str, &'static str)| story(&[&log[..], &[restored]].concat()).preface(None);
    assert_eq!(with(loaded("continued", 2, 2, Some(true))), None);
    let forgotten = with(loaded("shorter", 2, 2, Some(false))).expect("a preface");
    assert!(forgotten.contains("fix the test\n(interrupted)\n"), "{forgotten}");
    assert!(with(empty()).is_some());
}

#[test]
fn what_is_left_out_is_named() {
    let mut long = story(&[LAUNCH]);
    for number in 0..20 {
        let message = format!(r#"{{"message_id":"msg_{number}","content":"request {number}"}}"#);
        let run = format!(
            r#"{{"run_id":"run_{number}","boot_id":"boot_1","message_id":"msg_{number}","attempt":1}}"#
        );
        long.note(&Event::read("message.user", &message).expect("a record"));
        long.note(&Event::read("run.started", &run).expect("a record"));
    }
    long.note(&Event::read(AGAIN_LAUNCH.0, AGAIN_LAUNCH.1).expect("a record"));
    let text = long.preface(None).expect("a preface");
    assert!(text.contains("(8 earlier turns are left out here.)"), "{text}");
    assert!(text.contains("request 18") && !text.contains("request 7\n"), "{text}");
}

const LAUNCH: (&str, &str) = ("agent.launching", r#"{"holder_id":"h_1"}"#);
const AGAIN_LAUNCH: (&str, &str) = ("agent.launching", r#"{"holder_id":"h_2"}"#);

fn loaded(verdict: &str, expected: u64, found: u64, shown: Option<bool>) -> (&'static str, &'static str) {
    let shown = shown.map(|shown| format!(r#","request_shown":{shown}"#)).unwrap_or_default();
    let counts =
        format!(r#"{{"expected":{expected},"found":{found},"prompts":1,"answers":1,"tools":0{shown}}}"#);
    let text = format!(r#"{{"method":"load","verdict":"{verdict}","counts":{counts}}}"#);
    ("session.restored", text.leak())
}

fn empty() -> (&'static str, &'static str) {
    let counts = r#"{"expected":2,"found":0,"prompts":0,"answers":0,"tools":0,"request_shown":false}"#;
    ("session.restored", format!(r#"{{"method":"load","verdict":"shorter","counts":{counts}}}"#).leak())
}

#[test]
fn a_digest_tells_the_turns_before_the_newest() {
    let second = ("message.user", r#"{"message_id":"msg_3","content":[{"type":"text","text":"and now?"}]}"#);
    let run = ("run.started", r#"{"run_id":"run_2","boot_id":"boot_1","message_id":"msg_3","attempt":1}"#);
    let one = story(&[LAUNCH, MESSAGE, RUN, DONE, SAID, AGAIN_LAUNCH]);
    assert!(!one.has_past() && one.preface(None).is_none());
    let two = story(&[LAUNCH, MESSAGE, RUN, DONE, SAID, second, run, AGAIN_LAUNCH]);
    assert!(two.has_past());
    let text = two.preface(None).expect("a preface");
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
    let unheard = story(&[LAUNCH, MESSAGE, RUN, CANCELLED, AGAIN, NEXT, AGAIN_LAUNCH]);
    assert!(!unheard.has_past(), "{:?}", unheard.preface(None));
    let heard = story(&[LAUNCH, MESSAGE, RUN, SENT, SAID, CANCELLED, AGAIN, NEXT, AGAIN_LAUNCH]);
    let heard = heard.preface(None).expect("a preface");
    assert!(heard.contains("fix the test\n(cancelled by the user)\n"), "{heard}");
}

#[test]
fn a_turn_is_told_as_cancelled_when_its_continuation_was() {
    let on = ("run.started", r#"{"run_id":"run_2","boot_id":"boot_1","attempt":2,"continues":"run_1"}"#);
    let ended = ("run.cancelled", r#"{"run_id":"run_2"}"#);
    let begun = story(&[LAUNCH, MESSAGE, RUN, SENT, CUT, on, ended, AGAIN, NEXT, AGAIN_LAUNCH]);
    let asked = ("run.cancel_requested", r#"{"run_id":"run_1","why":"user"}"#);
    let owed = story(&[LAUNCH, MESSAGE, RUN, SENT, CUT, asked, AGAIN, NEXT, AGAIN_LAUNCH]);
    for text in [begun, owed].map(|story| story.preface(None).expect("a preface")) {
        assert_eq!(text.matches("(cancelled by the user)").count(), 1, "{text}");
    }
}

#[test]
fn a_story_stays_short_however_long_the_log_is() {
    let mut story = ConversationHistory::default();
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
    for launch in [LAUNCH, AGAIN_LAUNCH] {
        story.note(&Event::read(launch.0, launch.1).expect("a record"));
    }
    let told = story.preface(None).expect("a preface");
    assert!(told.len() < 64_000, "{}", told.len());
}

#[test]
fn drift_is_told_in_brief_and_a_message_is_left_alone_for_what_is_none_of_the_work() {
    let drift = |text: &str| serde_json::from_str::<Drift>(text).expect("a drift");
    let first: Vec<String> =
        (0..12).map(|number| format!(r#"{{"path":"src/{number}.rs","change":"modified"}}"#)).collect();
    let files = drift(&format!(r#"{{"files":{{"total":300,"first":[{}]}}}}"#, first.join(",")));
    let settings = drift(r#"{"settings":[{"name":"mode","from":null,"to":"plan"}]}"#);
    let cut = [LAUNCH, MESSAGE, RUN, SENT, CUT, AGAIN_LAUNCH];
    let text = story(&cut).continuation(2, Some(&files)).before;
    assert!(
        text.contains("src/9.rs, and 290 more.\n[End of Resume Context]") && !text.contains("src/10.rs"),
        "{text}"
    );
    assert!(story(&cut).continuation(2, Some(&settings)).before.contains("- Settings were changed: mode.\n"));

    let next = [LAUNCH, MESSAGE, RUN, SENT, SAID, AGAIN, NEXT, AGAIN_LAUNCH, loaded("continued", 2, 2, None)];
    assert_eq!(story(&next).preface(None), None);
    assert_eq!(story(&next).preface(Some(&settings)), None, "the message is the person's");
    let text = story(&next).preface(Some(&files)).expect("a preface");
    assert!(
        text.starts_with("[Resume Context]\n\nSince the last turn, and not by you:\n- Changed files"),
        "{text}"
    );
    let told = story(&next[..8]).preface(Some(&settings)).expect("a preface");
    assert!(told.contains("fix the test") && told.contains("Settings were changed: mode."), "{told}");
}

#[test]
fn every_drift_has_its_words() {
    let told = |text: &str| {
        let drift = serde_json::from_str::<Drift>(text).expect("a drift");
        let mut told = String::new();
        super::drift_text::write_drift(&mut told, Some(&drift));
        told.trim_start_matches("\nSince the last turn, and not by you:\n- ").trim_end().to_owned()
    };
    for (drift, words) in [
        (
            r#"{"directory":{"change":"moved","from":"/a","to":"/b"}}"#,
            "The working directory was /a and is /b.",
        ),
        (
            r#"{"directory":{"change":"replaced","from":"/a","to":"/a"}}"#,
            "/a is a different directory than before.",
        ),
        (
            r#"{"directory":{"change":"other_file_system","from":"/a","to":"/a"}}"#,
            "/a is on a different file system than before.",
        ),
        (
            r#"{"files":{"total":2,"first":[{"path":"a","change":"added"},{"path_b64":"Yf8=","change":"deleted"}]}}"#,
            "Changed files, to be read again before you rely on them: a (new), a\u{fffd} (deleted).",
        ),
        (
            r#"{"files_unknown":"slow"}"#,
            "Files may have changed; which is not known: slow. Look before you rely on what you know of them.",
        ),
        (
            r#"{"git":{"from":{"ref":"refs/heads/main","commit":"0123456789abcdef"},"to":{"commit":"ff"}}}"#,
            "The HEAD of git was main at 0123456789ab and is detached at ff.",
        ),
        (
            r#"{"git":{"from":null,"to":{"ref":"refs/heads/x"}}}"#,
            "The HEAD of git was in no repository and is x without a commit.",
        ),
        (r#"{"agent":{"from":"claude 1","to":"claude 2"}}"#, "You were claude 1 and are claude 2."),
    ] {
        assert_eq!(told(drift), words);
    }
}

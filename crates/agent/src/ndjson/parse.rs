//! One line of an `ndjson` agent: an event, a heartbeat, a log line, an artifact, or something that is none of them. Nothing an agent
//! writes is an error of ours: what cannot be read is recorded as it stands, with what is wrong about it.

use std::borrow::Cow;

use rekindle_holder::journal::OutFlags;
use serde_json::value::RawValue;

use super::command::MAX_ID;
use super::{ARTIFACT, LOG};
use crate::json::{Object, cut, parse_text, short};
use crate::said::Said;

/// How much is shown of a line that cannot be read, and of a log line: its record has all of it.
const MAX_SHOWN: usize = 4 << 10;
/// Longest type of an event.
const MAX_TYPE: usize = 256;
/// Longest status of a heartbeat and longest level of a log line.
const MAX_WORD: usize = 64;

/// What a line is called that is no message.
const NOISE: &str = "noise";

/// Reads a line.
pub(super) fn line(line: &str, flags: OutFlags) -> Vec<Said<'_>> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let whole = serde_json::from_str::<&RawValue>(line);
    let (false, Ok(whole), Some(object)) = (flags.truncated, whole, Object::parse(line)) else {
        let what = match flags {
            OutFlags { truncated: true, .. } => "truncated_line",
            OutFlags { unterminated: true, .. } => "unterminated_line",
            OutFlags { .. } => NOISE,
        };
        return vec![Said::Notice { what, text: Some(cut(line, MAX_SHOWN)), raw: None, update: false }];
    };
    match object.text("kind").as_deref() {
        Some("event") => event(whole, &object),
        Some("heartbeat") => {
            let status = object.text("status").unwrap_or_default();
            vec![Said::Heartbeat { status: short(status, MAX_WORD) }]
        }
        Some("log") => {
            let level = object.text("level").filter(|level| !level.is_empty());
            let level = short(level.unwrap_or(Cow::Borrowed("info")), MAX_WORD);
            let message = object.text("message").unwrap_or_default();
            let text = format!("{level}: {}", cut(&message, MAX_SHOWN));
            vec![Said::Notice { what: LOG, text: Some(text.into()), raw: Some(whole), update: false }]
        }
        Some("artifact") => {
            // Whether it is one is asked when the step ends: what is wrong with it is the step's error.
            let path = object.text("path").map(|path| short(path, MAX_SHOWN));
            vec![Said::Notice { what: ARTIFACT, text: path, raw: Some(whole), update: false }]
        }
        Some(other) => odd(whole, format!("{:?} is not a kind of message", cut(other, MAX_WORD))),
        None => odd(whole, "a message without a kind".to_owned()),
    }
}

/// Reads an event: what it is about, what it is, and what its payload says came of that.
fn event<'a>(whole: &'a RawValue, object: &Object<'a>) -> Vec<Said<'a>> {
    let Some(event_type) = object.text("event_type").filter(|word| !word.is_empty()) else {
        return odd(whole, "an event without event_type".to_owned());
    };
    if event_type.len() > MAX_TYPE {
        return odd(whole, format!("an event whose event_type is longer than {MAX_TYPE} bytes"));
    }
    let payload = object.object("payload");
    let text = |name: &&str| payload.text(name).filter(|text| !text.is_empty()).map(Cow::into_owned);
    let text = ["summary", "message", "error"].iter().find_map(text);
    let usage = payload.raw("usage").map(|raw| {
        let usage = payload.object("usage");
        let (input, output) = (usage.number("input_tokens"), usage.number("output_tokens"));
        let cost = usage.raw("cost").and_then(parse_text::<f64>);
        let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        Said::Usage { input, output, cost, raw }
    });
    let event = Said::Event {
        // A longer one is nobody's: ours are short.
        about: object.text("correlation_id").filter(|id| id.len() <= MAX_ID),
        event_type,
        outcome: payload.text("outcome"),
        text,
        raw: whole,
    };
    std::iter::once(event).chain(usage).collect()
}

/// Returns the notice of a message that is none of those that there are.
fn odd(whole: &RawValue, why: String) -> Vec<Said<'_>> {
    vec![Said::Notice { what: NOISE, text: Some(why.into()), raw: Some(whole), update: false }]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heard(text: &str) -> String {
        told(text, OutFlags::default())
    }

    /// What a line says, in short.
    fn told(text: &str, flags: OutFlags) -> String {
        let short = |said: &Said<'_>| match said {
            Said::Event { about, event_type, outcome, text, .. } => format!(
                "event {event_type} about {} outcome {} text {}",
                about.as_deref().unwrap_or("-"),
                outcome.as_deref().unwrap_or("-"),
                text.as_deref().unwrap_or("-"),
            ),
            Said::Heartbeat { status } => format!("heartbeat {status}"),
            Said::Notice { what, text, raw, .. } => {
                format!("{what} {} {}", text.as_deref().unwrap_or("-"), raw.is_some())
            }
            Said::Usage { input, output, cost, .. } => format!("usage {input:?} {output:?} {cost:?}"),
            other => format!("{other:?}"),
        };
        line(text, flags).iter().map(short).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn messages_are_read_by_their_kind() {
        for (line, expected) in [
            (
                r#"{"kind":"event","message_id":"e1","correlation_id":"cmd-a-1-1","event_type":"b.completed","payload":{"outcome":"ok","summary":"done"}}"#,
                "event b.completed about cmd-a-1-1 outcome ok text done",
            ),
            (r#"{"kind":"event","event_type":"x"}"#, "event x about - outcome - text -"),
            (
                r#"{"kind":"event","event_type":"x","payload":[1],"correlation_id":7}"#,
                "event x about - outcome - text -",
            ),
            (
                r#"{"kind":"event","event_type":"x","payload":{"usage":{"input_tokens":5,"output_tokens":2,"cost":0.5}}}"#,
                "event x about - outcome - text -; usage Some(5) Some(2) Some(0.5)",
            ),
            (
                r#"{"kind":"event","event_type":"x","payload":{"usage":{"cost":-1}}}"#,
                "event x about - outcome - text -; usage None None None",
            ),
            (r#"{"kind":"event"}"#, "noise an event without event_type true"),
            (r#"{"kind":"event","event_type":7}"#, "noise an event without event_type true"),
            (r#"{"kind":"heartbeat","status":"busy","message_id":"hb"}"#, "heartbeat busy"),
            (r#"{"kind":"heartbeat"}"#, "heartbeat "),
            (r#"{"kind":"log","level":"warn","message":"m"}"#, "log warn: m true"),
            (r#"{"kind":"log"}"#, "log info:  true"),
            (r#"{"kind":"artifact","path":"a","sha256":"00"}"#, "artifact a true"),
            (r#"{"kind":"artifact"}"#, "artifact - true"),
            (r#"{"kind":"telegram"}"#, r#"noise "telegram" is not a kind of message true"#),
            (r#"{"event_type":"b.completed"}"#, "noise a message without a kind true"),
            ("[]", "noise [] false"),
            ("Compiling…", "noise Compiling… false"),
            ("  ", ""),
        ] {
            assert_eq!(heard(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_an_agent_writes_is_an_error_of_ours(
            text in ".*", kind in "event|heartbeat|log|artifact|[a-z]*", key in "event_type|payload|correlation_id|status|message|path",
            value in prop::sample::select(vec!["null", "7", r#""x""#, "[]", "{}", r#"{"outcome":7}"#, r#"{"usage":{"input_tokens":-1}}"#, r#"{"usage":[]}"#]),
        ) {
            line(&text, OutFlags::default());
            let message = format!(r#"{{"kind":"{kind}","{key}":{value}}}"#);
            prop_assert!(!line(&message, OutFlags::default()).is_empty(), "{}", message);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_or_nobodys() {
        let long = "x".repeat(5000);
        let event = |kind: &str, id: &str| {
            format!(r#"{{"kind":"event","event_type":"{kind}","correlation_id":"{id}"}}"#)
        };
        assert!(heard(&event(&long, "cmd")).starts_with("noise an event whose event_type is longer"));
        assert_eq!(heard(&event("b.completed", &long)), "event b.completed about - outcome - text -");
        let status = heard(&format!(r#"{{"kind":"heartbeat","status":"{long}"}}"#));
        assert!(status.len() < 200 && status.contains("(5000 bytes)"), "{status}");
        let log = heard(&format!(r#"{{"kind":"log","message":"{long}{long}"}}"#));
        assert!(log.len() < 5000, "{}", log.len());
        let cut = OutFlags { truncated: true, ..OutFlags::default() };
        assert!(told(r#"{"kind":"event","event_type":"b.completed"}"#, cut).starts_with("truncated_line"));
        let torn = OutFlags { unterminated: true, ..OutFlags::default() };
        assert!(told(r#"{"kind":"event","eve"#, torn).starts_with("unterminated_line"));
    }
}

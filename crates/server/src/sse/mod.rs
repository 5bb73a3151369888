//! Server-sent events: how news are written, and where a stream begins. Nothing is held back: whatever is written
//! goes out as soon as the connection takes it.

pub(crate) mod all_sessions;
mod events;
pub(crate) mod pipeline;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod task;

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use futures_util::stream::Stream;
use rekindle_service::feed::Told;
use rekindle_service::log::LogLine;
use rekindle_wire::event::{Reset, TooSlow};
use rekindle_wire::view::LogDamage;
use serde::Serialize;

pub use start::since;

/// How long nothing may be heard before a comment is sent: less than the half minute after which things between us
/// and a browser give up.
const PING: Duration = Duration::from_secs(15);

/// The comment.
const PING_FRAME: &[u8] = b": ping\n\n";

/// Writes what a follower is told as one event.
pub fn frame(told: &Told) -> Bytes {
    match told {
        Told::Record(line) => line.encoded(record),
        Told::Words(words) => words.encoded(|words| event("delta", words)),
        Told::Status(status) => event("status.derived", status.as_ref()),
        Told::Reset { last_seq } => reset(&Reset { last_seq: *last_seq }),
        Told::TooSlow => too_slow(),
        Told::Damaged(damage) => {
            event("damaged", &LogDamage { offset: damage.offset, detail: damage.detail.clone() })
        }
        Told::HistoryMissing(missing) => event("history_missing", missing),
        Told::Deleted => encode_frame(b"event: deleted\n", b"{}"),
    }
}

/// Tells whether nothing follows this.
pub fn is_last(told: &Told) -> bool {
    match told {
        Told::Record(_) | Told::Words(_) | Told::Status(_) | Told::HistoryMissing(_) => false,
        Told::Reset { .. } | Told::TooSlow | Told::Damaged(_) | Told::Deleted => true,
    }
}

/// Writes that a follower is to begin again. An empty id makes a browser forget the one it has: it comes back without, and begins at
/// the beginning.
fn reset(reset: &Reset) -> Bytes {
    encode_frame(b"event: reset\nid:\n", &serde_json::to_vec(reset).unwrap_or_default())
}

/// Writes that a follower is sent away.
fn too_slow() -> Bytes {
    event("too_slow", &TooSlow { hint: "connect again with the last id as Last-Event-ID".into() })
}

/// Returns a kind as the name of an event. It comes from a file; whatever stands there must not end the line.
fn kind_name(kind: &str) -> String {
    kind.chars().filter(|c| !c.is_control()).collect()
}

/// Writes a record: its kind, its place, and the line as it stands in the log.
fn record(line: &LogLine) -> Bytes {
    let (kind, seq) = (kind_name(&line.kind), line.seq);
    let head = match line.hash {
        Some(hash) => format!("event: {kind}\nid: {seq}.{hash}\n"),
        None => format!("event: {kind}\nid: {seq}\n"),
    };
    encode_frame(head.as_bytes(), line.line.as_bytes())
}

/// Writes an event that has no place in a log.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_vec(data).unwrap_or_else(|_| b"{}".to_vec());
    encode_frame(format!("event: {name}\n").as_bytes(), &data)
}

/// Puts head and data together; a line break in the data, which JSON allows between its words, begins a new field.
fn encode_frame(head: &[u8], data: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(head.len() + data.len() + 8);
    frame.extend_from_slice(head);
    for part in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        frame.extend_from_slice(b"data: ");
        frame.extend_from_slice(part);
        frame.push(b'\n');
    }
    frame.push(b'\n');
    frame.into()
}

/// Answers with a stream of events.
fn respond(stream: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that know it pass every event on at once.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rekindle_wire::event::{Delta, DeltaKind};

    use super::*;

    #[track_caller]
    fn check(told: &Told, expected: &str) {
        assert_eq!(std::str::from_utf8(&frame(told)), Ok(expected));
    }

    fn line(kind: &str, hash: Option<&str>, line: &str) -> Told {
        let hash = hash.map(|hash| hash.parse().expect("a hash"));
        Told::Record(Arc::new(LogLine { seq: 7, kind: kind.to_owned(), hash, line: line.to_owned() }.into()))
    }

    #[test]
    fn a_record_is_its_kind_its_place_and_its_line() {
        let told = line("run.started", Some("4df9e30ab1d947d5"), r#"{"seq":7,"kind":"run.started"}"#);
        check(
            &told,
            "event: run.started\nid: 7.4df9e30ab1d947d5\ndata: {\"seq\":7,\"kind\":\"run.started\"}\n\n",
        );
        check(&line("run.started", None, "{}"), "event: run.started\nid: 7\ndata: {}\n\n");
        assert!(!is_last(&told));
    }

    #[test]
    fn what_stands_in_a_file_cannot_forge_events() {
        check(
            &line("a\nevent: b\r", None, "{\n\"a\":\r1}"),
            "event: aevent: b\nid: 7\ndata: {\ndata: \"a\":\ndata: 1}\n\n",
        );
    }

    #[test]
    fn words_are_deltas_without_a_place() {
        let words = Delta {
            run_id: Some("run_1".to_owned()),
            message_id: "msg_1".to_owned(),
            kind: DeltaKind::Message,
            at: 0,
            text: "two\nlines".to_owned(),
        };
        let data = r#"{"run_id":"run_1","message_id":"msg_1","kind":"message","at":0,"text":"two\nlines"}"#;
        check(&Told::Words(Arc::new(words.into())), &format!("event: delta\ndata: {data}\n\n"));
    }

    #[test]
    fn the_last_events_say_what_to_do() {
        check(&Told::Reset { last_seq: 9 }, "event: reset\nid:\ndata: {\"last_seq\":9}\n\n");
        check(&Told::Deleted, "event: deleted\ndata: {}\n\n");
        let slow =
            "event: too_slow\ndata: {\"hint\":\"connect again with the last id as Last-Event-ID\"}\n\n";
        check(&Told::TooSlow, slow);
        assert!([Told::Reset { last_seq: 9 }, Told::TooSlow, Told::Deleted].iter().all(is_last));
    }
}

//! Server-sent events out of bytes that arrive in pieces. Pure: what it is given may be cut anywhere.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Longest line that is kept: a record is at most 64 MiB, and JSON may write each byte of one as six.
const MAX_LINE: usize = 400 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// What it is; empty if the server did not say.
    pub name: String,
    /// Where the stream goes on behind it, if it has a place.
    pub id: Option<String>,
    /// What it says.
    pub data: String,
}

/// Collects bytes until an event is whole.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The last byte was a carriage return: a newline behind it belongs to it.
    returned: bool,
}

impl Parser {
    /// Takes the next bytes and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.returned && !rest.is_empty() {
            self.returned = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.append(&rest[..at]);
            let ended_by_return = rest[at] == b'\r';
            rest = &rest[at + 1..];
            if ended_by_return {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.returned = true,
                }
            }
            events.extend(self.end_line());
        }
        self.append(rest);
        events
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Takes a whole line; an empty one ends an event.
    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let text = String::from_utf8_lossy(&line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // A comment keeps the connection alive; what else there may be is for others.
            _ => {}
        }
        None
    }
}

/// Hands on each event of a stream until that comes to something. Nothing comes of a stream that breaks off, or says nothing at
/// all for so long.
pub(super) async fn each_event<T>(
    mut body: Incoming,
    silence: Option<Duration>,
    mut take: impl FnMut(Event) -> Option<T>,
) -> Option<T> {
    let mut parser = Parser::default();
    loop {
        let frame = match silence {
            Some(silence) => tokio::time::timeout(silence, body.frame()).await.ok()?,
            None => body.frame().await,
        };
        let Ok(data) = frame?.ok()?.into_data() else { continue };
        if let Some(come_to) = parser.push(&data).into_iter().find_map(&mut take) {
            return Some(come_to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\n\nevent: run.started\nid: 7.abc\ndata: {\"seq\":7}\n\n\
        event: delta\ndata: {\"text\":\"grüß\"}\n\nevent:reset\r\ndata:{\"last_seq\":3}\r\n\r\n\
        data: one\ndata: two\nretry: 10\n\nid: 9.x\nevent: empty\n\ndata: never ended\n";

    fn expected() -> Vec<Event> {
        let event = |name: &str, id: Option<&str>, data: &str| Event {
            name: name.into(),
            id: id.map(Into::into),
            data: data.into(),
        };
        vec![
            event("run.started", Some("7.abc"), r#"{"seq":7}"#),
            event("delta", None, r#"{"text":"grüß"}"#),
            event("reset", None, r#"{"last_seq":3}"#),
            event("", None, "one\ntwo"),
        ]
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        assert_eq!(Parser::default().push(bytes), expected());
        for cut in 0..bytes.len() {
            let mut parser = Parser::default();
            let mut events = parser.push(&bytes[..cut]);
            events.extend(parser.push(&bytes[cut..]));
            assert_eq!(events, expected(), "cut at {cut}");
        }
        let mut parser = Parser::default();
        let events: Vec<Event> = bytes.iter().flat_map(|byte| parser.push(&[*byte])).collect();
        assert_eq!(events, expected());
    }
}

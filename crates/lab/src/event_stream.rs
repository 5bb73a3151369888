//! A subscriber of server-sent events that takes up a stream behind the last event it knows. Reading costs little, so that a
//! crowd of subscribers does not cost more than what it listens to.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::http::request;

/// How much is read at once.
const AT_ONCE: usize = 16 << 10;

/// An event as it came.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// What it is.
    pub name: &'a str,
    /// Where the stream goes on behind it, if it has a place.
    pub id: Option<&'a str>,
    /// What it says.
    pub data: &'a str,
}

/// An event that was read; data that is no JSON is null.
#[derive(Debug, Clone)]
pub struct OwnedEvent {
    /// What it is.
    pub event: String,
    /// Where the stream goes on behind it, if it has a place.
    pub id: Option<String>,
    /// What it says.
    pub data: Value,
}

/// A stream of events.
pub struct EventStream<S = UnixStream> {
    stream: S,
    /// What is read at once.
    piece: Vec<u8>,
    /// What was read and is not a whole piece of the body yet.
    raw: Vec<u8>,
    /// The head of the answer was read.
    begun: bool,
    /// What is not a whole event yet.
    text: Vec<u8>,
    /// The last part of the body was read: it is empty.
    ended: bool,
}

impl<S: Read + Write> EventStream<S> {
    /// Asks for the events at a path, behind the last one that is known, with exactly these headers.
    pub fn open(mut stream: S, path: &str, headers: &str, last: Option<&str>) -> io::Result<EventStream<S>> {
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        stream.write_all(request("GET", path, &format!("{headers}{last}"), "").as_bytes())?;
        Ok(EventStream::on(stream))
    }

    fn on(stream: S) -> EventStream<S> {
        let (raw, text) = (Vec::new(), Vec::new());
        EventStream { stream, piece: vec![0; AT_ONCE], raw, begun: false, text, ended: false }
    }

    /// Returns the stream, to wait on it.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Waits until the daemon has agreed to tell events; its refusal is an error.
    pub fn begin(&mut self) -> io::Result<()> {
        while !self.begun {
            self.read()?;
        }
        Ok(())
    }

    /// Reads once and tells the events that are whole.
    pub fn hear<E: From<io::Error>>(
        &mut self,
        mut told: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read()?;
        let mut from = 0;
        while let Some((event, end)) = whole(&self.text, from)? {
            from = end;
            event.map_or(Ok(()), &mut told)?;
        }
        self.text.drain(..from);
        Ok(())
    }

    /// Waits for the next event; that the stream ended or is silent for too long is an error.
    pub fn next_event(&mut self) -> io::Result<OwnedEvent> {
        loop {
            while let Some((event, end)) = whole(&self.text, 0)? {
                let event = event.map(|event| OwnedEvent {
                    event: event.name.to_owned(),
                    id: event.id.map(str::to_owned),
                    data: serde_json::from_str(event.data).unwrap_or_default(),
                });
                self.text.drain(..end);
                if let Some(event) = event {
                    return Ok(event);
                }
            }
            self.read()?;
        }
    }

    /// Reads once.
    fn read(&mut self) -> io::Result<()> {
        // The connection stays open for another request: waiting for its end would be waiting for nothing.
        if self.ended {
            return Err(end_of_stream());
        }
        match self.stream.read(&mut self.piece) {
            Ok(0) => return Err(end_of_stream()),
            Ok(count) => self.raw.extend_from_slice(&self.piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        self.unpack()
    }

    /// Takes the body out of its wrapping.
    fn unpack(&mut self) -> io::Result<()> {
        let mut from = 0;
        if !self.begun {
            let Some(end) = memchr::memmem::find(&self.raw, b"\r\n\r\n") else { return Ok(()) };
            if !self.raw.starts_with(b"HTTP/1.1 200") {
                return Err(io::Error::other(String::from_utf8_lossy(&self.raw).into_owned()));
            }
            (self.begun, from) = (true, end + 4);
        }
        while let Some(end) = memchr::memmem::find(&self.raw[from..], b"\r\n") {
            let size = std::str::from_utf8(&self.raw[from..from + end]).ok();
            let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
            let size = size.ok_or_else(|| wrong("a part of a stream has no size"))?;
            let begin = from + end + 2;
            let Some(part) = self.raw.get(begin..begin + size + 2) else { break };
            self.text.extend_from_slice(&part[..size]);
            self.ended = size == 0;
            from = begin + size + 2;
        }
        self.raw.drain(..from);
        Ok(())
    }
}

/// Returns what stands from somewhere on, if it is whole, and where it ends: an event, or a comment that keeps the
/// connection alive.
fn whole(text: &[u8], from: usize) -> io::Result<Option<(Option<Event<'_>>, usize)>> {
    let Some(length) = memchr::memmem::find(&text[from..], b"\n\n") else { return Ok(None) };
    let event = std::str::from_utf8(&text[from..from + length]).map_err(|_| wrong("an event is no text"))?;
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let data = || field("data: ").unwrap_or_default();
    let event = field("event: ").map(|name| Event { name, id: field("id: "), data: data() });
    Ok(Some((event, from + length + 2)))
}

fn end_of_stream() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the daemon ended a stream")
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const BODY: &str = "1b\r\nevent: delta\ndata: {\"a\":1}\n\r\n10\r\n\n: ping\n\nevent: \r\n11\r\nx\nid: 7.abc\n\nrest\r\n";

    #[test]
    fn events_are_told_whole_however_they_arrive() {
        let (mut daemon, stream) = UnixStream::pair().expect("a pair");
        let mut events = EventStream::on(stream);
        let mut heard = Vec::new();
        for byte in format!("{HEAD}{BODY}").bytes() {
            daemon.write_all(&[byte]).expect("written");
            let told = |event: Event<'_>| -> io::Result<()> {
                heard.push(format!("{} {:?} {}", event.name, event.id, event.data));
                Ok(())
            };
            events.hear(told).expect("no error");
        }
        assert_eq!(heard, ["delta None {\"a\":1}", "x Some(\"7.abc\") "]);
    }

    #[test]
    fn events_are_waited_for_one_by_one_until_the_stream_ends() {
        let (mut daemon, stream) = UnixStream::pair().expect("a pair");
        let mut events = EventStream::open(stream, "/x", "", Some("6.abc")).expect("asked");
        daemon.write_all(format!("{HEAD}{BODY}").as_bytes()).expect("written");
        let asked = &mut [0; 200];
        let count = daemon.read(asked).expect("a request");
        assert!(String::from_utf8_lossy(&asked[..count]).contains("Last-Event-ID: 6.abc\r\n"));
        events.begin().expect("it is told");
        drop(daemon);
        assert_eq!(events.next_event().expect("an event").data["a"], 1);
        assert_eq!(events.next_event().expect("an event").id.as_deref(), Some("7.abc"));
        assert_eq!(events.next_event().expect_err("the end").kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_stream_ends_with_its_last_part_though_the_connection_stays_open() {
        let (mut daemon, stream) = UnixStream::pair().expect("a pair");
        let mut events = EventStream::on(stream);
        daemon.write_all(format!("{HEAD}{BODY}0\r\n\r\n").as_bytes()).expect("written");
        events.next_event().expect("an event");
        events.next_event().expect("another");
        assert_eq!(events.next_event().expect_err("the end").kind(), ErrorKind::UnexpectedEof);
    }
}

//! HTTP as a harness needs it: blocking, on a connection that is kept, one request after the other. It costs next to nothing,
//! so that a benchmark measures the daemon alone.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::wait::PATIENCE;

/// How much is read at once.
const AT_ONCE: usize = 16 << 10;

/// The header that every request needs, for sockets, where it means nothing.
pub const HOST: &str = "Host: localhost\r\n";

/// Returns a request as it is sent, with exactly these headers, each a whole line, and the length of its body.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// An answer as it came.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its first line and its headers.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the body, which is JSON.
    pub fn json(&self) -> io::Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// Fails unless the daemon did what it was asked.
    pub fn expect(self, status: u16) -> io::Result<Answer> {
        if self.status == status {
            return Ok(self);
        }
        Err(io::Error::other(format!("{}: {}", self.status, String::from_utf8_lossy(&self.body))))
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An answer that was read; a body that is no JSON is null.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its first line and its headers.
    pub head: String,
    /// What it says.
    pub body: Value,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Reply {
        let body = answer.json().unwrap_or_default();
        Reply { status: answer.status, head: answer.head, body }
    }
}

impl Reply {
    /// Returns the status, and the code of a refusal.
    pub fn code(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or_default())
    }

    /// Returns status and code of a refusal, once the answer has the shape that all errors have.
    #[track_caller]
    pub fn refusal(&self) -> (u16, &str) {
        assert_eq!(self.header("content-type"), Some("application/json"), "{}", self.head);
        let error = &self.body["error"];
        assert!(error["message"].is_string() && error.get("hint").is_some(), "{}", self.body);
        self.code()
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A connection that is kept.
#[derive(Debug)]
pub struct Connection<S = UnixStream> {
    stream: S,
    /// What was read of the answer.
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects to a daemon's socket. A daemon that is silent for longer than anything may take is given up.
    pub fn open(socket: &Path) -> io::Result<Connection> {
        Connection::open_within(socket, PATIENCE)
    }

    /// Connects to a daemon's socket, and gives up a daemon that is silent for so long.
    pub fn open_within(socket: &Path, silent: Duration) -> io::Result<Connection> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(silent))?;
        Ok(Connection::on(stream))
    }
}

impl<S: Read + Write> Connection<S> {
    /// Speaks on a stream.
    pub fn on(stream: S) -> Connection<S> {
        Connection { stream, buffer: Vec::new() }
    }

    /// Returns the stream, to wait on it.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the stream, for whatever else is to be said on it.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Asks and waits for the answer; further headers are whole lines.
    pub fn ask(&mut self, method: &str, path: &str, headers: &str, body: &str) -> io::Result<Answer> {
        self.send(request(method, path, &format!("{HOST}{headers}"), body).as_bytes())?;
        self.receive()
    }

    /// Looks at something that must be there.
    pub fn get(&mut self, path: &str) -> io::Result<Value> {
        self.ask("GET", path, "", "")?.expect(200)?.json()
    }

    /// Sends bytes as they stand, without waiting for the answer.
    pub fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Waits for an answer.
    pub fn receive(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.take()? {
                return Ok(answer);
            }
            self.read()?;
        }
    }

    /// Reads once; returns the answer if that was the end of it.
    pub fn try_receive(&mut self) -> io::Result<Option<Answer>> {
        self.read()?;
        self.take()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; AT_ONCE];
        match self.stream.read(&mut bytes) {
            Ok(0) => {
                let cut = format!("the daemon hung up: {:?}", String::from_utf8_lossy(&self.buffer));
                return Err(io::Error::new(ErrorKind::UnexpectedEof, cut));
            }
            Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes the answer out of what was read, if it is whole.
    fn take(&mut self) -> io::Result<Option<Answer>> {
        let Some((status, begin, length)) = parse(&self.buffer)? else { return Ok(None) };
        if self.buffer.len() < begin + length {
            return Ok(None);
        }
        let head = String::from_utf8_lossy(&self.buffer[..begin - 4]).into_owned();
        let body = self.buffer[begin..begin + length].to_vec();
        self.buffer.drain(..begin + length);
        Ok(Some(Answer { status, head, body }))
    }
}

/// Reads the head of an answer, if it is whole: status, where the body begins, how long it is.
fn parse(bytes: &[u8]) -> io::Result<Option<(u16, usize, usize)>> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let wrong = |what: &str| io::Error::new(ErrorKind::InvalidData, what);
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| wrong("the head of an answer is no text"))?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| wrong("the answer has no status"))?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Ok(0), |(_, value)| value.trim().parse()).map_err(|_| wrong("no length"))?;
    Ok(Some((status, end + 4, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_when_their_head_is_whole() {
        let whole = b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        assert_eq!(parse(&whole[..30]).expect("part of a head"), None);
        let (status, begin, length) = parse(whole).expect("a head").expect("all of it");
        assert_eq!((status, &whole[begin..begin + length]), (202, &b"hello"[..]));
        assert!(request("GET", "/x", HOST, "").ends_with("Content-Length: 0\r\n\r\n"));
    }

    #[test]
    fn one_answer_after_the_other_comes_on_a_connection_and_a_cut_one_is_an_error() {
        let (mut daemon, stream) = UnixStream::pair().expect("a pair");
        let mut connection = Connection::on(stream);
        let answer = |code: &str| {
            let body = format!("{{\"error\":{{\"code\":\"{code}\"}}}}");
            format!("HTTP/1.1 409 Conflict\r\nContent-Length: {}\r\nx-y: z\r\n\r\n{body}", body.len())
        };
        let all = format!("{}{}{}", answer("one"), answer("two"), &answer("three")[..50]);
        daemon.write_all(all.as_bytes()).expect("written");
        for code in ["one", "two"] {
            let reply = Reply::from(connection.receive().expect("an answer"));
            assert_eq!((reply.code(), reply.header("X-Y")), ((409, code), Some("z")));
        }
        drop(daemon);
        assert_eq!(connection.receive().map(|_| ()).expect_err("cut").kind(), ErrorKind::UnexpectedEof);
    }
}

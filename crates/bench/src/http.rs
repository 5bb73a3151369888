//! As little HTTP as a client needs: a connection that is kept, one request after the other. What is measured is the
//! daemon, so that the client must cost next to nothing.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::context::PATIENCE;

/// How much is read at once.
const AT_ONCE: usize = 16 << 10;

/// A connection that is kept.
pub(crate) struct Link {
    pub(crate) stream: UnixStream,
    /// What was read of the answer.
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body).context("the daemon's answer is no JSON")
    }

    /// Fails unless the daemon did what it was asked.
    pub(crate) fn expect(self, status: u16) -> anyhow::Result<Answer> {
        ensure!(self.status == status, "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(self)
    }
}

/// Returns a request as it is sent.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {length}\r\n\r\n{body}")
}

impl Link {
    pub(crate) fn connect(socket: &Path) -> anyhow::Result<Link> {
        let stream = UnixStream::connect(socket).context("cannot connect to the daemon")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Link { stream, buffer: Vec::new() })
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        self.send(request(method, path, body).as_bytes())?;
        self.receive()
    }

    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        self.ask("GET", path, "")?.expect(200)?.json()
    }

    /// Asks without waiting for the answer.
    pub(crate) fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(request).context("the daemon does not listen")
    }

    /// Waits for an answer.
    pub(crate) fn receive(&mut self) -> anyhow::Result<Answer> {
        loop {
            if let Some(answer) = self.try_receive()? {
                return Ok(answer);
            }
        }
    }

    /// Reads once; returns the answer if that was the end of it.
    pub(crate) fn try_receive(&mut self) -> anyhow::Result<Option<Answer>> {
        let mut bytes = [0; AT_ONCE];
        match self.stream.read(&mut bytes) {
            Ok(0) => bail!("the daemon hung up"),
            Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("the daemon does not answer"),
        }
        let Some((status, begin, length)) = parse(&self.buffer)? else { return Ok(None) };
        if self.buffer.len() < begin + length {
            return Ok(None);
        }
        let body = self.buffer[begin..begin + length].to_vec();
        self.buffer.drain(..begin + length);
        Ok(Some(Answer { status, body }))
    }
}

/// Reads the head of an answer, if it is whole: status, where the body begins, how long it is.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<(u16, usize, usize)>> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end]).context("the head of an answer is no text")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("the answer has no status")?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Ok(0), |(_, value)| value.trim().parse()).context("no length")?;
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
        assert!(request("GET", "/x", "").ends_with("Content-Length: 0\r\n\r\n"));
    }
}

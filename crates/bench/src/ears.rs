//! Subscribers of a session's events: one that waits, and a crowd of them on one thread, which must not cost more than
//! what it listens to.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde::Deserialize;

use crate::context::PATIENCE;

/// How much is read at once.
const AT_ONCE: usize = 16 << 10;

/// How many of a crowd are looked after at once.
const READY: usize = 256;

/// The event that carries words of the agent.
pub(crate) const WORDS: &str = "delta";

/// The record of a turn that ended well.
pub(crate) const COMPLETED: &str = "run.completed";

/// One subscriber.
pub(crate) struct Ear {
    stream: UnixStream,
    /// What was read and is not a whole piece of the body yet.
    raw: Vec<u8>,
    /// The head of the answer was read.
    begun: bool,
    /// What is not a whole event yet.
    text: Vec<u8>,
}

/// Returns the words that an event carries.
pub(crate) fn words(data: &str) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Words {
        text: String,
    }
    let words: Words = serde_json::from_str(data).context("an event is no JSON")?;
    Ok(words.text)
}

impl Ear {
    /// Subscribes to a session from its first record on.
    pub(crate) fn open(socket: &Path, session: &str) -> anyhow::Result<Ear> {
        let mut stream = UnixStream::connect(socket).context("cannot connect to the daemon")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!("GET /api/sessions/{session}/events HTTP/1.1\r\nHost: bench\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        Ok(Ear { stream, raw: Vec::new(), begun: false, text: Vec::new() })
    }

    /// Reads once and tells the events that are whole: name and data.
    pub(crate) fn hear(
        &mut self,
        mut told: impl FnMut(&str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.raw.reserve(AT_ONCE);
        match rustix::io::read(&self.stream, spare_capacity(&mut self.raw)) {
            Ok(0) => bail!("the daemon ended a stream"),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("a stream has nothing to tell"),
        }
        self.unpack()?;
        let mut from = 0;
        while let Some(length) = memchr::memmem::find(&self.text[from..], b"\n\n") {
            let event = std::str::from_utf8(&self.text[from..from + length]).context("no text")?;
            from += length + 2;
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            if let Some(name) = field("event: ") {
                told(name, field("data: ").unwrap_or_default())?;
            }
        }
        self.text.drain(..from);
        Ok(())
    }

    /// Takes the body out of its wrapping.
    fn unpack(&mut self) -> anyhow::Result<()> {
        let mut from = 0;
        if !self.begun {
            let Some(end) = memchr::memmem::find(&self.raw, b"\r\n\r\n") else { return Ok(()) };
            ensure!(self.raw.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&self.raw));
            (self.begun, from) = (true, end + 4);
        }
        while let Some(end) = memchr::memmem::find(&self.raw[from..], b"\r\n") {
            let size = std::str::from_utf8(&self.raw[from..from + end])?;
            let size = usize::from_str_radix(size, 16).context("a part of a stream has no size")?;
            let begin = from + end + 2;
            let Some(part) = self.raw.get(begin..begin + size + 2) else { break };
            self.text.extend_from_slice(&part[..size]);
            from = begin + size + 2;
        }
        self.raw.drain(..from);
        Ok(())
    }

    /// Listens until a turn has ended, and tells what is heard until then.
    pub(crate) fn turn(
        &mut self,
        mut told: impl FnMut(&str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut ended = false;
        while !ended {
            self.hear(|event, data| {
                ended |= is_end(event)?;
                told(event, data)
            })?;
        }
        Ok(())
    }
}

/// Tells whether an event ends a turn as it should; any other end is an error.
pub(crate) fn is_end(event: &str) -> anyhow::Result<bool> {
    match event {
        "run.failed" | "run.interrupted" | "run.cancelled" | "reset" | "deleted" | "too_slow" => {
            bail!("a turn was to end well, and there is {event}")
        }
        _ => Ok(event == COMPLETED),
    }
}

/// Many subscribers on one thread. What nobody says anything to costs nothing, however many there are.
pub(crate) struct Crowd {
    ears: Vec<Ear>,
    epoll: OwnedFd,
}

impl Crowd {
    pub(crate) fn new(ears: Vec<Ear>) -> anyhow::Result<Crowd> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, ear) in ears.iter().enumerate() {
            epoll::add(&epoll, &ear.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        }
        Ok(Crowd { ears, epoll })
    }

    /// Listens for a while with all ears at once, and tells who heard what.
    pub(crate) fn listen(
        &mut self,
        most: Duration,
        mut told: impl FnMut(usize, &str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let most = Timespec::try_from(most).context("that is too long")?;
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(READY);
        match epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&most)) {
            Err(Errno::INTR) => return Ok(()),
            waited => waited?,
        };
        ready.iter().try_for_each(|event| {
            let index = event.data.u64() as usize;
            self.ears[index].hear(|event, data| told(index, event, data))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_whole_however_they_arrive() {
        let (mut daemon, stream) = UnixStream::pair().expect("a pair");
        let mut ear = Ear { stream, raw: Vec::new(), begun: false, text: Vec::new() };
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = "1b\r\nevent: delta\ndata: {\"a\":1}\n\r\n10\r\n\n: ping\n\nevent: \r\n7\r\nx\n\nrest\r\n";
        let mut heard = Vec::new();
        for byte in format!("{head}{body}").bytes() {
            daemon.write_all(&[byte]).expect("written");
            ear.hear(|event, data| {
                heard.push(format!("{event} {data}"));
                Ok(())
            })
            .expect("no error");
        }
        assert_eq!(heard, ["delta {\"a\":1}", "x "]);
        assert_eq!(words(r#"{"at":0,"text":"hi\n"}"#).expect("words"), "hi\n");
    }
}

//! Subscribers of a session's events: one that waits, and a crowd of them on one thread, which must not cost more than
//! what it listens to.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rekindle_lab::{Connection, EventStream, HOST};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde::Deserialize;

/// How many of a crowd are looked after at once.
const READY: usize = 256;

/// The event that carries words of the agent.
pub(crate) const WORDS: &str = "delta";

/// The record of a turn that ended well.
pub(crate) const COMPLETED: &str = "run.completed";

/// One subscriber.
pub(crate) struct Ear(EventStream);

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
    pub(crate) fn open(link: Connection, session: &str) -> anyhow::Result<Ear> {
        let path = format!("/api/sessions/{session}/events");
        Ok(Ear(EventStream::open(link.into_stream(), &path, HOST, None)?))
    }

    /// Reads once and tells the events that are whole: name and data.
    fn hear(&mut self, mut told: impl FnMut(&str, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.0.hear(|event| told(event.name, event.data))
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
            epoll::add(
                &epoll,
                ear.0.stream(),
                epoll::EventData::new_u64(index as u64),
                epoll::EventFlags::IN,
            )?;
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
    fn words_are_taken_out_of_their_event() {
        assert_eq!(words(r#"{"at":0,"text":"hi\n"}"#).expect("words"), "hi\n");
    }
}

//! Many clients, each with a connection and a session of its own, that change a title over and over: each answer says
//! that it is on disk. All clients are on one thread, so that they take little from the daemon. Raw: a bare group commit
//! for as many producers.

use std::time::Instant;

use anyhow::Context as _;
use rekindle_lab::{Connection, HOST, request};
use rustix::event::{PollFd, PollFlags, poll};

use crate::context::Context;
use crate::lab::Lab;
use crate::measure::{interleave, rate};
use crate::rows::append_many::{PRODUCERS, Raw};
use crate::table::{Row, Target, Unit};

const CLIENTS: usize = PRODUCERS;

/// One client: its connection, and what it asks.
struct Client {
    link: Connection,
    path: String,
    asked: usize,
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (changes, rounds) = context.pick((40_000, 5), (10_000, 3));
    let dir = context.directory()?;
    let mut raw = Raw::create(&dir.path().join("raw"))?;
    let lab = Lab::new(context)?;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut link = lab.link()?;
        let path = format!("/api/sessions/{}", lab.session(&mut link, None)?);
        clients.push(Client { link, path, asked: 0 });
    }
    let what = format!("durable change of a title, {CLIENTS} clients");
    let ours = || {
        let begin = Instant::now();
        change(&mut clients, changes)?;
        Ok([rate(changes, begin.elapsed())])
    };
    let [rates] = interleave(&what, rounds, || raw.append(changes / CLIENTS), ours)?;
    Ok(vec![Row::compared(what, Unit::PerSecond, &rates, Target::RatioAtLeast(0.3))])
}

/// Has so many titles changed, each client asking again as soon as it has its answer.
fn change(clients: &mut [Client], changes: usize) -> anyhow::Result<()> {
    let (mut asked, mut answered) = (clients.len(), 0);
    clients.iter_mut().try_for_each(Client::ask)?;
    while answered < changes {
        let mut fds: Vec<PollFd<'_>> =
            clients.iter().map(|client| PollFd::new(client.link.stream(), PollFlags::IN)).collect();
        poll(&mut fds, None).context("cannot wait for answers")?;
        let ready: Vec<usize> = (0..fds.len()).filter(|index| !fds[*index].revents().is_empty()).collect();
        drop(fds);
        for index in ready {
            let client = &mut clients[index];
            let Some(answer) = client.link.try_receive()? else { continue };
            answer.expect(200)?;
            answered += 1;
            if asked < changes {
                client.ask()?;
                asked += 1;
            }
        }
    }
    Ok(())
}

impl Client {
    fn ask(&mut self) -> anyhow::Result<()> {
        self.asked += 1;
        let body = format!("{{\"title\":\"title {}\"}}", self.asked);
        Ok(self.link.send(request("PATCH", &self.path, HOST, &body).as_bytes())?)
    }
}

//! The loop: lines come in, each is a request, a notification or an answer, and goes where it belongs. Turns run
//! in threads of their own; what they share with the loop is here.

mod methods;
mod rpc_error;
mod settings;
mod setup;

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::handover::{self, Handover};
use crate::process_state::ProcessState;
use crate::sessions::Sessions;
use crate::turn::{self, Signal};
use crate::wire::{Input, Wire, lock, open_record};
use crate::{Error, Options};

use methods::Handled;
pub(crate) use methods::setup_result;

/// How long turns may take to end after stdin did: a moment for a person, plenty for a thread.
const GRACE: Duration = Duration::from_secs(1);

/// How long a process stays that does not exit with stdin: longer than any test, but not for ever.
const LONGEST_LINGER: Duration = Duration::from_secs(60 * 60);

/// How often something is looked at that tells nobody of its changes.
const TICK: Duration = Duration::from_millis(5);

/// What the loop is told.
pub(crate) enum Event {
    /// A line came in.
    Line(Vec<u8>),
    /// No more lines will come in.
    Eof,
    /// A turn wants SIGTERM to be ignored; it hears of it only if that fails.
    Deafen(Box<Handover>, Sender<String>),
}

/// A turn that runs.
pub(crate) struct Handle {
    /// Where it listens.
    pub(crate) signals: Sender<Signal>,
    /// The request that began it.
    pub(crate) request: Value,
}

/// What the loop and the turns share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) wire: Wire,
    pub(crate) sessions: Sessions,
    /// By session.
    pub(crate) turns: Mutex<HashMap<String, Handle>>,
    /// The session that each of our open requests belongs to, by the id as it is on the wire.
    pub(crate) asked: Mutex<HashMap<String, String>>,
    pub(crate) process: Mutex<ProcessState>,
    pub(crate) events: Sender<Event>,
}

/// Serves stdin until it ends.
pub(crate) fn run(options: Options) -> Result<u8, Error> {
    let taken = handover::take();
    let wire = Wire::stdout().map_err(|source| Error::Start { what: "use stdout", source })?;
    let record = options.record.as_ref().map(|path| {
        let opened = open_record(path, taken.is_none());
        opened.map_err(|source| Error::File { path: path.clone(), source })
    });
    let record = record.transpose()?;
    let (events, inbox) = channel();
    let shared = Arc::new(Shared {
        wire,
        sessions: Sessions::new(&options.state),
        turns: Mutex::default(),
        asked: Mutex::default(),
        process: Mutex::default(),
        events: events.clone(),
        options,
    });
    let mut server = Server { shared, inbox, backlog: VecDeque::new(), input: Arc::default() };
    let anew = taken.is_none();
    if let Some(handover) = taken {
        server.take_over(handover);
    }
    let input = Arc::clone(&server.input);
    let read = move || input.read(record, &events);
    let reading = std::thread::Builder::new().name("stdin".into()).spawn(read);
    let reading = reading.map_err(|source| Error::Start { what: "read stdin", source })?;
    let woken = Instant::now() + server.shared.options.slow_start;
    while anew && Instant::now() < woken && !reading.is_finished() {
        std::thread::sleep(TICK);
    }
    server.serve();
    Ok(0)
}

struct Server {
    shared: Arc<Shared>,
    inbox: Receiver<Event>,
    /// What was taken out of the inbox and is still to be handled.
    backlog: VecDeque<Event>,
    input: Arc<Input>,
}

impl Server {
    fn serve(&mut self) {
        loop {
            // We hold a sender ourselves, so there is always an event to wait for.
            let Some(event) = self.backlog.pop_front().or_else(|| self.inbox.recv().ok()) else { return };
            match event {
                Event::Line(line) => self.line(&line),
                Event::Deafen(handover, failed) => self.deafen(*handover, &failed),
                Event::Eof => return self.end(),
            }
        }
    }

    fn line(&self, line: &[u8]) {
        // A line that begins a turn is nothing new to that turn.
        let running: Vec<Sender<Signal>> =
            lock(&self.shared.turns).values().map(|turn| turn.signals.clone()).collect();
        if methods::handle(&self.shared, line) == Handled::Answer {
            return;
        }
        for turn in running {
            let _ = turn.send(Signal::Line);
        }
    }

    /// Ends the turns and waits a moment for them, or stays if a script said so.
    fn end(&mut self) {
        if lock(&self.shared.process).linger {
            let until = Instant::now() + LONGEST_LINGER;
            while let Ok(event) = self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                if let Event::Deafen(handover, failed) = event {
                    self.deafen(*handover, &failed);
                }
            }
            return;
        }
        for turn in lock(&self.shared.turns).values() {
            let _ = turn.signals.send(Signal::Closed);
        }
        let until = Instant::now() + GRACE;
        while !lock(&self.shared.turns).is_empty() && Instant::now() < until {
            std::thread::sleep(TICK);
        }
    }

    /// Becomes a process that ignores SIGTERM; comes back only if that fails.
    fn deafen(&mut self, mut handover: Handover, failed: &Sender<String>) {
        // Under these two locks nothing is on its way: no line half read, none half written.
        let input = Arc::clone(&self.input);
        let torn = lock(&input.torn);
        while let Ok(event) = self.inbox.try_recv() {
            self.backlog.push_back(event);
        }
        let lines = self.backlog.iter().filter_map(|event| match event {
            Event::Line(line) => Some(line.clone()),
            Event::Eof | Event::Deafen(..) => None,
        });
        handover.lines = lines.collect();
        handover.torn.clone_from(&torn);
        let _silent = self.shared.wire.hold();
        let error = handover::pass(&self.shared.sessions, &handover);
        let _ = failed.send(format!("SIGTERM cannot be ignored: {error}"));
    }

    /// Goes on where the image before this one stopped.
    fn take_over(&mut self, handover: Handover) {
        let Handover { job, process, open, lines, torn } = handover;
        *lock(&self.shared.process) = process;
        for (id, mut session) in open {
            session.history = self.shared.sessions.load(&id).unwrap_or_default();
            self.shared.sessions.insert(&id, session);
        }
        self.backlog.extend(lines.into_iter().map(Event::Line));
        *lock(&self.input.torn) = torn;
        turn::start(&self.shared, job);
    }
}

//! The loop: lines come in, each is a request, a notification or an answer, and goes where it belongs. Turns run
//! in threads of their own; what they share with the loop is here.

mod methods;
mod rpc_error;
mod settings;
mod setup;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sessions::Sessions;
use crate::turn::Signal;
use crate::wire::{Wire, lock, open_record, read_lines};
use crate::{Error, Options};

pub(crate) use methods::setup_result;
pub(crate) use rpc_error::INTERNAL_ERROR;

/// How long turns may take to end after stdin did: a moment for a person, plenty for a thread.
const GRACE: Duration = Duration::from_secs(1);

/// How long a process stays that does not exit with stdin: longer than any test, but not for ever.
const LONGEST_LINGER: Duration = Duration::from_secs(60 * 60);

/// How often something is looked at that tells nobody of its changes.
const TICK: Duration = Duration::from_millis(5);

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
    /// The command of a child that stays behind.
    pub(crate) linger_command: Vec<OsString>,
    pub(crate) wire: Wire,
    pub(crate) sessions: Sessions,
    /// By session.
    pub(crate) turns: Mutex<HashMap<String, Handle>>,
    /// The session that each of our open requests belongs to, by the id as it is on the wire.
    pub(crate) asked: Mutex<HashMap<String, String>>,
    pub(crate) process: Mutex<ProcessState>,
}

/// The state of the process: what lasts from turn to turn.
#[derive(Default)]
pub(crate) struct ProcessState {
    /// The id of our next request.
    pub(crate) next_id: u64,
    /// Ids begin at 0 in every turn.
    pub(crate) repeat_ids: bool,
    /// The end of stdin is not ours.
    pub(crate) linger: bool,
    /// The protocol version agreed on.
    pub(crate) protocol: u16,
    /// Somebody has authenticated.
    pub(crate) logged_in: bool,
}

/// Serves one client until stdin ends.
pub(crate) fn serve(options: Options, state: &Path, linger_command: Vec<OsString>) -> Result<(), Error> {
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |source| Error { what, source }
    };
    let wire = Wire::stdout().map_err(cannot("use stdout"))?;
    let opened = options
        .record
        .as_ref()
        .map(|path| open_record(path).map_err(cannot(&format!("use {}", path.display()))));
    let record = opened.transpose()?;
    let woken = Instant::now() + options.slow_start;
    let shared = Arc::new(Shared {
        wire,
        sessions: Sessions::new(state),
        turns: Mutex::default(),
        asked: Mutex::default(),
        process: Mutex::default(),
        linger_command,
        options,
    });
    let (lines, inbox) = channel();
    let reading = std::thread::Builder::new().name("stdin".into()).spawn(move || read_lines(record, &lines));
    let reading = reading.map_err(cannot("read stdin"))?;
    while Instant::now() < woken && !reading.is_finished() {
        std::thread::sleep(TICK);
    }
    inbox.iter().for_each(|line| handle_line(&shared, &line));
    end(&shared);
    Ok(())
}

fn handle_line(shared: &Arc<Shared>, line: &[u8]) {
    // A line that begins a turn is nothing new to that turn.
    let running: Vec<Sender<Signal>> =
        lock(&shared.turns).values().map(|turn| turn.signals.clone()).collect();
    if methods::handle(shared, line) {
        return;
    }
    for turn in running {
        let _ = turn.send(Signal::Line);
    }
}

/// Ends the turns and waits a moment for them, or stays if a script said so.
fn end(shared: &Shared) {
    if lock(&shared.process).linger {
        return std::thread::sleep(LONGEST_LINGER);
    }
    for turn in lock(&shared.turns).values() {
        let _ = turn.signals.send(Signal::Closed);
    }
    let until = Instant::now() + GRACE;
    while !lock(&shared.turns).is_empty() && Instant::now() < until {
        std::thread::sleep(TICK);
    }
}

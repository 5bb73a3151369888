//! The context of a command: which home or daemon is meant, and how each is reached.

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_client::payloads::Payloads;
use rekindle_client::server::Server;
use rekindle_client::{CUT, Client, Exit, Failure, REPLACE, SILENT, start};
use rekindle_display::live::{self, Goal, Watch};
use rekindle_store::blobs::Blobs;
use rekindle_store::disk::{RealDisk, SharedDisk};
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_terminal::output;

use crate::home_arg;

/// How long a daemon that goes away while it is asked is looked for again, and how often. A successor that is started for
/// it is there within this; one that is only leaving is not waited for.
const GOING: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(20);

/// Why nothing was heard from a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unheard {
    /// There is none.
    None,
    /// It does not answer.
    Silent(u32),
    /// Its socket is gone.
    Cut,
    /// It has as many callers as it can have.
    Full(u32),
}

impl Unheard {
    /// Says so in a few words.
    pub(crate) fn text(self) -> String {
        match (self, self.daemon_text()) {
            (Unheard::None, _) => "no daemon".into(),
            (Unheard::Cut, why) => format!("the daemon {why}"),
            (Unheard::Silent(pid) | Unheard::Full(pid), why) => {
                why.replacen(&format!("process {pid}"), &format!("the daemon (process {pid})"), 1)
            }
        }
    }

    /// Says it of the daemon itself.
    pub(crate) fn daemon_text(self) -> String {
        match self {
            Unheard::None => "none is running".into(),
            Unheard::Silent(pid) => format!("process {pid} does not answer"),
            Unheard::Cut => "cannot be reached".into(),
            Unheard::Full(pid) => format!("process {pid} accepts no more connections"),
        }
    }
}

/// What every command is given.
pub(crate) struct Context {
    /// The home.
    pub(crate) home: PathBuf,
    /// Print JSON.
    pub(crate) json: bool,
    /// The daemon elsewhere that is meant instead of the home's.
    pub(crate) server: Option<Arc<Server>>,
}

impl Context {
    /// Says so if a command that needs the home itself is asked of a daemon elsewhere.
    pub(crate) fn only_here(self, command: &str) -> Result<Context, Failure> {
        let Some(server) = &self.server else { return Ok(self) };
        let message = format!(
            "rekindle {command} works on the files of the home, and {} is on another machine",
            server.url
        );
        Err(Failure::usage("only_here", message)
            .hint("leave out --server, unset REKINDLE_SERVER, or run it on the daemon's machine"))
    }

    /// Returns the daemon elsewhere, if one is meant.
    pub(crate) fn elsewhere(&self) -> Result<Option<Client>, Failure> {
        let client = self.server.as_ref().map(|server| Client::elsewhere(Arc::clone(server))).transpose();
        Ok(client?.inspect(Client::note_version))
    }

    /// Returns the disk.
    pub(crate) fn disk(&self) -> SharedDisk {
        Arc::new(RealDisk)
    }

    /// Returns the payloads that are kept apart.
    pub(crate) fn blobs(&self) -> Payloads {
        match &self.server {
            Some(server) => Payloads::There(Arc::clone(server)),
            None => Payloads::Here(Blobs::reading(self.disk(), Layout::new(&self.home))),
        }
    }

    /// Returns the daemon, if one lives.
    pub(crate) fn daemon(&self) -> Result<Option<Client>, Failure> {
        if let Some(client) = self.elsewhere()? {
            return Ok(Some(client));
        }
        Ok(Client::find(&self.home)?.inspect(Client::note_version))
    }

    /// Asks the daemon something that changes nothing, or says why nothing is heard from one. One that goes away just then
    /// is looked for again for a moment: its successor may be there, or the home can be read without one.
    pub(crate) fn ask<T>(
        &self,
        ask: impl Fn(&Client) -> Result<T, Failure>,
    ) -> Result<Result<T, Unheard>, Failure> {
        // There is no disk to look at instead.
        if let Some(client) = self.elsewhere()? {
            return ask(&client).map(Ok);
        }
        let note = |why: &str, then: &str| {
            anstream::eprintln!("note: {why}; this is read from disk. {then}");
        };
        let deadline = Instant::now() + GOING;
        let mut noted = false;
        loop {
            let client = match Client::find(&self.home) {
                Err(failure) if failure.code() == CUT => {
                    note(&failure.message(), REPLACE);
                    return Ok(Err(Unheard::Cut));
                }
                Ok(None) => return Ok(Err(Unheard::None)),
                Ok(Some(client)) => client,
                Err(failure) => return Err(failure),
            };
            let pid = client.target().pid();
            if !std::mem::replace(&mut noted, true) {
                client.note_version();
            }
            match ask(&client) {
                Err(failure) if failure.is_daemon_gone() && Instant::now() < deadline => {
                    std::thread::sleep(LOOK);
                }
                Err(failure) if failure.is_daemon_gone() => return Ok(Err(Unheard::None)),
                Err(failure) if failure.code() == SILENT => {
                    note(&Unheard::Silent(pid).text(), REPLACE);
                    return Ok(Err(Unheard::Silent(pid)));
                }
                Err(failure) if failure.code() == "too_many_connections" => {
                    note(&Unheard::Full(pid).text(), "Some program has very many open");
                    return Ok(Err(Unheard::Full(pid)));
                }
                told => return told.map(Ok),
            }
        }
    }

    /// Returns the daemon; one is started if none lives here.
    pub(crate) fn daemon_or_start(&self) -> Result<Client, Failure> {
        if let Some(client) = self.elsewhere()? {
            return Ok(client);
        }
        start::ensure(&self.home).inspect(Client::note_version)
    }

    /// Returns the daemon, or says that there is none: for what makes no sense without one.
    pub(crate) fn living_daemon(&self) -> Result<Client, Failure> {
        self.daemon()?.ok_or_else(|| {
            let message = format!("no daemon is running for {}", self.home.display());
            Failure::no_daemon(message)
                .hint("rekindle serve runs one; rekindle run and rekindle attach start one automatically")
        })
    }

    /// Acknowledges what was asked: the daemon's words as JSON, or ours on stderr.
    pub(crate) fn acknowledge(&self, body: impl AsRef<[u8]>, text: impl Display) -> Result<Exit, Failure> {
        self.print(&String::from_utf8_lossy(body.as_ref()).trim_end(), |_| {
            anstream::eprintln!("{text}");
            Ok(())
        })
    }

    /// Prints what was asked for, as JSON or as text, and ends well.
    pub(crate) fn print(
        &self,
        json: &impl Display,
        text: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let mut out = output::stdout();
        if self.json {
            writeln!(out, "{json}")?;
        } else {
            text(&mut out)?;
        }
        out.flush()?;
        Ok(Exit::Ok)
    }

    /// Watches a session from behind a record until what was asked is done; returns how it ended.
    pub(crate) fn watch(
        &self,
        client: &Client,
        session: String,
        after: u64,
        goal: Goal,
    ) -> Result<Exit, Failure> {
        live::watch(Watch { client, session, after, goal, json: self.json, payloads: self.blobs() })
    }

    /// Looks at the home without owning it.
    pub(crate) fn offline(&self) -> Result<Offline, Failure> {
        Ok(Offline::open(self.disk(), &self.home)?)
    }

    /// Looks at the home without owning it; none if there is none yet, which is no failure where one could be.
    pub(crate) fn offline_if_any(&self) -> Result<Option<Offline>, Failure> {
        match self.offline() {
            Err(failure) if failure.code() == "home_missing" => home_arg::could_be(&self.home).map(|()| None),
            home => home.map(Some),
        }
    }
}

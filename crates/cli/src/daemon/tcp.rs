//! Listening on TCP, as far as it can be had.

use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_client::listen_options::Listening;
use rekindle_store::disk::SharedDisk;

use super::listen::{Open, Ready, Wanted, check};

/// What comes of listening on TCP. Where nobody is there to hear why it cannot be, the socket is served all the same.
pub(super) struct Tcp {
    wanted: Option<Wanted>,
    checked: Option<Ready>,
    pub(super) open: Open,
    pub(super) note: Option<String>,
}

impl Tcp {
    /// Sees what is wanted, and whether it makes sense.
    pub(super) fn of(
        wanted: Result<Option<Wanted>, Failure>,
        foreground: bool,
        disk: &SharedDisk,
        home: &Path,
    ) -> Result<Tcp, Failure> {
        let mut tcp = Tcp { wanted: None, checked: None, open: Open::default(), note: None };
        match wanted {
            Ok(wanted) => tcp.wanted = wanted,
            Err(failure) if foreground => return Err(failure),
            Err(failure) => tcp.give_up(&failure),
        }
        let checked = tcp.wanted.as_ref().map(|wanted| check(&wanted.listening, &**disk, home)).transpose();
        tcp.checked = tcp.or_note(checked)?.flatten();
        Ok(tcp)
    }

    /// Listens.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        let opened = self.checked.take().map(Ready::open).transpose();
        if let Some(open) = self.or_note(opened)?.flatten() {
            self.open = open;
        }
        Ok(())
    }

    /// Returns what is told to whoever comes next: with the ports that were taken, so that callers find it again.
    pub(super) fn told(&self) -> Option<Listening> {
        let wanted = self.wanted.as_ref().filter(|wanted| wanted.told)?;
        let taken = self.open.addresses();
        let listen = if taken.is_empty() { wanted.listening.listen.clone() } else { taken };
        Some(Listening { listen, ..wanted.listening.clone() })
    }

    fn or_note<T>(&mut self, outcome: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(failure) if self.wanted.as_ref().is_some_and(|wanted| wanted.must) => Err(failure),
            Err(failure) => {
                self.give_up(&failure);
                Ok(None)
            }
        }
    }

    fn give_up(&mut self, failure: &Failure) {
        let message = failure.message();
        tracing::error!("not on TCP: {message}");
        self.note = Some(format!("the daemon does not listen on TCP: {message}"));
    }
}

//! Listening on TCP, as far as it can be had.

use std::io;
use std::net::TcpListener;
use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_client::listen_options::{Address, Listening};
use rekindle_server::{TcpListeners, Tls};
use rekindle_store::disk::SharedDisk;

use crate::listen::{Wanted, bind, check};

/// What comes of listening on TCP. Where nobody is there to hear why it cannot be, the socket is served all the same.
#[derive(Default)]
pub(crate) struct Tcp {
    wanted: Option<Wanted>,
    tls: Option<Tls>,
    listeners: Vec<TcpListener>,
    /// The name under which answer links lead here: whoever follows one asks for it.
    pub(crate) own_name: Option<String>,
    /// Why it cannot be.
    pub(crate) note: Option<String>,
}

impl Tcp {
    /// Sees what is wanted, and whether it makes sense.
    pub(crate) fn of(wanted: Option<Wanted>, disk: &SharedDisk, home: &Path) -> Result<Tcp, Failure> {
        let mut tcp = Tcp { wanted, ..Tcp::default() };
        let checked = tcp.wanted.as_ref().map(|wanted| check(&wanted.listening, &**disk, home)).transpose();
        tcp.tls = tcp.or_note(checked)?.flatten();
        Ok(tcp)
    }

    /// Listens.
    pub(crate) fn open(&mut self) -> Result<(), Failure> {
        let wanted = self.wanted.as_ref().filter(|_| self.note.is_none());
        let opened = wanted.map(|wanted| bind(&wanted.listening.listen)).transpose();
        self.listeners = self.or_note(opened)?.unwrap_or_default();
        Ok(())
    }

    /// Returns the addresses as they came to be.
    fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).map(Address).collect()
    }

    /// Returns where callers come to, in words.
    pub(crate) fn urls(&self) -> Option<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let urls: Vec<String> =
            self.addresses().iter().map(|Address(address)| format!("{scheme}://{address}")).collect();
        (!urls.is_empty()).then(|| urls.join(" "))
    }

    /// Returns what is told to whoever comes next: with the ports that were taken, so that callers find it again.
    pub(crate) fn listen_options(&self) -> Option<Listening> {
        let wanted = self.wanted.as_ref().filter(|wanted| wanted.told)?;
        let taken = self.addresses();
        let listen = if taken.is_empty() { wanted.listening.listen.clone() } else { taken };
        Some(Listening { listen, ..wanted.listening.clone() })
    }

    /// Hands the sockets to who serves.
    pub(crate) fn serve(self) -> io::Result<TcpListeners> {
        let ready = |listener: TcpListener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let listeners = self.listeners.into_iter().map(ready).collect::<io::Result<_>>()?;
        let hosts = self.wanted.iter().flat_map(|wanted| &wanted.listening.hosts);
        let names = hosts.map(|name| name.to_ascii_lowercase()).chain(self.own_name).collect();
        Ok(TcpListeners { listeners, names, tls: self.tls })
    }

    fn or_note<T>(&mut self, outcome: Result<Option<T>, Failure>) -> Result<Option<T>, Failure> {
        match outcome {
            Err(failure) if !self.wanted.as_ref().is_some_and(|wanted| wanted.must) => {
                self.give_up(&failure);
                Ok(None)
            }
            outcome => outcome,
        }
    }

    fn give_up(&mut self, failure: &Failure) {
        let message = failure.message();
        tracing::error!("not on TCP: {message}");
        self.note = Some(format!("the daemon does not listen on TCP: {message}"));
    }
}

//! The machine as deliveries see it: its variables, its resolver and its time zone. A seam, so that tests have names that resolve to
//! anything and nights that come when they are called.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use jiff::tz::TimeZone;

/// What a delivery needs of the machine.
pub trait Machine: fmt::Debug + Send + Sync {
    /// Returns the value of an environment variable of this process.
    fn variable(&self, name: &str) -> Option<String>;

    /// Returns the names of all variables.
    fn variable_names(&self) -> Vec<String>;

    /// Resolves the name of a host; blocks for as long as that takes.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Returns the zone of the clock on the wall.
    fn zone(&self) -> TimeZone;
}

/// The real one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn variable_names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }
}

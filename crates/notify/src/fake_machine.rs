//! A machine for tests: what it has and where names lead is said by the test.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use jiff::tz::TimeZone;

use crate::machine::Machine;

/// A machine whose answers are data.
#[derive(Clone)]
pub(crate) struct FakeMachine {
    pub(crate) variables: BTreeMap<String, String>,
    /// Where names lead; what is not here is not known, but for numbers.
    pub(crate) names: BTreeMap<String, Vec<IpAddr>>,
    pub(crate) zone: TimeZone,
}

/// Nothing of it, as of the real one: tests look for secrets in what is shown.
impl fmt::Debug for FakeMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeMachine")
    }
}

impl FakeMachine {
    pub(crate) fn new() -> FakeMachine {
        FakeMachine { variables: BTreeMap::new(), names: BTreeMap::new(), zone: TimeZone::UTC }
    }

    pub(crate) fn with_variable(name: &str, value: &str) -> FakeMachine {
        FakeMachine { variables: [(name.to_owned(), value.to_owned())].into(), ..FakeMachine::new() }
    }

    /// Returns a machine on which a name leads to these numbers.
    pub(crate) fn with_name(name: &str, numbers: &[&str]) -> FakeMachine {
        let numbers = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        FakeMachine { names: [(name.to_owned(), numbers)].into(), ..FakeMachine::new() }
    }
}

impl Machine for FakeMachine {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let numbers = match (self.names.get(host), host.parse::<IpAddr>()) {
            (Some(numbers), _) => numbers.clone(),
            (None, Ok(number)) => vec![number],
            (None, Err(_)) => return Err(io::Error::other("no such name")),
        };
        Ok(numbers.into_iter().map(|number| SocketAddr::new(number, port)).collect())
    }

    fn zone(&self) -> TimeZone {
        self.zone.clone()
    }
}

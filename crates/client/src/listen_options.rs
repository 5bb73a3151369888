//! Where a daemon was told to listen beside its socket: it writes that down for whoever comes after it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address to listen at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;
    fn from_str(text: &str) -> Result<Address, String> {
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse::<u16>() {
            return Ok(Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse()
            .map(Address)
            .map_err(|_| "expected an address such as 127.0.0.1:PORT, [::1]:PORT, or a PORT alone".into())
    }
}

impl TryFrom<String> for Address {
    type Error = String;
    fn try_from(text: String) -> Result<Address, String> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(Address(address): Address) -> String {
        address.to_string()
    }
}

/// Where to listen, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// The addresses.
    pub listen: Vec<Address>,
    /// The certificate's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// The key's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// What we are called beside our addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

impl Listening {
    /// Makes paths whole: whoever comes next may be started in another directory.
    pub fn absolute(mut self) -> Listening {
        for path in [&mut self.tls_cert, &mut self.tls_key].into_iter().flatten() {
            *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_whole_or_a_port_of_this_machine() {
        let shown = |text: &str| text.parse::<Address>().map(String::from).ok();
        assert_eq!(shown("7700").as_deref(), Some("127.0.0.1:7700"));
        assert_eq!(shown("localhost:7700").as_deref(), Some("127.0.0.1:7700"));
        assert_eq!(shown("[::1]:0").as_deref(), Some("[::1]:0"));
        for bad in ["", "70000", "box:7700", "127.0.0.1", "::1:7700", "localhost"] {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }
}

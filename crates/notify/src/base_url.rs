//! The address under which this daemon is reached by people elsewhere: what links in notifications begin with.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use serde::Deserialize;

/// The longest that is taken: links are longer still, and services cut what they show.
const MAX_LENGTH: usize = 500;

/// A base URL: `https`, or `http` on this machine, with a host, maybe a port and a path, and without an end slash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BaseUrl {
    text: String,
    host: String,
}

impl BaseUrl {
    /// Returns it without a slash at its end: a path that follows begins with one.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its host as it stands there, a number of the sixth version in brackets, without a port.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for BaseUrl {
    type Err = String;

    fn from_str(written: &str) -> Result<BaseUrl, String> {
        let bad = |why: &str| {
            format!(
                "base_url is not an address for links: {why}; write https://HOST, or http://127.0.0.1:PORT on this machine"
            )
        };
        if written.len() > MAX_LENGTH {
            return Err(bad("it is too long"));
        }
        // The type below drops a fragment, and takes characters that end a link in some message.
        if written.contains('#') || written.contains('?') {
            return Err(bad("it must not have a query or a fragment"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]%@".contains(c);
        if !written.chars().all(fits) {
            return Err(bad("it has characters that a URL may not have"));
        }
        let text = written.trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| bad("it is not a URL"))?;
        let authority = uri.authority().ok_or_else(|| bad("it begins with neither https:// nor http://"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it contains a user name"));
        }
        let host = authority.host();
        if host.is_empty() || authority.port().is_none() && authority.as_str() != host {
            return Err(bad("its host or port is not valid"));
        }
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_this_machine(host) => {}
            Some("http") => {
                return Err(bad("links contain secrets, which http would send unencrypted"));
            }
            _ => return Err(bad("it begins with neither https:// nor http://")),
        }
        Ok(BaseUrl { text: text.to_owned(), host: host.to_owned() })
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = String;

    fn try_from(written: String) -> Result<BaseUrl, String> {
        written.parse()
    }
}

fn is_this_machine(host: &str) -> bool {
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || number.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_begin_with_https_or_stay_on_this_machine() {
        let cases = [
            ("https://box.example", "https://box.example", "box.example"),
            ("https://box.example/", "https://box.example", "box.example"),
            ("https://box.example:8443/rekindle/", "https://box.example:8443/rekindle", "box.example"),
            ("http://127.0.0.1:7700", "http://127.0.0.1:7700", "127.0.0.1"),
            ("http://[::1]:7700", "http://[::1]:7700", "[::1]"),
            ("http://localhost:7700/", "http://localhost:7700", "localhost"),
        ];
        for (written, text, host) in cases {
            let url: BaseUrl = written.parse().expect(written);
            assert_eq!((url.as_str(), url.host()), (text, host), "{written}");
        }
        for wrong in [
            "",
            "box.example",
            "https://",
            "https:///x",
            "ftp://box.example",
            "javascript:alert(1)",
            "http://box.example",
            "http://10.0.0.1",
            "https://ada@box.example",
            "https://box.example?x=1",
            "https://box.example/#x",
            "https://box.example/a b",
            "https://box.example/<b>",
            "https://box.example:99999",
            "https://box.example:",
        ] {
            let why = wrong.parse::<BaseUrl>().expect_err(wrong);
            assert!(why.contains("base_url") && why.contains("https://HOST"), "{why}");
        }
        assert!(format!("https://{}", "a".repeat(MAX_LENGTH)).parse::<BaseUrl>().is_err());
    }
}

//! Whether a request that came over TCP is meant for us. A page of someone else, for whose name an attacker had the browser
//! look up our address, names a host that is not ours; a page that sends requests across names another origin.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};
use rekindle_wire::code::Code;

use crate::error::ApiError;

/// What is ours: the address a caller reached us at, and names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours<'a> {
    /// Where the connection arrived.
    pub(crate) local: SocketAddr,
    /// Names that were given for us, in lower case.
    pub(crate) names: &'a [String],
    /// We speak TLS ourselves.
    pub(crate) tls: bool,
}

impl Ours<'_> {
    /// Refuses a request that is for another host, or comes from another's page.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let host = self.host(uri, headers).ok_or_else(|| {
            ApiError::new(Code::HostNotAllowed, "the Host header does not name this server").hint(
                "the Host header must be the address that was connected to, or a name given with serve --host",
            )
        })?;
        let foreign = |origin: &HeaderValue| !self.is_own_origin(origin, &host);
        if headers.get_all(ORIGIN).iter().any(foreign) {
            return Err(ApiError::new(Code::OriginNotAllowed, "requests from other web pages are refused")
                .hint("programs should send no Origin header"));
        }
        Ok(())
    }

    /// Returns the host that the request names, if it is ours. The port may be another: someone may pass a port of theirs
    /// on to ours.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
        let mut named = headers.get_all(HOST).iter();
        let host: Authority = named.next()?.to_str().ok()?.parse().ok()?;
        let alone = named.next().is_none() && !host.as_str().contains('@') && has_port_or_none(&host);
        // A request may name it in its first line too.
        let same = uri.authority().is_none_or(|other| other.as_str().eq_ignore_ascii_case(host.as_str()));
        (alone && same && self.is_name(host.host())).then_some(host)
    }

    fn is_name(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return address.to_canonical() == self.local.ip().to_canonical();
        }
        let name = name.to_ascii_lowercase();
        let localhost = name == "localhost" && self.local.ip().to_canonical().is_loopback();
        localhost || self.names.contains(&name)
    }

    fn is_own_origin(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let Some((scheme, rest)) = origin.to_str().ok().and_then(|text| text.split_once("://")) else {
            return false;
        };
        // Without TLS of our own there may be someone before us who speaks it.
        let ours = scheme.eq_ignore_ascii_case("https") || (!self.tls && scheme.eq_ignore_ascii_case("http"));
        ours && rest.eq_ignore_ascii_case(host.as_str())
    }
}

/// Tells whether nothing stands behind the name of a host but a port: `localhost:7.evil.example` names someone else.
fn has_port_or_none(host: &Authority) -> bool {
    let rest = host.as_str().strip_prefix(host.host()).unwrap_or_default();
    match rest.strip_prefix(':') {
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok(),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        local: &str,
        tls: bool,
        uri: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<(), &'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let names = ["box.example".to_owned()];
        let ours = Ours { local: local.parse().expect("an address"), names: &names, tls };
        ours.check(&uri.parse().expect("a path"), &map).map_err(|error| error.code())
    }

    #[test]
    fn only_our_own_hosts_are_ours() {
        let host = |local: &str, host: &str| check(local, false, "/", &[("host", host)]);
        for good in
            ["127.0.0.1:7", "127.0.0.1", "localhost:7", "LOCALHOST:99", "box.example", "Box.Example:443"]
        {
            assert_eq!(host("127.0.0.1:7", good), Ok(()), "{good}");
        }
        assert_eq!(host("[::1]:7", "[::1]:7"), Ok(()));
        assert_eq!(host("[::1]:7", "localhost:7"), Ok(()));
        assert_eq!(host("10.0.0.5:7", "10.0.0.5:7"), Ok(()));
        assert_eq!(host("[::ffff:10.0.0.5]:7", "10.0.0.5:7"), Ok(()));
        for bad in [
            "evil.example",
            "evil.example:7",
            "localhost.evil.example:7",
            "127.0.0.1.evil.example",
            "10.0.0.9",
            "localhost@evil.example",
            "evil@localhost",
            "",
            "box.example.",
            "0",
            "0x7f.1",
            "[::1]:7",
            "localhost:7.evil.example",
            "127.0.0.1:evil.example",
            "box.example:443.evil.example",
            "localhost:99999",
            "localhost:+7",
            "localhost:",
        ] {
            assert_eq!(host("127.0.0.1:7", bad), Err("host_not_allowed"), "{bad}");
        }
        assert_eq!(host("10.0.0.5:7", "localhost:7"), Err("host_not_allowed"), "it is not loopback");
        assert_eq!(check("127.0.0.1:7", false, "/", &[]), Err("host_not_allowed"));
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check("127.0.0.1:7", false, "/", &twice), Err("host_not_allowed"));
        let line = |uri: &str| check("127.0.0.1:7", false, uri, &[("host", "localhost:7")]);
        assert_eq!(line("http://evil.example/"), Err("host_not_allowed"));
        assert_eq!(line("http://localhost:7/"), Ok(()));
    }

    #[test]
    fn only_our_own_pages_may_ask() {
        let origin = |tls, host: &str, origin: &str| {
            check("127.0.0.1:7", tls, "/", &[("host", host), ("origin", origin)])
        };
        assert_eq!(origin(false, "localhost:7", "http://localhost:7"), Ok(()));
        assert_eq!(origin(false, "box.example", "https://box.example"), Ok(()));
        assert_eq!(origin(true, "localhost:7", "https://localhost:7"), Ok(()));
        for bad in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:8",
            "http://localhost",
            "http://127.0.0.1:7",
            "https://localhost:7.evil.example",
            "file://",
            "http://localhost:7/",
        ] {
            assert_eq!(origin(false, "localhost:7", bad), Err("origin_not_allowed"), "{bad}");
        }
        assert_eq!(origin(true, "localhost:7", "http://localhost:7"), Err("origin_not_allowed"));
        let both =
            [("host", "localhost:7"), ("origin", "http://localhost:7"), ("origin", "http://evil.example")];
        assert_eq!(check("127.0.0.1:7", false, "/", &both), Err("origin_not_allowed"));
    }
}

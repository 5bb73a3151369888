//! A daemon elsewhere: where it listens, what is shown to it, and whom it must prove to be. A token is never sent in the
//! clear over a network.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use hyper::Uri;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::request_error::{RequestError, Stream};
use crate::failure::Failure;

/// An access token; it is shown to the server and to nobody else.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a token.
    pub fn new(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// A daemon elsewhere.
#[derive(Debug)]
pub struct Server {
    /// As it was named.
    pub url: String,
    /// What the header Host says.
    pub authority: String,
    host: String,
    port: u16,
    token: Option<Secret>,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Server {
    /// Reads what names it.
    pub fn new(url: &str, token: Option<Secret>, ca: Option<&Path>) -> Result<Server, Failure> {
        let shown: String = url.chars().take(200).collect();
        let bad = |why: &str| {
            Failure::usage("bad_server", format!("{shown:?} is not the address of a server: {why}"))
                .hint("https://HOST:PORT, or http://127.0.0.1:PORT on this machine or through a tunnel")
        };
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| bad("it is not a URL"))?;
        let authority = uri.authority().ok_or_else(|| bad("it begins with neither http:// nor https://"))?;
        if !matches!(uri.path_and_query().map(|rest| rest.as_str()), None | Some("" | "/")) {
            return Err(bad("there must be nothing after the port"));
        }
        if authority.as_str().contains('@') {
            return Err(bad("a token is given with --token-file or $REKINDLE_TOKEN"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (tls, port) = match uri.scheme_str() {
            Some("https") => {
                let name =
                    ServerName::try_from(host.clone()).map_err(|_| bad("its host is not a valid name"))?;
                (Some((trust(ca)?, name)), 443)
            }
            Some("http") if is_this_machine(&host) => (None, 80),
            Some("http") => return Err(bad("a token would be sent unencrypted")),
            _ => return Err(bad("it begins with neither http:// nor https://")),
        };
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" => port,
            named => named.trim_start_matches(':').parse().map_err(|_| bad("its port is not valid"))?,
        };
        Ok(Server {
            url: shown.trim_end_matches('/').into(),
            authority: authority.to_string(),
            host,
            port,
            token,
            tls,
        })
    }

    /// Returns what shows who asks, if anything does.
    pub fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {}", token.0))
    }

    /// Connects to it.
    pub(super) async fn connect(&self) -> Result<Box<dyn Stream>, RequestError> {
        let not_there = |source| RequestError::Unreachable { path: self.url.clone(), source };
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(not_there)?;
        let _ = stream.set_nodelay(true);
        let Some((config, name)) = &self.tls else { return Ok(Box::new(stream)) };
        let connector = TlsConnector::from(Arc::clone(config));
        let untrusted = |source: io::Error| RequestError::Untrusted { path: self.url.clone(), source };
        Ok(Box::new(connector.connect(name.clone(), stream).await.map_err(untrusted)?))
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns whom to trust: who stands in a file, or whom the system trusts.
fn trust(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(file) => {
            let bad = |why: String| {
                Failure::usage("bad_ca", format!("{} contains no certificate: {why}", file.display()))
                    .hint("--ca names a file with certificates in PEM format")
            };
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| bad(error.to_string()))?;
                roots.add(certificate).map_err(|error| bad(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(bad("there is none in PEM format".into()));
            }
        }
        None => {
            // One that is broken keeps nobody from trusting the others.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::failed("tls", error))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_a_url_and_no_token_goes_in_the_clear() {
        let server = |url: &str| Server::new(url, None, None);
        let loopback = server("http://127.0.0.1:7700/").expect("a server");
        assert_eq!(
            (loopback.host.as_str(), loopback.port, loopback.tls.is_some()),
            ("127.0.0.1", 7700, false)
        );
        assert_eq!(loopback.url, "http://127.0.0.1:7700");
        let six = server("http://[::1]:7700").expect("a server");
        assert_eq!((six.host.as_str(), six.authority.as_str()), ("::1", "[::1]:7700"));
        let far = server("https://box.example").expect("a server");
        assert_eq!((far.host.as_str(), far.port, far.tls.is_some()), ("box.example", 443, true));
        for bad in [
            "",
            "127.0.0.1:7700",
            "ftp://127.0.0.1",
            "http://10.0.0.5:7700",
            "http://box.example",
            "https://",
            "http://tok@127.0.0.1:1",
            "http://127.0.0.1:1/api",
            "http://127.0.0.1:99999",
        ] {
            assert_eq!(server(bad).expect_err(bad).code(), "bad_server", "{bad}");
        }
        assert_eq!(format!("{:?}", Secret::new("tok_1.abc")), "<secret>");
    }
}

//! A connection to Postgres: over TLS wherever it leaves the machine, to a server whose certificate was verified. What is said when
//! there is none has nothing of the address in it, for that has a password.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use rekindle_notify::client_tls;
use rustls::CertificateError;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::chain;

#[cfg(test)]
mod tests;

/// Connects to the server at an address. Its certificate must be signed by whom a file names, or by whom the system trusts.
pub(super) fn connect_postgres(address: &str, ca_file: Option<&Path>) -> Result<Client, String> {
    let mut config: Config = address.parse().map_err(|error| unreadable(&error))?;
    config.connect_timeout(Duration::from_secs(5)).application_name("rekindle");
    // A network that went away is noticed while somebody waits, not in two hours.
    config.keepalives_idle(Duration::from_secs(10)).keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(20));
    let mode = ssl_mode(&config, ca_file.is_some());
    config.ssl_mode(mode);
    let connected = match mode {
        SslMode::Disable => config.connect(NoTls),
        _ => {
            let tls = client_tls(ca_file).map_err(|why| format!("[tasks] {why}"))?;
            config.connect(MakeRustlsConnect::new(tls))
        }
    };
    connected.map_err(|error| explain(&error))
}

/// How far an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// To a Unix socket, over which Postgres speaks no TLS.
    Socket,
    /// To a port of this machine.
    Loopback,
    /// Over a network.
    Network,
}

/// Returns how far an address leads; of several servers the farthest counts.
fn reach(config: &Config) -> Reach {
    let of_address = |loopback: bool| if loopback { Reach::Loopback } else { Reach::Network };
    let numbers =
        config.get_hostaddrs().iter().map(|address| of_address(address.to_canonical().is_loopback()));
    // With numbers beside them names are only for certificates.
    let names = config.get_hosts().iter().filter(|_| config.get_hostaddrs().is_empty());
    let names = names.map(|host| match host {
        Host::Unix(_) => Reach::Socket,
        Host::Tcp(name) => {
            let number = name.parse::<std::net::IpAddr>();
            of_address(name == "localhost" || number.is_ok_and(|number| number.to_canonical().is_loopback()))
        }
    });
    numbers.chain(names).max().unwrap_or(Reach::Network)
}

/// Decides whether a connection goes over TLS: over a network always, unless the address says `sslmode=disable`, so that no password
/// crosses one in the clear because nobody thought of it. On this machine only if it is asked for, by `sslmode=require` or by naming
/// whom to trust: nobody listens there, and the certificate that distributions make for every Postgres is signed by nobody.
fn ssl_mode(config: &Config, names_authority: bool) -> SslMode {
    match (config.get_ssl_mode(), reach(config)) {
        (SslMode::Disable, _) | (_, Reach::Socket) => SslMode::Disable,
        (SslMode::Prefer, Reach::Loopback) if !names_authority => SslMode::Disable,
        _ => SslMode::Require,
    }
}

/// Says why an address cannot be read. Of the reason only one that has no word of the address is told.
fn unreadable(error: &postgres::Error) -> String {
    match error.source().map(ToString::to_string).as_deref() {
        Some("invalid value for option `sslmode`") => {
            "its address has an unknown sslmode: use disable, prefer or require; certificates are always verified, as with verify-full"
        }
        _ => "its address cannot be read: postgres://USER:PASSWORD@HOST/DATABASE",
    }
    .to_owned()
}

/// Says why there is no connection, and what to do about it. The usual words of several reasons have names of the address in them.
fn explain(error: &postgres::Error) -> String {
    let causes = || std::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (*cause).source());
    // What is inside an I/O error is not its cause, but itself.
    let tls = causes()
        .filter_map(|cause| cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>())
        .next();
    if let Some(error) = tls {
        return untrusted(error);
    }
    if causes().any(|cause| cause.to_string() == "server does not support TLS") {
        return "it does not support TLS, and nothing was sent to it: set ssl = on there, or, if you trust the network in \
                between, add sslmode=disable to its address"
            .into();
    }
    let Some(code) = error.code() else { return chain(error) };
    if *code == SqlState::INVALID_PASSWORD {
        "it rejects the password in the address for that user".into()
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        "it does not know the user in the address, or does not let it in from here: check its pg_hba.conf; \
         if that says hostssl, add sslmode=require to the address"
            .into()
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        "it has no database with the name in the address: make one with createdb".into()
    } else {
        chain(error)
    }
}

/// Says why a server's certificate, or how it speaks TLS, is not good enough.
fn untrusted(error: &rustls::Error) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
        UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(why) = error else {
        return format!(
            "it does not support TLS 1.3, which Postgres needs OpenSSL 1.1.1 or later for: {error}"
        );
    };
    match why {
        UnknownIssuer => {
            "its certificate is not signed by a trusted authority: set [tasks] ca_file in config.toml to a file with the \
             certificate of its authority"
                .into()
        }
        NotValidForName | NotValidForNameContext { .. } => {
            "its certificate is for a different name than the address has: use that name in the address, or make a certificate for this one"
                .into()
        }
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "its certificate has expired or is not valid yet: renew it, or check the clocks".into()
        }
        // What `openssl req -x509` makes unless it is told otherwise.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is marked as a certificate authority (CA:TRUE), which must not be accepted from a \
             server: make one with -addext basicConstraints=critical,CA:FALSE"
                .into()
        }
        other => format!("its certificate cannot be trusted: {other}"),
    }
}

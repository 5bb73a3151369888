//! Where a daemon listens beside its socket: what it was told, what the one before it was told, or what the configuration
//! says, in this order. Beyond this machine only with TLS and with a token that lets someone in.

use std::net::TcpListener;
use std::path::Path;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::Failure;
use rekindle_client::listen_options::{Address, Listening};
use rekindle_domain::time::Clock;
use rekindle_server::Tls;
use rekindle_service::access::AccessFile;
use rekindle_store::disk::Disk;

/// Where to listen, and what to do if that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Where.
    pub(crate) listening: Listening,
    /// It was said on a command line, and is said again to whoever comes next.
    pub(crate) told: bool,
    /// Without it nothing is served: whoever asked for it is there to hear why not.
    pub(crate) must: bool,
}

/// Decides where to listen: `flags` were given now, `before` to a daemon that went.
pub(crate) fn choose(
    flags: Listening,
    before: Option<Listening>,
    configured: Listening,
    foreground: bool,
) -> Option<Wanted> {
    if flags != Listening::default() {
        return Some(Wanted { listening: flags, told: true, must: true });
    }
    if let Some(before) = before {
        return Some(Wanted { listening: before, told: true, must: false });
    }
    let any = configured != Listening::default();
    any.then_some(Wanted { listening: configured, told: false, must: foreground })
}

/// Checks everything but whether the addresses can be had; returns what we are known by there.
pub(crate) fn check(listening: &Listening, disk: &dyn Disk, home: &Path) -> Result<Option<Tls>, Failure> {
    let bad = |message: String| Failure::usage("bad_listen", message);
    let tls = match (&listening.tls_cert, &listening.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(Tls::read(certificate, key).map_err(|error| Failure::failed("tls", error)
                .hint("--tls-cert names a certificate in PEM form, with those that vouch for it behind it; --tls-key its key"))?)
        }
        (None, None) => None,
        _ => return Err(bad("a certificate needs its key, and a key its certificate".into()).hint("--tls-cert FILE --tls-key FILE")),
    };
    if listening.listen.is_empty() {
        return Err(bad("the address to listen at is missing".into()).hint("--listen 127.0.0.1:PORT"));
    }
    let named = |name: &String| {
        name.parse::<std::net::Ipv6Addr>().is_err()
            && !name.is_empty()
            && !name.contains([':', '/', '@', ' '])
    };
    if let Some(name) = listening.hosts.iter().find(|name| !named(name)) {
        return Err(
            bad(format!("{name:?} is not a host name")).hint("write the name alone, without scheme and port")
        );
    }
    let beyond = listening.listen.iter().find(|Address(address)| !address.ip().to_canonical().is_loopback());
    if let Some(Address(address)) = beyond {
        if tls.is_none() {
            return Err(bad(format!(
                "{address} can be reached from other machines, and tokens would be sent unencrypted"
            ))
            .hint("give --tls-cert and --tls-key, or listen at 127.0.0.1 behind a tunnel"));
        }
        let list = AccessFile::of_home(disk, home, SystemClock.now());
        let active = list.list().map(|(tokens, _)| tokens.active(list.now()));
        if active.map_err(|error| Failure::failed("tokens_unreadable", error))? == 0 {
            return Err(bad(format!("{address} can be reached from other machines, but there is no access token to let a client in"))
                .hint("rekindle token create makes one"));
        }
    }
    Ok(tls)
}

/// Listens at addresses.
pub(crate) fn bind(addresses: &[Address]) -> Result<Vec<TcpListener>, Failure> {
    let bind = |Address(address): &Address| {
        TcpListener::bind(address).map_err(|error| {
            let error = anyhow::Error::new(error).context(format!("cannot listen at {address}"));
            Failure::failed("listen", error)
                .hint("another program may be using it: choose another port, or 0 for any")
        })
    };
    addresses.iter().map(bind).collect()
}

#[cfg(test)]
mod tests {
    use rekindle_store::disk::RealDisk;

    use super::*;

    fn at(addresses: &[&str]) -> Listening {
        let listen = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        Listening { listen, ..Listening::default() }
    }

    #[test]
    fn what_is_said_now_counts_before_what_was_said_before_and_what_is_configured() {
        let choose = |flags, before, foreground| {
            super::choose(flags, before, at(&["3"]), foreground).expect("somewhere")
        };
        let none = Listening::default;
        let wanted = |port, told, must| Wanted { listening: at(&[port]), told, must };
        assert_eq!(choose(at(&["1"]), Some(at(&["2"])), false), wanted("1", true, true));
        assert_eq!(choose(none(), Some(at(&["2"])), true), wanted("2", true, false));
        assert_eq!(choose(none(), None, true), wanted("3", false, true));
        assert_eq!(choose(none(), None, false), wanted("3", false, false));
        assert_eq!(super::choose(none(), None, none(), true), None);
    }

    #[test]
    fn beyond_this_machine_it_takes_tls() {
        let check = |listening: &Listening| {
            let home = tempfile::tempdir().expect("a directory");
            super::check(listening, &RealDisk, home.path()).map(drop).map_err(|failure| failure.message())
        };
        for good in ["127.0.0.1:0", "127.9.9.9:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert_eq!(check(&at(&[good])), Ok(()), "{good}");
        }
        for beyond in ["0.0.0.0:0", "[::]:0", "10.0.0.5:0", "[::ffff:10.0.0.5]:0"] {
            let refused = check(&at(&["127.0.0.1:0", beyond])).expect_err(beyond);
            assert!(refused.contains("unencrypted"), "{refused}");
        }
        let half = Listening { tls_cert: Some("/x".into()), ..at(&["1"]) };
        assert!(check(&half).is_err_and(|why| why.contains("needs its key")));
        let bad = Listening { hosts: vec!["https://x".into()], ..at(&["1"]) };
        assert!(check(&bad).is_err_and(|why| why.contains("is not a host name")));
        assert!(check(&Listening { hosts: vec!["box".into()], ..Listening::default() }).is_err());
    }
}

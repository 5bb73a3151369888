//! Telling whoever started us as a service how we are: one datagram, which may be lost.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rekindle_client::start::NOTIFY;

/// Tells whether someone waits to be told.
pub(crate) fn is_configured() -> bool {
    std::env::var_os(NOTIFY).is_some()
}

/// Tells, if someone waits for it. One who cannot be told finds out otherwise.
pub(crate) fn send_state(state: &str) {
    let Some(socket) = std::env::var_os(NOTIFY) else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, state, "the service manager cannot be told");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let ours = UnixDatagram::unbound()?;
    // Nobody is waited for who does not read.
    ours.set_nonblocking(true)?;
    ours.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_arrives_at_a_path_and_at_a_name_without_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notify");
        let name = format!("rekindle-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        for (listener, socket) in [
            (UnixDatagram::bind(&path).expect("bound"), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&address).expect("bound"), format!("@{name}").into()),
        ] {
            send(&socket, "READY=1").expect("sent");
            let mut bytes = [0; 32];
            let count = listener.recv(&mut bytes).expect("received");
            assert_eq!(&bytes[..count], b"READY=1");
        }
        assert!(send(OsStr::new("/nowhere/at/all"), "READY=1").is_err());
    }
}

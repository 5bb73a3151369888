//! A door on loopback TCP to a unix socket, for programs that know only the one. It ends with the program.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use crate::failure::{Context, Failure, Result, ensure};

/// Opens a door to a socket, and says where.
pub(super) fn to_socket(socket: PathBuf) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context(|| "cannot listen on loopback")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let socket = socket.clone();
            thread::spawn(move || {
                // Whoever comes when there is no daemon finds a closed door.
                if let Ok(inner) = UnixStream::connect(&socket) {
                    let _ = join(&stream, &inner);
                }
            });
        }
    });
    Ok(address)
}

/// Carries bytes both ways until both sides have ended.
fn join(outer: &TcpStream, inner: &UnixStream) -> io::Result<()> {
    let (mut from, mut to) = (outer.try_clone()?, inner.try_clone()?);
    let upwards = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (inner, outer);
    let _ = io::copy(&mut from, &mut to);
    let _ = outer.shutdown(Shutdown::Both);
    let _ = inner.shutdown(Shutdown::Both);
    let _ = upwards.join();
    Ok(())
}

/// Fetches something into a file.
pub(super) fn fetch(address: SocketAddr, path: &str, file: &Path) -> Result<()> {
    let mut stream = TcpStream::connect(address).context(|| "cannot connect to the daemon")?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .ok_or_else(|| Failure::new("no answer"))?;
    ensure(answer.starts_with(b"HTTP/1.1 200 "), || format!("{}", String::from_utf8_lossy(&answer)))?;
    std::fs::write(file, &answer[end + 4..]).context(|| format!("cannot write {}", file.display()))
}

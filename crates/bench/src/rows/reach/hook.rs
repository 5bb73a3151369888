//! A receiver of notifications on this machine: takes requests at once, or never answers, and tells when each came.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Context as _;
use rekindle_domain::time::{Clock, Timestamp};
use serde_json::Value;

use crate::home::WallClock;

/// A request that came.
pub(super) struct Came {
    pub(super) at: Timestamp,
    pub(super) body: Value,
}

/// The receiver.
pub(super) struct Hook {
    port: u16,
    pub(super) came: Receiver<Came>,
}

impl Hook {
    /// Starts one; a slow one takes what it is sent and never answers.
    pub(super) fn start(slow: bool) -> anyhow::Result<Hook> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port")?;
        let port = listener.local_addr().context("no address")?.port();
        let (tell, came) = channel();
        std::thread::spawn(move || {
            // Those that are never answered are kept open.
            let mut kept = Vec::new();
            for stream in listener.incoming().flatten() {
                kept.extend(take(stream, &tell, slow));
            }
        });
        Ok(Hook { port, came })
    }

    /// Returns the configuration of a daemon that tells it everything, at once.
    pub(super) fn config(&self) -> String {
        format!(
            "[notify]\nsettle = \"0s\"\n[notify.sinks.hook]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\n\
             allow_private = true\nwhen = \"always\"\nrate = \"off\"\n",
            self.port
        )
    }
}

fn take(mut stream: TcpStream, tell: &Sender<Came>, slow: bool) -> Option<TcpStream> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        let Ok(body) = serde_json::from_str(body) else { continue };
        let _ = tell.send(Came { at: WallClock.now(), body });
        if slow {
            return Some(stream);
        }
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        return None;
    }
}

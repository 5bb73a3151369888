//! A receiver of webhooks that keeps what it is told, and hangs or refuses when it is to.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::wait_for;

/// Somebody who takes requests and keeps what they say.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    got: Arc<Mutex<Vec<Value>>>,
    /// Nothing is answered meanwhile.
    pub(crate) hangs: Arc<AtomicBool>,
    /// How many more requests are taken and then refused for a second.
    pub(crate) refuses: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let receiver = Receiver { port, got: Arc::default(), hangs: Arc::default(), refuses: Arc::default() };
        let (got, hangs, refuses) = (receiver.got.clone(), receiver.hangs.clone(), receiver.refuses.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (got, hangs, refuses) = (got.clone(), hangs.clone(), refuses.clone());
                std::thread::spawn(move || take(stream, &got, &hangs, &refuses));
            }
        });
        receiver
    }

    /// Returns the section of a sink that posts to it.
    pub(crate) fn section(&self, name: &str) -> String {
        format!(
            "[notify.sinks.{name}]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{}/hook-secret\"\nallow_private = true\n\
             secret = \"env:HOOK_SECRET\"\n",
            self.port
        )
    }

    /// Returns what it got: kinds, and the records that they are about.
    pub(crate) fn told(&self) -> Vec<String> {
        let text = |body: &Value| {
            let seq = body["event_id"].as_str().and_then(|id| id.rsplit('.').next()).unwrap_or_default();
            format!("{} {seq}", body["kind"].as_str().unwrap_or("summary"))
        };
        self.bodies().iter().map(text).collect()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.got.lock().expect("what it got").clone()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) {
        let found = || self.told().iter().any(|told| told.split(' ').next() == Some(event)).then_some(());
        wait_for(&format!("{event} among {:?}", self.told()), found);
    }
}

/// Reads one request and answers it.
fn take(mut stream: TcpStream, got: &Mutex<Vec<Value>>, hangs: &AtomicBool, refuses: &AtomicUsize) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let body = loop {
        let Ok(read) = stream.read(&mut buffer) else { return };
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break body.to_owned();
        }
    };
    let begin = Instant::now();
    while hangs.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_secs(60) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    if let Ok(body) = serde_json::from_str(&body) {
        got.lock().expect("what it got").push(body);
    }
    let refused =
        refuses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    let status = if refused { "503 Service Unavailable\r\nretry-after: 1" } else { "204 No Content" };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
}

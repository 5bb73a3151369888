//! Lines in and lines out. Each line out is handed over in one write under one lock, so that nothing ever stands
//! between its parts; lines in become events, and none is lost between the pipe and whoever handles it.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rekindle_seeded::Rng;
use serde_json::{Value, json};

/// Longest line taken in; a longer one is answered like one that cannot be parsed.
const LONGEST_LINE: usize = 64 << 20;

/// Locks, also after a panic elsewhere: every value here is whole between two calls.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way out.
pub(crate) struct Wire {
    out: Mutex<File>,
}

impl Wire {
    /// Takes stdout, past the buffer that would split lines.
    pub(crate) fn stdout() -> io::Result<Wire> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Wire { out: Mutex::new(File::from(out)) })
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &Value) {
        self.raw(line(message).as_bytes());
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        // A client that went away is noticed by the end of stdin; until then a turn runs on, as agents do.
        let _ = lock(&self.out).write_all(bytes);
    }

    /// Keeps everybody else from sending while the guard lives.
    pub(crate) fn lock_output(&self) -> MutexGuard<'_, File> {
        lock(&self.out)
    }

    /// Answers a request.
    pub(crate) fn reply(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Answers a request with an error.
    pub(crate) fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    /// Sends something that happened in a session.
    pub(crate) fn update(&self, session: &str, update: Value) {
        self.send(&update_message(session, update));
    }
}

/// Returns a message as a line.
pub(crate) fn line(message: &Value) -> String {
    format!("{message}\n")
}

/// Returns the message that carries an update.
pub(crate) fn update_message(session: &str, update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})
}

/// Returns a part of a message.
pub(crate) fn chunk(kind: &str, message_id: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "messageId": message_id, "content": {"type": "text", "text": text}})
}

/// Returns the text that `huge` sends when there is room for `len` bytes: always the same for a length, plain
/// letters and digits, and hard to compress.
pub(crate) fn huge_text(len: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(len + 10);
    let mut rng = Rng::new(0);
    while text.len() < len {
        // Ten letters of six bits from each number.
        let bits = rng.next_u64();
        text.extend((0..10).map(|at| char::from(LETTERS[(bits >> (6 * at)) as usize & 63])));
    }
    text.truncate(len);
    text
}

/// Returns the line that `huge` sends, of `bytes` bytes with its newline, or the shortest there is.
pub fn huge_line(session: &str, message_id: &str, bytes: usize) -> String {
    let with = |text: &str| line(&update_message(session, chunk("agent_message_chunk", message_id, text)));
    with(&huge_text(bytes.saturating_sub(with("").len())))
}

/// Reads stdin to its end and hands each line on.
pub(crate) fn read_lines(mut record: Option<File>, lines: &Sender<Vec<u8>>) {
    let (mut stdin, mut torn) = (io::stdin().lock(), Vec::new());
    loop {
        let part = match stdin.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) | Ok([]) => break,
            Ok(part) => part.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default(),
        };
        let (used, is_whole) = (part.len(), part.ends_with(b"\n"));
        if torn.len() <= LONGEST_LINE {
            torn.extend_from_slice(part);
        }
        stdin.consume(used);
        if is_whole {
            let line = std::mem::take(&mut torn);
            append_record(record.as_mut(), b"", &line);
            let _ = lines.send(line);
        }
    }
    // A line without an end was cut on its way and never arrived.
    if !torn.is_empty() {
        append_record(record.as_mut(), b"torn ", &torn);
    }
}

/// Opens the record of what comes in; its first line is our process id.
pub(crate) fn open_record(path: &Path) -> io::Result<File> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(format!("pid {}\n", std::process::id()).as_bytes())?;
    Ok(file)
}

fn append_record(record: Option<&mut File>, mark: &[u8], line: &[u8]) {
    let Some(record) = record else { return };
    let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
    // Whoever reads the record sees that something is missing; the client is not to blame for it.
    let _ = record.write_all(&[mark, line, end].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_line_has_the_size_asked_for_and_the_text_that_can_be_recomputed() {
        for bytes in [500, 4096, 1 << 20] {
            let line = huge_line("s1", "m1", bytes);
            assert_eq!(line.len(), bytes);
            let message: Value = serde_json::from_str(&line).expect("it is JSON");
            let text = message["params"]["update"]["content"]["text"].as_str().expect("a text");
            assert_eq!(text, huge_text(text.len()));
        }
        assert!(huge_line("s1", "m1", 1).ends_with("}\n"));
        assert!(huge_text(100).starts_with(&huge_text(37)));
    }
}

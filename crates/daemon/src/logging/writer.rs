//! The writer of the log: a thread of its own. A pipe that nobody reads or a disk that hangs holds up that thread alone: whoever
//! logs hands a line over and goes on, and lines for which there is no room are dropped and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Bytes of lines that may wait to be written: some thousand lines, which no burst of ours has. Behind them is a reader who is gone.
const MOST_WAITING: usize = 1 << 20;

/// Lines that are written together: a burst is some calls of the system, and not one for each.
const MOST_AT_ONCE: usize = 256;

/// How long the end waits for lines that are not written yet: a reader who lives takes them in milliseconds.
const LAST_LINES: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    /// Whoever asks is told when everything before it is written.
    Flush(SyncSender<()>),
}

#[derive(Default)]
struct Counts {
    /// Bytes that wait.
    waiting: AtomicUsize,
    /// Lines that were dropped and not told of yet.
    dropped: AtomicU64,
}

/// The log; when it is dropped, everything that was handed over is written, unless nobody takes it.
pub(crate) struct Log(LogWriter);

impl Log {
    /// Has lines written to a stream.
    pub(super) fn start(stream: impl Write + Send + 'static) -> Log {
        let (queue, messages) = channel();
        let counts = Arc::new(Counts::default());
        let known = counts.clone();
        // Without a thread every line is written by whoever logs it.
        let _ = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_lines(stream, &messages, &known));
        Log(LogWriter { queue, counts })
    }

    pub(super) fn writer(&self) -> LogWriter {
        self.0.clone()
    }

    /// Returns what waits, for a while, until everything that was logged before is written.
    pub(crate) fn flusher(&self) -> impl Fn() + Send + Sync + 'static {
        let writer = self.0.clone();
        move || writer.flush_lines()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.flush_lines();
    }
}

/// Hands lines over to the thread that writes them; each write is one line.
#[derive(Clone)]
pub(super) struct LogWriter {
    queue: Sender<Message>,
    counts: Arc<Counts>,
}

impl LogWriter {
    fn flush_lines(&self) {
        let (done, flushed) = sync_channel(1);
        if self.queue.send(Message::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(LAST_LINES);
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let waiting = self.counts.waiting.fetch_add(line.len(), Ordering::Relaxed) + line.len();
        if waiting > MOST_WAITING {
            self.counts.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        } else if self.queue.send(Message::Line(line.to_vec())).is_err() {
            self.counts.waiting.fetch_sub(line.len(), Ordering::Relaxed);
            io::stderr().write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes lines as they come, those that wait together, until nobody can log any more.
fn write_lines(mut stream: impl Write, messages: &Receiver<Message>, counts: &Counts) {
    let mut lines = Vec::new();
    for first in messages {
        let mut flushed = Vec::new();
        let more = std::iter::from_fn(|| messages.try_recv().ok()).take(MOST_AT_ONCE);
        for message in std::iter::once(first).chain(more) {
            match message {
                Message::Line(line) => lines.extend_from_slice(&line),
                Message::Flush(done) => flushed.push(done),
            }
        }
        // Nobody is left who could be told that they cannot be written.
        let _ = stream.write_all(&lines).and_then(|()| stream.flush());
        counts.waiting.fetch_sub(lines.len(), Ordering::Relaxed);
        lines.clear();
        for done in flushed {
            let _ = done.try_send(());
        }
        // Told as a line like any other, when there is room for it again.
        if counts.waiting.load(Ordering::Relaxed) < MOST_WAITING / 2 {
            let dropped = counts.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                tracing::warn!(
                    lines = dropped,
                    "some lines are missing here: they could not be written fast enough"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex, PoisonError};

    use super::*;

    /// A stream that takes nothing until it is opened.
    #[derive(Default)]
    struct Gate {
        state: Mutex<(bool, Vec<u8>)>,
        opened: Condvar,
    }

    impl Gate {
        fn open(&self) {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = true;
            self.opened.notify_all();
        }

        fn written(&self) -> Vec<u8> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
        }
    }

    struct Stream(Arc<Gate>);

    impl Write for Stream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state =
                self.0.opened.wait_while(state, |(open, _)| !*open).unwrap_or_else(PoisonError::into_inner);
            state.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_reader_who_does_not_read_and_what_is_dropped_is_counted() {
        let gate = Arc::new(Gate::default());
        let log = Log::start(Stream(gate.clone()));
        let mut writer = log.writer();
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<u8>>();
        // None of these would come back if they waited.
        for _ in 0..2 * MOST_WAITING / line.len() {
            writer.write_all(&line).expect("handed over");
        }
        let dropped = log.0.counts.dropped.load(Ordering::Relaxed) as usize;
        assert_eq!(dropped, MOST_WAITING / line.len(), "what is kept is bounded");
        gate.open();
        drop(log);
        let written = gate.written();
        assert_eq!(written.len(), MOST_WAITING, "what was handed over is written");
        assert!(written.chunks(line.len()).all(|one| one == line), "line by line");
    }
}

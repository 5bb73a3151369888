//! The end of what a process writes to stderr, read beside it: whoever fails there mostly says why.

use std::io::Read;
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much is kept: the last lines of an error message.
const KEPT: usize = 2048;

/// What a process wrote to stderr, from its end.
pub(super) struct StderrTail {
    kept: Arc<Mutex<Vec<u8>>>,
    closed: Receiver<()>,
}

impl StderrTail {
    /// Reads until the other end is closed, on a thread of its own. Whoever has left the process's group may hold the pipe open: nobody
    /// waits for that thread.
    pub(super) fn read(mut stderr: ChildStderr) -> StderrTail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (close, closed) = sync_channel(1);
        let keep = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..count]);
                let over = kept.len().saturating_sub(KEPT);
                kept.drain(..over);
            }
            let _ = close.send(());
        });
        StderrTail { kept, closed }
    }

    /// Returns what there is, once the process has ended; waits a moment for what is still in the pipe.
    pub(super) fn take(self, most: Duration) -> String {
        let _ = self.closed.recv_timeout(most);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}

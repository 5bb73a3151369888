//! A terminal in raw mode: keys come one by one, output stays as it is. However the process ends, the terminal is given back as it was.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

/// How long the thread that waits for keys waits before it checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// What has a terminal mark pasted text, and what ends that.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const MARK_NO_PASTES: &[u8] = b"\x1b[?2004l";

/// How pasted text comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paste {
    /// As one event, and stdout is told so.
    Whole,
    /// As the keys that would type it.
    Typed,
}

/// The terminal at stdin in raw mode, with a thread that reads its events; given back when this goes away.
pub struct RawTerminal {
    wanted: Arc<AtomicBool>,
    paste: Paste,
}

impl RawTerminal {
    /// Takes the terminal; `tell` is told each event, and says whether anyone still listens.
    pub fn take(
        paste: Paste,
        mut tell: impl FnMut(Event) -> bool + Send + 'static,
    ) -> io::Result<RawTerminal> {
        enable_raw_mode()?;
        let wanted = Arc::new(AtomicBool::new(true));
        // From here on it is given back, whatever comes.
        let terminal = RawTerminal { wanted: Arc::clone(&wanted), paste };
        // A panic may end the process without anything's going away.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back(paste);
            before(panic);
        }));
        // Raw output would need carriage returns in what is to be exact, and in what others write.
        let stdin = io::stdin();
        let mut modes = tcgetattr(&stdin)?;
        modes.output_modes |= OutputModes::OPOST;
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        if paste == Paste::Whole {
            write(MARK_PASTES)?;
        }
        std::thread::spawn(move || {
            while wanted.load(Ordering::Relaxed) {
                match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(_) => return,
                }
                let Ok(event) = event::read() else { return };
                if !tell(event) {
                    return;
                }
            }
        });
        Ok(terminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        give_back(self.paste);
    }
}

/// Tells whether the terminal is ours to take: a command that a shell runs in the background would be stopped for it.
pub fn is_foreground() -> bool {
    // A terminal that controls nobody belongs to whoever has it.
    rustix::termios::tcgetpgrp(io::stdin()).map_or(true, |group| group == rustix::process::getpgrp())
}

fn give_back(paste: Paste) {
    // It may be gone.
    if paste == Paste::Whole {
        let _ = write(MARK_NO_PASTES);
    }
    let _ = disable_raw_mode();
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

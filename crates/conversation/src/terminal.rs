//! The terminal while one converses: keys come one by one, pasted text as one thing. However the process ends, it is given back as it
//! was.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

use crate::core::{Key, key};

/// How long a thread that waits for keys waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Pasted text is marked as such, and not any more.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const GIVE_BACK: &[u8] = b"\x1b[?2004l";

/// What a person does to a terminal.
#[derive(Debug)]
pub(crate) enum Input {
    Key(Key),
    Paste(String),
    Resized,
}

/// The terminal; given back when this goes away.
pub(crate) struct Terminal {
    wanted: Arc<AtomicBool>,
}

impl Terminal {
    /// Takes the terminal; `tell` says whether anyone listens.
    pub(crate) fn take(mut tell: impl FnMut(Input) -> bool + Send + 'static) -> io::Result<Terminal> {
        enable_raw_mode()?;
        let wanted = Arc::new(AtomicBool::new(true));
        // From here on it is given back, whatever comes.
        let terminal = Terminal { wanted: Arc::clone(&wanted) };
        // A panic may end the process without anything's going away.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        // Whoever else writes a line begins the next at the left.
        let stdin = io::stdin();
        let mut modes = tcgetattr(&stdin)?;
        modes.output_modes |= OutputModes::OPOST;
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        write(MARK_PASTES)?;
        std::thread::spawn(move || {
            while wanted.load(Ordering::Relaxed) {
                match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(_) => return,
                }
                let input = match event::read() {
                    Ok(Event::Key(event)) => key(&event).map(Input::Key),
                    Ok(Event::Paste(text)) => Some(Input::Paste(text)),
                    Ok(Event::Resize(..)) => Some(Input::Resized),
                    Ok(_) => None,
                    Err(_) => return,
                };
                if input.is_some_and(|input| !tell(input)) {
                    return;
                }
            }
        });
        Ok(terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        give_back();
    }
}

fn give_back() {
    // It may be gone.
    let _ = write(GIVE_BACK);
    let _ = disable_raw_mode();
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

/// Returns columns and rows; one that does not know its size has some.
pub(crate) fn size() -> (usize, usize) {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())
        .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    (if width == 0 { 80 } else { width }, if height == 0 { 24 } else { height })
}

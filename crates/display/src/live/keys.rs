//! The terminal while a session is attached: keys come one by one, output stays as it is. However the process ends, the
//! terminal is given back as it was.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};

/// How long a thread that waits for keys waits before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// What a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// Wants to leave.
    Leave,
    /// Wants the run to end.
    Cancel,
    /// A character.
    Char(char),
    /// The end of a line.
    Enter,
    /// Takes a character back.
    Back,
}

/// A terminal whose keys are ours; given back when this goes away.
pub struct Terminal {
    wanted: Arc<AtomicBool>,
}

impl Terminal {
    /// Takes the terminal's keys, if a person sits at one: their keys come from stdin, their questions go to stderr.
    pub fn take(mut tell: impl FnMut(Pressed) -> bool + Send + 'static) -> Option<Terminal> {
        if !io::stdin().is_terminal()
            || !io::stderr().is_terminal()
            || !is_foreground()
            || enable_raw_mode().is_err()
        {
            return None;
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = disable_raw_mode();
            before(panic);
        }));
        // Raw output would need carriage returns in what is to be exact.
        let stdin = io::stdin();
        if let Ok(mut modes) = tcgetattr(&stdin) {
            modes.output_modes |= OutputModes::OPOST;
            let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
        }
        let wanted = Arc::new(AtomicBool::new(true));
        let terminal = Terminal { wanted: wanted.clone() };
        std::thread::spawn(move || {
            while wanted.load(Ordering::Relaxed) {
                match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(_) => return,
                }
                let Ok(Event::Key(key)) = event::read() else { continue };
                if pressed(&key).is_some_and(|pressed| !tell(pressed)) {
                    return;
                }
            }
        });
        Some(terminal)
    }
}

/// Tells whether the terminal is ours to take: whoever a shell runs in the background would be stopped for it.
pub fn is_foreground() -> bool {
    // A terminal that controls nobody belongs to whoever has it.
    rustix::termios::tcgetpgrp(io::stdin()).map_or(true, |group| group == rustix::process::getpgrp())
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        let _ = disable_raw_mode();
    }
}

fn pressed(key: &KeyEvent) -> Option<Pressed> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => Some(Pressed::Leave),
        KeyCode::Char(c) if !control => Some(Pressed::Char(c)),
        KeyCode::Esc => Some(Pressed::Cancel),
        KeyCode::Enter => Some(Pressed::Enter),
        KeyCode::Backspace => Some(Pressed::Back),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_people_mean() {
        let key = |code, modifiers| pressed(&KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Pressed::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), Some(Pressed::Char('c')));
        assert_eq!(key(KeyCode::Char('N'), KeyModifiers::SHIFT), Some(Pressed::Char('N')));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Pressed::Cancel));
        assert_eq!(key(KeyCode::Up, KeyModifiers::NONE), None);
    }
}

//! The terminal while one converses: keys by what they are for, pasted text as one thing, and its size.

use std::io;

use rekindle_terminal::event::Event;
use rekindle_terminal::{Paste, RawTerminal};

use crate::core::{Key, key};

/// What a person does to a terminal.
#[derive(Debug)]
pub(crate) enum Input {
    Key(Key),
    Paste(String),
    Resized,
}

/// Takes the terminal; `tell` says whether anyone listens.
pub(crate) fn take(mut tell: impl FnMut(Input) -> bool + Send + 'static) -> io::Result<RawTerminal> {
    RawTerminal::take(Paste::Whole, move |event| {
        let input = match event {
            Event::Key(event) => key(&event).map(Input::Key),
            Event::Paste(text) => Some(Input::Paste(text)),
            Event::Resize(..) => Some(Input::Resized),
            _ => None,
        };
        input.is_none_or(&mut tell)
    })
}

/// Returns columns and rows; one that does not know its size has some.
pub(crate) fn size() -> (usize, usize) {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())
        .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    (if width == 0 { 80 } else { width }, if height == 0 { 24 } else { height })
}

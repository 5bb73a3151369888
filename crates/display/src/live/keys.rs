//! Keys while a session is watched, by what they are for.

use std::io::{self, IsTerminal};

use rekindle_terminal::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rekindle_terminal::{Paste, RawTerminal, is_foreground};

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

/// Takes the terminal's keys, if a person sits at one: their keys come from stdin, their questions go to stderr.
pub fn take_keys(mut tell: impl FnMut(Pressed) -> bool + Send + 'static) -> Option<RawTerminal> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() || !is_foreground() {
        return None;
    }
    let told = move |event| match event {
        Event::Key(key) => pressed(&key).is_none_or(&mut tell),
        _ => true,
    };
    RawTerminal::take(Paste::Typed, told).ok()
}

fn pressed(key: &KeyEvent) -> Option<Pressed> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let has = |modifier| key.modifiers.contains(modifier);
    let is_held = has(KeyModifiers::CONTROL) || has(KeyModifiers::ALT);
    match key.code {
        KeyCode::Char('c' | 'd') if has(KeyModifiers::CONTROL) => Some(Pressed::Leave),
        // Only a bare key answers: what Alt or Control is held with is meant for something else.
        KeyCode::Char(c) if !is_held => Some(Pressed::Char(c)),
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
    fn keys_mean_what_people_mean_and_only_bare_ones_are_characters() {
        let none = KeyModifiers::NONE;
        let (alt, control) = (KeyModifiers::ALT, KeyModifiers::CONTROL);
        for (code, modifiers, expected) in [
            (KeyCode::Char('c'), control, Some(Pressed::Leave)),
            (KeyCode::Char('c'), none, Some(Pressed::Char('c'))),
            (KeyCode::Char('N'), KeyModifiers::SHIFT, Some(Pressed::Char('N'))),
            (KeyCode::Esc, none, Some(Pressed::Cancel)),
            (KeyCode::Up, none, None),
            (KeyCode::Char('1'), none, Some(Pressed::Char('1'))),
            // None of these answers a permission.
            (KeyCode::Char('1'), alt, None),
            (KeyCode::Char('y'), alt, None),
            (KeyCode::Char('1'), control, None),
            (KeyCode::Char('1'), alt | control, None),
            (KeyCode::Char('1'), alt | KeyModifiers::SHIFT, None),
        ] {
            assert_eq!(pressed(&KeyEvent::new(code, modifiers)), expected, "{code:?} {modifiers:?}");
        }
        let release = KeyEvent::new_with_kind(KeyCode::Char('1'), none, KeyEventKind::Release);
        assert_eq!(pressed(&release), None);
    }
}

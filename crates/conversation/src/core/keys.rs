//! The keys of a person, by what they are for.

use rekindle_terminal::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    NewLine,
    Complete,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    CutToEnd,
    CutToStart,
    CutWord,
    CutWordBehind,
    PasteCut,
    Interrupt,
    EndOfInput,
    Escape,
}

/// Returns what a key is for, if it is for anything.
pub(crate) fn key(event: &KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let has = |modifier| event.modifiers.contains(modifier);
    let (control, alt) = (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT));
    Some(match event.code {
        KeyCode::Enter if alt || has(KeyModifiers::SHIFT) => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Complete,
        KeyCode::Backspace if control || alt => Key::CutWord,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if control || alt => Key::WordLeft,
        KeyCode::Right if control || alt => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Esc => Key::Escape,
        KeyCode::Char(c) if control => match c {
            'a' => Key::Home,
            'b' => Key::Left,
            'c' => Key::Interrupt,
            'd' => Key::EndOfInput,
            'e' => Key::End,
            'f' => Key::Right,
            'h' => Key::Backspace,
            'j' => Key::NewLine,
            'k' => Key::CutToEnd,
            'n' => Key::Down,
            'p' => Key::Up,
            'u' => Key::CutToStart,
            'w' => Key::CutWord,
            'y' => Key::PasteCut,
            _ => return None,
        },
        KeyCode::Char(c) if alt => match c {
            'b' => Key::WordLeft,
            'd' => Key::CutWordBehind,
            'f' => Key::WordRight,
            _ => return None,
        },
        KeyCode::Char(c) => Key::Char(c),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_shells_taught_people() {
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Key::Interrupt)),
            (KeyCode::Char('c'), none, Some(Key::Char('c'))),
            (KeyCode::Char('N'), KeyModifiers::SHIFT, Some(Key::Char('N'))),
            (KeyCode::Enter, none, Some(Key::Enter)),
            (KeyCode::Enter, KeyModifiers::ALT, Some(Key::NewLine)),
            (KeyCode::Char('j'), KeyModifiers::CONTROL, Some(Key::NewLine)),
            (KeyCode::Left, KeyModifiers::CONTROL, Some(Key::WordLeft)),
            (KeyCode::Char('f'), KeyModifiers::ALT, Some(Key::WordRight)),
            // With Alt a number is no answer, and no text either.
            (KeyCode::Char('1'), KeyModifiers::ALT, None),
            (KeyCode::F(1), none, None),
        ] {
            assert_eq!(key(&KeyEvent::new(code, modifiers)), expected, "{code:?} {modifiers:?}");
        }
        let release = KeyEvent::new_with_kind(KeyCode::Enter, none, KeyEventKind::Release);
        assert_eq!(key(&release), None);
    }
}

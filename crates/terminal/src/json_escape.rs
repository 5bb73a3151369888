//! JSON for a person at a terminal. It may hold whatever an agent said: characters that would command the terminal, or turn the
//! direction of writing, are written as escapes, which say the same to every program that reads JSON.

use std::io::{self, Write};

use crate::sanitise::turns_direction;

/// Writes on, with such characters escaped if it goes to a terminal.
pub struct Escaped<W> {
    out: W,
    terminal: bool,
    /// The beginning of a character whose rest is still to come.
    held: Vec<u8>,
}

impl<W: Write> Escaped<W> {
    /// Puts itself before a writer.
    pub fn new(out: W, terminal: bool) -> Escaped<W> {
        Escaped { out, terminal, held: Vec::new() }
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.out.write(bytes);
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.held = all.split_off(error.valid_up_to());
        }
        self.out.write_all(escape(&String::from_utf8_lossy(&all)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // What stands below a space is escaped in JSON anyway, or is ours.
        if matches!(c, '\u{7f}'..='\u{9f}') || turns_direction(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, terminal: bool, piece: usize) -> String {
        let mut out = Vec::new();
        let mut escaped = Escaped::new(&mut out, terminal);
        for piece in text.as_bytes().chunks(piece) {
            escaped.write_all(piece).expect("written");
        }
        escaped.flush().expect("flushed");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_commands_a_terminal_is_escaped_there_and_only_there() {
        let said = "ünï 漢字 \u{9b}31m\u{7f} \u{202e}gpj.exe\u{2069}";
        let json = serde_json::to_string(said).expect("JSON");
        for piece in 1..8 {
            assert_eq!(written(&json, false, piece), json);
            let shown = written(&json, true, piece);
            assert_eq!(shown, "\"ünï 漢字 \\u009b31m\\u007f \\u202egpj.exe\\u2069\"");
            assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), said, "it says the same");
        }
    }
}

//! A terminal that shows nothing of what is typed. Keys come one by one, Ctrl-C among them, so that the terminal is as it was before
//! whatever way this ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// The terminal of this process, whatever its standard streams are.
pub(super) struct Terminal(File);

impl Terminal {
    /// Opens it, if there is one.
    pub(super) fn open() -> Option<Terminal> {
        OpenOptions::new().read(true).write(true).open("/dev/tty").ok().map(Terminal)
    }

    /// Asks for a secret; none if whoever is asked gives up.
    pub(super) fn read_secret(&mut self, question: &str, most: usize) -> io::Result<Option<String>> {
        // Before the question, so that nothing of an answer is seen however fast it comes.
        let hidden = Hidden::begin(&self.0)?;
        (&self.0).write_all(question.as_bytes())?;
        let (mut line, mut byte) = (SecretLine::default(), [0; 1]);
        let ended = loop {
            match (&self.0).read(&mut byte) {
                Ok(0) => break End::GivenUp,
                Ok(_) => {
                    if let Some(end) = line.press(byte[0], most) {
                        break end;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        drop(hidden);
        self.0.write_all(b"\n")?;
        match ended {
            End::GivenUp => Ok(None),
            End::Entered => {
                let text = String::from_utf8(line.0);
                text.map(Some)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "that is not valid UTF-8"))
            }
        }
    }
}

/// A terminal that shows nothing, until this is dropped.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Hidden<'_> {
    fn begin(terminal: &File) -> io::Result<Hidden<'_>> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN);
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Hidden { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // There is nobody to tell, and no other way.
        let _ = tcsetattr(self.terminal, OptionalActions::Drain, &self.before);
    }
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// With Enter.
    Entered,
    /// With Ctrl-C, or Ctrl-D before anything else.
    GivenUp,
}

/// A line that is typed.
#[derive(Default)]
struct SecretLine(Vec<u8>);

impl SecretLine {
    /// Takes in a key; tells whether that ends the line.
    fn press(&mut self, key: u8, most: usize) -> Option<End> {
        match key {
            b'\r' | b'\n' => return Some(End::Entered),
            0x03 => return Some(End::GivenUp),
            0x04 => return Some(if self.0.is_empty() { End::GivenUp } else { End::Entered }),
            // Backspace takes a whole character, Ctrl-U everything.
            0x7f | 0x08 => while self.0.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            0x15 => self.0.clear(),
            0x00..=0x1f => {}
            _ if self.0.len() < most => self.0.push(key),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_a_line() {
        for (keys, expected) in [
            (&b"secret\r"[..], Some((End::Entered, "secret"))),
            (b"secret\n", Some((End::Entered, "secret"))),
            (b"sex\x7fcret\r", Some((End::Entered, "secret"))),
            ("né\x7f\x7fyes\r".as_bytes(), Some((End::Entered, "yes"))),
            (b"\x7f\x7fyes\x04", Some((End::Entered, "yes"))),
            (b"wrong\x15right\r", Some((End::Entered, "right"))),
            (b"a\x1bb\r", Some((End::Entered, "ab"))),
            (b"12345678901\r", Some((End::Entered, "1234567890"))),
            (b"\x04", Some((End::GivenUp, ""))),
            (b"abc\x03", Some((End::GivenUp, "abc"))),
            (b"abc", None),
        ] {
            let mut line = SecretLine::default();
            let ended = keys.iter().find_map(|key| line.press(*key, 10));
            let text = String::from_utf8(line.0).expect("text");
            assert_eq!(ended.map(|end| (end, text.as_str())), expected, "{keys:?}");
        }
    }
}

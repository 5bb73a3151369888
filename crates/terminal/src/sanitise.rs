//! Taking out of an agent's text whatever would do something to a terminal: escape sequences, control
//! characters, and marks that turn the direction of writing.

/// Returns the text with line ends and tabs, and without everything else that is not to be seen.
pub fn block(text: &str) -> String {
    let mut filter = Filter::default();
    let mut out = filter.push(text);
    out.push_str(filter.finish());
    out
}

/// Takes text in pieces; a sequence may be cut anywhere between them.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    within: Within,
}

/// What the next character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    /// Nothing special.
    #[default]
    Text,
    /// Behind a carriage return, which may be half a line end.
    Return,
    /// Behind ESC.
    Escape,
    /// Behind ESC and an intermediate byte, which is followed by a final one.
    Intermediate,
    /// `ESC [ parameters intermediates final`.
    Control,
    /// A string for the terminal: titles, links, clipboards, downloads.
    String,
    /// Behind ESC in such a string.
    StringEscape,
}

impl Filter {
    /// Returns what of the next piece is to be seen.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// Ends the text; returns what was held back.
    pub fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.within) {
            Within::Return => "\n",
            _ => "",
        }
    }

    fn take(&mut self, c: char, out: &mut String) {
        self.within = match self.within {
            Within::Text => return self.text(c, out),
            Within::Return => {
                if c != '\n' {
                    out.push('\n');
                }
                return self.text(c, out);
            }
            Within::Escape => match c {
                '[' => Within::Control,
                ']' | 'P' | 'X' | '^' | '_' => Within::String,
                ' '..='/' => Within::Intermediate,
                _ => Within::Text,
            },
            Within::Intermediate => Within::Text,
            // A control character in between belongs to no sequence; ending there keeps what follows visible.
            Within::Control if matches!(c, ' '..='?') => Within::Control,
            Within::Control => Within::Text,
            // It ends with BEL, ST or the line: a sequence that never ends must not swallow the text.
            Within::String => match c {
                '\n' => return self.text(c, out),
                '\x07' | '\u{9c}' => Within::Text,
                '\x1b' => Within::StringEscape,
                _ => Within::String,
            },
            Within::StringEscape if c == '\\' => Within::Text,
            Within::StringEscape => return self.text(c, out),
        };
    }

    fn text(&mut self, c: char, out: &mut String) {
        self.within = match c {
            '\x1b' => Within::Escape,
            '\u{9b}' => Within::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => Within::String,
            '\r' => Within::Return,
            _ => Within::Text,
        };
        let plain = self.within == Within::Text && !c.is_control() && !turns_direction(c);
        if plain || matches!(c, '\n' | '\t') {
            out.push(c);
        }
    }
}

/// Returns the text as one line: white space folded.
pub fn line(text: &str) -> String {
    block(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tells whether a character turns the direction of writing, or is not to be seen.
pub fn turns_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_vanish_and_text_stays() {
        let cases = [
            ("plain ünï 漢字\n\tx", "plain ünï 漢字\n\tx"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bPq#0;2\x1b\\x", "x"),
            ("\u{9b}31mc1\u{9d}52;c;AAAA\u{9c}!", "c1!"),
            ("a\x1b(Bb\x1bcc", "abc"),
            ("bell\x07 back\x08space nul\0 del\x7f", "bell backspace nul del"),
            ("\x1b]0;never ended\nnext line", "\nnext line"),
            ("half \x1b[", "half "),
            ("half \x1b", "half "),
            ("a\r\nb\rc", "a\nb\nc"),
            ("evil \u{202e}txt.exe\u{2069}", "evil txt.exe"),
        ];
        for (text, expected) in cases {
            assert_eq!(block(text), expected, "{text:?}");
            for (cut, _) in text.char_indices() {
                let mut filter = Filter::default();
                let pieces = [filter.push(&text[..cut]), filter.push(&text[cut..]), filter.finish().into()];
                assert_eq!(pieces.concat(), expected, "{text:?} cut at {cut}");
            }
        }
        assert_eq!(line("  a\n\n b\tc\x1b[2J "), "a b c");
    }
}

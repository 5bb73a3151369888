//! Taking out of an agent's text whatever would do something to a terminal: escape sequences, control
//! characters, and marks that turn the direction of writing.

/// Returns the text with line ends and tabs, and without everything else that is not to be seen.
pub(crate) fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next() {
                Some('[') => skip_csi(&mut chars),
                // Strings for the terminal: titles, links, clipboards, downloads.
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut chars),
                // An intermediate byte is followed by a final one.
                Some(' '..='/') => drop(chars.next()),
                Some(_) | None => {}
            },
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() != Some(&'\n') => out.push('\n'),
            c if c.is_control() || turns_direction(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Returns the text as one line: white space folded.
pub(crate) fn line(text: &str) -> String {
    let text = block(text);
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Passes over the rest of `ESC [ parameters intermediates final`.
fn skip_csi(chars: &mut impl Iterator<Item = char>) {
    // A control character in between belongs to no sequence; ending there keeps what follows visible.
    for c in chars {
        if !matches!(c, ' '..='?') {
            return;
        }
    }
}

/// Passes over a string for the terminal, up to its end (BEL, ST) or the end of the line: a sequence that
/// never ends must not swallow the text.
fn skip_string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.peek().copied() {
        match c {
            '\n' => return,
            '\x07' | '\u{9c}' => {
                chars.next();
                return;
            }
            '\x1b' => {
                chars.next();
                if chars.peek() == Some(&'\\') {
                    chars.next();
                }
                return;
            }
            _ => drop(chars.next()),
        }
    }
}

fn turns_direction(c: char) -> bool {
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
        }
        assert_eq!(line("  a\n\n b\tc\x1b[2J "), "a b c");
    }
}

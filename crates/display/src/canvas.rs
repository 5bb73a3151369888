//! A picture on the whole terminal that is drawn over in place. It never has more rows or columns than the terminal, and
//! what was there before comes back, however the process ends.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

/// Another screen without a cursor, and back.
const TAKE: &str = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[J";
const GIVE_BACK: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal while we draw on it; given back when this goes away.
pub struct Canvas {
    /// What was drawn last.
    shown: String,
    coloured: bool,
}

impl Canvas {
    /// Takes the terminal behind stdout.
    pub fn take() -> io::Result<Canvas> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        let coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        write(TAKE)?;
        Ok(Canvas { shown: String::new(), coloured })
    }

    /// Draws a text; nothing happens if it stands there already.
    pub fn draw(&mut self, text: &str) -> io::Result<()> {
        let (columns, rows) = size();
        let mut drawn = picture(text, columns, rows);
        if !self.coloured {
            drawn = anstream::adapter::strip_str(&drawn).to_string();
        }
        if drawn != self.shown {
            write(&over(&drawn))?;
            self.shown = drawn;
        }
        Ok(())
    }

    /// Rings the bell of the terminal.
    pub fn ring(&self) -> io::Result<()> {
        write("\x07")
    }

    /// Forgets what was drawn: the terminal may show something else by now.
    pub fn resized(&mut self) -> io::Result<()> {
        self.shown.clear();
        write("\x1b[H\x1b[J")
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = write(GIVE_BACK);
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns how many columns and rows there are; a terminal that does not know has some.
fn size() -> (usize, usize) {
    terminal_size::terminal_size_of(io::stdout())
        .map_or((80, 24), |(width, height)| (usize::from(width.0).max(1), usize::from(height.0).max(1)))
}

/// Returns what draws a picture over the last one, without a moment in which nothing is there.
fn over(picture: &str) -> String {
    format!("\x1b[H{}\x1b[K\x1b[J", picture.replace('\n', "\x1b[K\r\n"))
}

/// Returns as much of a text as a terminal shows; where lines are left out the last row says so.
fn picture(text: &str, columns: usize, rows: usize) -> String {
    let mut lines: Vec<String> = text.lines().map(|line| fit(line, columns)).collect();
    if lines.len() > rows {
        let left = lines.len() - (rows - 1);
        lines.truncate(rows - 1);
        lines.push(fit(&format!("… {left} more lines"), columns));
    }
    lines.join("\n")
}

/// Cuts a line to some columns; styles take none, and are ended where the line is.
fn fit(line: &str, columns: usize) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut used, mut styled, mut chars) = (0, false, line.chars());
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            styled = true;
            out.push(c);
            // Ours are all `ESC [ … m`.
            for c in chars.by_ref() {
                out.push(c);
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        let width = c.width().unwrap_or(0);
        if used + width > columns {
            if styled {
                out.push_str("\x1b[0m");
            }
            break;
        }
        used += width;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_the_terminal_ends() {
        assert_eq!(fit("abcdef", 3), "abc");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("\x1b[1mabc\x1b[0mdef", 4), "\x1b[1mabc\x1b[0md\x1b[0m");
        assert_eq!(fit("\x1b[31mabc\x1b[0m", 3), "\x1b[31mabc\x1b[0m", "what only styles follow is whole");
        assert_eq!(fit("漢字漢字", 5), "漢字", "half a character is none");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        assert_eq!(picture("1\n2\n3", 80, 3), "1\n2\n3");
        assert_eq!(picture("1\n2\n3\n4", 80, 3), "1\n2\n… 2 more lines");
        assert_eq!(picture("1\n2", 80, 1), "… 2 more lines");
        assert_eq!(picture("", 80, 3), "");
    }

    #[test]
    fn each_line_clears_what_stood_behind_it() {
        assert_eq!(over("a\nb"), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }
}

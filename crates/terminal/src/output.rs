//! What output looks like: styles, widths, wrapped text, times and sizes in words.

use std::fmt::Write;
use std::io::{self, BufWriter, IsTerminal};

use anstyle::{AnsiColor, Style};
use rekindle_domain::time::Timestamp;
use unicode_width::UnicodeWidthChar;

use crate::json_escape::Escaped;
pub use crate::word_wrap::{columns, wrap, wrap_lines};

/// Bad news.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// News to look at: in a colour that can be read on black and on white, as yellow cannot.
pub const WARN: Style = AnsiColor::Magenta.on_default();
/// Good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What is said of a session's course.
pub const COURSE: Style = AnsiColor::Cyan.on_default();
/// Names and headings.
pub const BOLD: Style = Style::new().bold();
/// What may be overlooked.
pub const DIM: Style = Style::new().dimmed();
/// Nothing special.
pub const PLAIN: Style = Style::new();

/// The width of text that does not go to a terminal.
const WIDTH_ELSEWHERE: usize = 100;

/// Below this a terminal is too narrow to be obeyed.
const LEAST_WIDTH: usize = 40;

/// Returns stdout: buffered, and without colours unless it is a terminal that wants them.
pub fn stdout() -> impl io::Write {
    BufWriter::new(Escaped::new(anstream::AutoStream::auto(io::stdout()), is_terminal()))
}

/// Returns stdout for JSON that others wrote: as it is, unless a person looks at it.
pub fn verbatim() -> impl io::Write {
    BufWriter::new(Escaped::new(io::stdout(), is_terminal()))
}

/// Tells whether a person looks at stdout.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns how many columns a line on stdout may have.
pub fn width() -> usize {
    let stdout = io::stdout();
    let terminal = is_terminal().then(|| terminal_size::terminal_size_of(&stdout)).flatten();
    terminal.map_or(WIDTH_ELSEWHERE, |(width, _)| usize::from(width.0)).max(LEAST_WIDTH)
}

/// Returns how many columns stdout has, if it is a terminal.
pub fn stdout_width() -> Option<usize> {
    let stdout = io::stdout();
    let terminal = is_terminal().then(|| terminal_size::terminal_size_of(&stdout)).flatten();
    is_terminal().then(|| terminal.map_or(80, |(width, _)| usize::from(width.0).max(1)))
}

/// Returns how many columns stderr has, if it is a terminal.
pub fn stderr_width() -> Option<usize> {
    let stderr = io::stderr();
    let terminal = stderr.is_terminal().then(|| terminal_size::terminal_size_of(&stderr)).flatten();
    // A terminal that does not know its size has some.
    stderr.is_terminal().then(|| terminal.map_or(80, |(width, _)| usize::from(width.0).max(1)))
}

/// Puts a style around a text.
pub fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes a word so that a shell takes it for one.
pub fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@%+=,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the row that stands above a table: what is in its columns.
pub fn heading(names: &[&str]) -> Vec<(Style, String)> {
    names.iter().map(|name| (DIM, (*name).to_owned())).collect()
}

/// Lays cells out in columns, two blanks behind each; returns the lines and how many columns they take.
pub fn table(rows: &[Vec<(Style, String)>]) -> (Vec<String>, usize) {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |index: usize| rows.iter().filter_map(move |row| row.get(index));
    let widths: Vec<usize> =
        (0..most).map(|index| cells(index).map(|(_, text)| columns(text) + 2).max().unwrap_or(0)).collect();
    let line = |row: &Vec<(Style, String)>| {
        let padded = row.iter().zip(&widths).map(|((style, text), width)| {
            format!("{}{}", styled(*style, text), " ".repeat(width - columns(text)))
        });
        padded.collect()
    };
    (rows.iter().map(line).collect(), widths.iter().sum())
}

/// Cuts a text to some columns.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Cuts a text to some columns from its beginning: of a path the end says more.
pub fn cut_beginning(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &(usize, char)| {
        used += c.1.width().unwrap_or(0);
        used <= width
    };
    let begin = text.char_indices().rev().take_while(fits).last().map_or(text.len(), |(begin, _)| begin);
    format!("…{}", &text[begin..])
}

/// Breaks what is written to stderr between words where that is a terminal. Elsewhere lines stay whole, for programs.
pub fn for_stderr(text: &str) -> String {
    stderr_width().map_or_else(|| text.to_owned(), |width| wrap_lines(text, width))
}

/// Returns `1 session` or `3 sessions`.
pub fn plural(count: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Writes a number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a size for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return plural(bytes, "byte");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Writes how long ago something was; a clock that was set back makes it just now.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let seconds = now.millis_since(then) / 1000;
    let unit = UNITS.iter().find(|(length, _)| seconds >= *length);
    unit.map_or("just now".into(), |(length, word)| format!("{} ago", plural(seconds / length, word)))
}

/// Writes a time relatively and absolutely.
pub fn when(then: Timestamp, now: Timestamp) -> String {
    let mut text = ago(then, now);
    let absolute = then.to_string();
    // Seconds are enough for people.
    let seconds = absolute.split('.').next().unwrap_or(&absolute);
    let _ = write!(text, " ({seconds}Z)");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_times_read_well() {
        assert_eq!(plural(1, "session"), "1 session");
        assert_eq!(plural(1_234_567, "record"), "1,234,567 records");
        assert_eq!((grouped(0), grouped(999), grouped(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(
            (size(1), size(1023), size(1024)),
            ("1 byte".into(), "1,023 bytes".into(), "1.0 KiB".into())
        );
        assert_eq!((size(1_048_575), size(u64::MAX)), ("1.0 MiB".into(), "16384.0 PiB".into()));
        let at = Timestamp::from_millis;
        assert_eq!(ago(at(0), at(999)), "just now");
        assert_eq!(ago(at(9_000), at(0)), "just now");
        assert_eq!(ago(at(0), at(60_000)), "1 minute ago");
        assert_eq!(ago(at(0), at(50 * 3_600_000)), "2 days ago");
        assert_eq!(when(at(0), at(5_000)), "5 seconds ago (1970-01-01T00:00:00Z)");
    }

    #[test]
    fn warnings_can_be_read_on_a_white_background() {
        let light = [AnsiColor::Yellow, AnsiColor::BrightYellow, AnsiColor::White, AnsiColor::BrightWhite];
        for style in [BAD, WARN, GOOD, COURSE, BOLD, DIM, PLAIN] {
            assert!(light.iter().all(|colour| style.get_fg_color() != Some((*colour).into())), "{style:?}");
        }
    }

    #[test]
    fn cells_stand_below_each_other() {
        let row = |cells: [&str; 2]| cells.map(|cell| (PLAIN, cell.to_owned())).to_vec();
        let (lines, width) = table(&[row(["a", "字"]), row(["long", "b"])]);
        assert_eq!((lines, width), (vec!["a     字  ".into(), "long  b   ".into()], 10));
        assert_eq!(table(&[]), (Vec::new(), 0));
    }

    #[test]
    fn text_is_cut_by_columns() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!((cut_beginning("abc", 3), cut_beginning("abcd", 3)), ("abc".into(), "…cd".into()));
        assert_eq!((cut_beginning("漢字漢字", 6), cut_beginning("漢字", 1)), ("…漢字".into(), "…".into()));
    }
}

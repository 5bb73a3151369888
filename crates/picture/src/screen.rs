//! A terminal's screen and all that has left it above: rows of styled letters, and what stood in them when. Knows what our commands
//! say to a terminal: letters, line ends, carriage returns, erased lines, bold, faint and coloured letters. Pure.

use std::time::Duration;

/// What is written over sooner than this nobody has read.
const SEEN: Duration = Duration::from_millis(150);

/// How letters look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) bold: bool,
    pub(crate) faint: bool,
    /// The colour's number, 1 to 6 for red to cyan.
    pub(crate) color: Option<u8>,
}

/// Letters of one style beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// The column of the first one, from 0.
    pub(crate) column: usize,
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// What stood in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) from: Duration,
    /// When something else was written there; never for what still stands there.
    pub(crate) until: Option<Duration>,
    pub(crate) spans: Vec<Span>,
}

type Cell = (char, Style);

/// The screen.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// For each row what stood there, from when on.
    rows: Vec<Vec<(Duration, Vec<Cell>)>>,
    row: usize,
    column: usize,
    style: Style,
    /// What may be the beginning of a letter or a command.
    pending: Vec<u8>,
}

impl Screen {
    /// Shows what was written at a time.
    pub(crate) fn write(&mut self, at: Duration, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.pending);
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => {
                let (whole, cut) = bytes.split_at(error.valid_up_to());
                self.pending = cut.to_vec();
                std::str::from_utf8(whole).unwrap_or_default()
            }
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if c == '\x1b' {
                let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()) else {
                    // Its end is still to come, in front of whatever else is.
                    self.pending.splice(0..0, rest.bytes());
                    return;
                };
                self.command(at, &rest[1..=end]);
                rest = &rest[end + 1..];
                continue;
            }
            match c {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                c => self.put(at, c),
            }
            rest = &rest[c.len_utf8()..];
        }
    }

    /// Returns the row that is written to, as it is from now on.
    fn current(&mut self, at: Duration) -> &mut Vec<Cell> {
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let versions = &mut self.rows[self.row];
        if versions.last().is_none_or(|(from, _)| *from != at) {
            let cells = versions.last().map(|(_, cells)| cells.clone()).unwrap_or_default();
            versions.push((at, cells));
        }
        let last = versions.len() - 1;
        &mut versions[last].1
    }

    fn put(&mut self, at: Duration, c: char) {
        let (column, style) = (self.column, self.style);
        let cells = self.current(at);
        if cells.len() <= column {
            cells.resize(column + 1, (' ', Style::default()));
        }
        cells[column] = (c, style);
        self.column += 1;
    }

    fn command(&mut self, at: Duration, command: &str) {
        match command {
            "[2K" => self.current(at).clear(),
            "[K" => {
                let column = self.column;
                self.current(at).truncate(column);
            }
            _ => {
                let numbers = command.strip_prefix('[').and_then(|command| command.strip_suffix('m'));
                numbers
                    .into_iter()
                    .flat_map(|numbers| numbers.split(';'))
                    .for_each(|number| self.restyle(number));
            }
        }
    }

    fn restyle(&mut self, number: &str) {
        match number.parse::<u8>().unwrap_or(0) {
            0 => self.style = Style::default(),
            1 => self.style.bold = true,
            2 => self.style.faint = true,
            22 => (self.style.bold, self.style.faint) = (false, false),
            color @ 31..=36 => self.style.color = Some(color - 30),
            39 => self.style.color = None,
            _ => {}
        }
    }

    /// Returns for each row what stood in it long enough to be read, in its order.
    pub(crate) fn rows(&self) -> Vec<Vec<Version>> {
        self.rows.iter().map(|versions| readable(versions)).collect()
    }
}

fn readable(versions: &[(Duration, Vec<Cell>)]) -> Vec<Version> {
    let mut kept: Vec<Version> = Vec::new();
    // Since when nothing stood there for long enough: what stays next is shown for all of that time.
    let mut blurred = None;
    for (at, (from, cells)) in versions.iter().enumerate() {
        let from = blurred.unwrap_or(*from);
        let until = versions.get(at + 1).map(|(until, _)| *until);
        if until.is_some_and(|until| until - from < SEEN) {
            blurred = Some(from);
            continue;
        }
        blurred = None;
        kept.push(Version { from, until, spans: spans(cells) });
    }
    kept.retain(|version| !version.spans.is_empty());
    kept
}

fn spans(cells: &[Cell]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (column, (c, style)) in cells.iter().enumerate() {
        match spans.last_mut() {
            Some(last) if last.style == *style => last.text.push(*c),
            _ => spans.push(Span { column, text: c.to_string(), style: *style }),
        }
    }
    for span in &mut spans {
        let text = span.text.trim_start();
        span.column += span.text.chars().count() - text.chars().count();
        span.text = text.trim_end().to_owned();
    }
    spans.retain(|span| !span.text.is_empty());
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn screen(chunks: &[(u64, &[u8])]) -> Vec<Vec<Version>> {
        let mut screen = Screen::default();
        chunks.iter().for_each(|(at, bytes)| screen.write(ms(*at), bytes));
        screen.rows()
    }

    fn texts(versions: &[Version]) -> Vec<(u128, Option<u128>, String)> {
        let text = |version: &Version| {
            let texts: Vec<&str> = version.spans.iter().map(|span| span.text.as_str()).collect();
            (version.from.as_millis(), version.until.map(|until| until.as_millis()), texts.join("|"))
        };
        versions.iter().map(text).collect()
    }

    #[test]
    fn letters_have_their_place_and_style() {
        let rows = screen(&[(0, b"\x1b[1mtitle\x1b[0m\r\n  \x1b[2mfaint \x1b[0m\x1b[1;31mred\x1b[0m plain")]);
        let bold = Style { bold: true, ..Style::default() };
        assert_eq!(rows[0][0].spans, [Span { column: 0, text: "title".to_owned(), style: bold }]);
        let places: Vec<(usize, &str)> =
            rows[1][0].spans.iter().map(|span| (span.column, span.text.as_str())).collect();
        assert_eq!(places, [(2, "faint"), (8, "red"), (12, "plain")]);
        assert_eq!(rows[1][0].spans[1].style, Style { bold: true, faint: false, color: Some(1) });
    }

    #[test]
    fn what_was_written_over_is_kept_if_it_could_be_read() {
        let rows = screen(&[
            (0, b"one"),
            (50, b"\r\x1b[2Ktwo"),
            (300, b"\r\x1b[2Kthree"),
            (900, b"\r\x1b[2Kend\r\n"),
        ]);
        let expected = [
            (0, Some(300), "two".to_owned()),
            (300, Some(900), "three".to_owned()),
            (900, None, "end".to_owned()),
        ];
        assert_eq!(texts(&rows[0]), expected);
    }

    #[test]
    fn chunks_may_end_within_letters_and_commands() {
        let whole = "a·\x1b[32m✓\x1b[0m\r\nb".as_bytes();
        let expected = screen(&[(0, whole)]);
        for cut in 0..whole.len() {
            assert_eq!(screen(&[(0, &whole[..cut]), (0, &whole[cut..])]), expected, "cut at {cut}");
        }
    }
}

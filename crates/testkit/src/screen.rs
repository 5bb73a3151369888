//! A terminal's screen for tests, and all that has left it above: what stands there after what was written to it. It wraps lines at its
//! edge, has wide characters, moves up no further than its upper edge, and wraps anew what stands on it when it gets another width.

use unicode_width::UnicodeWidthChar;

/// Marks the second column of a wide character.
const SECOND: char = '\0';

/// One row, and whether the next one goes on with the same line.
#[derive(Debug, Clone, Default)]
struct Row {
    cells: Vec<char>,
    wrapped: bool,
}

/// The screen.
#[derive(Debug)]
pub struct Screen {
    columns: usize,
    height: usize,
    /// From the first that was ever written on.
    rows: Vec<Row>,
    row: usize,
    column: usize,
    /// The row is full: the next character begins another.
    full: bool,
    /// What may be the beginning of a character or a command.
    rest: Vec<u8>,
    /// Pasted text is marked.
    pastes: bool,
}

impl Screen {
    /// Returns an empty one.
    pub fn new(columns: usize, height: usize) -> Screen {
        let rows = vec![Row::default()];
        Screen { columns, height, rows, row: 0, column: 0, full: false, rest: Vec::new(), pastes: false }
    }

    /// Returns row and column of the cursor; rows are counted from the first that was ever written.
    pub fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    /// Tells whether pasted text is marked.
    pub fn marks_pastes(&self) -> bool {
        self.pastes
    }

    /// Returns all lines; those that were wrapped are one.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            text.extend(row.cells.iter().filter(|cell| **cell != SECOND));
            if !row.wrapped {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
        }
        text.trim_end_matches('\n').to_owned() + "\n"
    }

    /// Returns all rows, as they stand below each other.
    pub fn rows(&self) -> Vec<String> {
        let text = |row: &Row| row.cells.iter().filter(|cell| **cell != SECOND).collect::<String>();
        let mut rows: Vec<String> =
            self.rows.iter().map(|row| text(row).trim_end_matches(' ').to_owned()).collect();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        rows
    }

    /// Writes to it.
    pub fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.rest);
        let valid = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let (text, rest) = bytes.split_at(valid);
        let mut text = std::str::from_utf8(text).unwrap_or_default();
        while let Some(c) = text.chars().next() {
            let len = if c == '\x1b' {
                // Its end may be still to come.
                let Some(end) = text.find(|c: char| c.is_ascii_alphabetic()) else { break };
                self.command(&text[1..=end]);
                end + 1
            } else {
                self.character(c);
                c.len_utf8()
            };
            text = &text[len..];
        }
        self.rest = [text.as_bytes(), rest].concat();
    }

    fn top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Row::default());
        }
    }

    fn character(&mut self, c: char) {
        match c {
            '\r' => (self.column, self.full) = (0, false),
            '\n' => {
                self.full = false;
                self.down();
            }
            '\x07' => {}
            c => self.put(c),
        }
    }

    fn put(&mut self, c: char) {
        let columns = c.width().unwrap_or(0);
        if columns == 0 {
            return;
        }
        if self.full || self.column + columns > self.columns {
            self.rows[self.row].wrapped = true;
            self.down();
            (self.column, self.full) = (0, false);
        }
        let cells = &mut self.rows[self.row].cells;
        cells.resize(cells.len().max(self.column + columns), ' ');
        cells[self.column] = c;
        if columns == 2 {
            cells[self.column + 1] = SECOND;
        }
        self.column += columns;
        self.full = self.column >= self.columns;
        self.column = self.column.min(self.columns - 1);
    }

    fn command(&mut self, command: &str) {
        let end = command.chars().last();
        let number = command.trim_start_matches('[').trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let count = number.parse().unwrap_or(1);
        match (end, number) {
            (Some('m'), _) | (Some('h' | 'l'), "?25") => {}
            (Some(end @ ('h' | 'l')), "?2004") => self.pastes = end == 'h',
            (Some('A'), _) => (self.row, self.full) = (self.row.saturating_sub(count).max(self.top()), false),
            (Some('C'), _) => {
                (self.column, self.full) = ((self.column + count).min(self.columns - 1), false);
            }
            (Some('K'), "") => self.clear_behind(),
            (Some('J'), "") => {
                self.clear_behind();
                for row in &mut self.rows[self.row + 1..] {
                    *row = Row::default();
                }
            }
            _ => panic!("a command that nobody knows: {command:?}"),
        }
    }

    /// Erases a row from the cursor on. From its beginning that is another row than the one above went on in, as tmux has it.
    fn clear_behind(&mut self) {
        if let Some(above) = self.row.checked_sub(1).filter(|_| self.column == 0) {
            self.rows[above].wrapped = false;
        }
        let row = &mut self.rows[self.row];
        row.cells.truncate(self.column);
        row.wrapped = false;
    }

    /// Gets another size: lines are wrapped anew, and the cursor stays at its character.
    pub fn resize(&mut self, columns: usize, height: usize) {
        let mut rows = vec![Row::default()];
        let mut place = None;
        // Rows below the cursor that were never written to are no lines.
        let written = |row: &Row| !row.cells.is_empty() || row.wrapped;
        let last = self.rows.iter().rposition(written).unwrap_or(0).max(self.row);
        for (index, row) in self.rows.iter().enumerate().take(last + 1) {
            let here = (index == self.row).then(|| self.column + usize::from(self.full));
            let mut column = 0;
            while column < row.cells.len().max(here.map_or(0, |here| here + 1)) {
                let wide = row.cells.get(column + 1) == Some(&SECOND);
                let needed = 1 + usize::from(wide);
                let filled = rows.last().expect("a row").cells.len();
                let is_cell = column < row.cells.len();
                if filled + needed > columns && (is_cell || here == Some(column)) {
                    rows.last_mut().expect("a row").wrapped = is_cell;
                    rows.push(Row::default());
                }
                if here == Some(column) {
                    place = Some((rows.len() - 1, rows.last().expect("a row").cells.len()));
                }
                if is_cell {
                    let cells = &mut rows.last_mut().expect("a row").cells;
                    cells.extend(&row.cells[column..column + needed]);
                }
                column += needed;
            }
            if !row.wrapped {
                rows.push(Row::default());
            }
        }
        if rows.len() > 1 && rows.last().is_some_and(|row| row.cells.is_empty()) {
            rows.pop();
        }
        (self.columns, self.height, self.full) = (columns, height, false);
        let (row, column) = place.unwrap_or((rows.len() - 1, 0));
        (self.rows, self.row, self.column) = (rows, row, column.min(columns - 1));
        while self.row >= self.rows.len() {
            self.rows.push(Row::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(output: &str, columns: usize) -> Screen {
        let mut screen = Screen::new(columns, 4);
        screen.write(output.as_bytes());
        screen
    }

    #[test]
    fn lines_are_wrapped_written_over_and_cleared() {
        for (output, columns, text) in [
            ("one\r\ntwo\rT", 80, "one\nTwo\n"),
            ("abcde", 3, "abcde\n"),
            ("abc\r\nx", 3, "abc\nx\n"),
            ("漢字", 3, "漢字\n"),
            ("x\r\nabcde\x1b[1A\r\x1b[J!", 3, "x\n!\n"),
            ("a\r\nb\r\nc\r\nd\r\ne\r\n\x1b[9A\rX", 80, "a\nb\nX\nd\ne\n"),
            ("a\x1b[3Cb", 80, "a   b\n"),
            ("abc\r\x1b[1C\x1b[K\x1b[1;31mx\x1b[0m", 80, "ax\n"),
            ("one\x1b[", 80, "one\n"),
        ] {
            assert_eq!(screen(output, columns).text(), text, "{output:?}");
        }
    }

    #[test]
    fn what_is_written_may_be_cut_anywhere() {
        let whole = "漢\x1b[32m✓\x1b[0m\r\nb\x1b[2Cc".as_bytes();
        for cut in 0..whole.len() {
            let mut halves = Screen::new(80, 4);
            halves.write(&whole[..cut]);
            halves.write(&whole[cut..]);
            assert_eq!(halves.text(), "漢✓\nb  c\n", "cut at {cut}");
        }
    }

    #[test]
    fn another_width_wraps_anew_and_keeps_the_cursor_at_its_character() {
        let mut screen = screen("one\r\nabcdef\r\n> xy\r\x1b[2C", 4);
        assert_eq!(screen.cursor(), (3, 2));
        screen.resize(2, 4);
        assert_eq!((screen.text().as_str(), screen.cursor()), ("one\nabcdef\n> xy\n", (6, 0)));
        screen.resize(10, 4);
        assert_eq!((screen.text().as_str(), screen.cursor()), ("one\nabcdef\n> xy\n", (2, 2)));
    }
}

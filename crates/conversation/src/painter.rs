//! What is written to the terminal: the conversation as ordinary lines that scroll away, and below it the panel, which is written
//! over. Nothing is known of a terminal but what every one does: it wraps lines at its edge and moves up as it is told.

use std::io::{self, Write};

use anstyle::Style;
use rekindle_display::hints::in_rows;
use rekindle_display::live::Piece;
use rekindle_terminal::output::{DIM, PLAIN, styled};
use rekindle_terminal::streaming_wrap::{Flow, Step};

use crate::layout::{columns, rows};

/// Rows of a tool's line that are taken back when it changes: more may have left the screen.
const MAX_TOOL_ROWS: usize = 8;

/// Parts of a row and how they look.
pub(crate) type Row = Vec<(Style, String)>;

/// The panel: no row is as wide as the terminal.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Panel {
    pub(crate) rows: Vec<Row>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// Where the terminal's cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Behind the line that goes on.
    Open,
    /// At the beginning of the row below the conversation, and nothing is below that.
    Fresh,
    /// In the panel.
    Panel,
}

/// The terminal, as it is written to.
pub(crate) struct Painter<W> {
    out: W,
    colours: bool,
    width: usize,
    at: At,
    /// How the line looks that goes on, if one does.
    open: Option<Style>,
    /// The words of a message, in rows.
    flow: Flow,
    /// The tool call whose line is the last one, and that as it was written.
    tool: Option<(String, String)>,
    /// The panel, as it stands there.
    panel: Panel,
    /// Rows from its first to the cursor.
    above: usize,
    /// What is to be written: all of a change at once, so that nobody sees half of it.
    bytes: String,
}

impl<W: Write> Painter<W> {
    pub(crate) fn new(out: W, colours: bool, width: usize) -> Painter<W> {
        Painter {
            out,
            colours,
            width: width.max(1),
            at: At::Fresh,
            open: None,
            flow: Flow::default(),
            tool: None,
            panel: Panel::default(),
            above: 0,
            bytes: String::new(),
        }
    }

    /// Adds a piece to the conversation, if it is one to be shown.
    pub(crate) fn show(&mut self, piece: &Piece) {
        match piece {
            Piece::Answer(text) => self.words(PLAIN, text),
            Piece::Thought(text) => self.words(DIM, text),
            Piece::AnswerEnd | Piece::ThoughtEnd => {
                self.end_line();
                self.flow = Flow::default();
            }
            Piece::Line((style, text)) => drop(self.line(*style, text)),
            Piece::Tool(id, (style, text)) => {
                self.take_back(id);
                let written = self.line(*style, text);
                self.tool = Some((id.clone(), written));
            }
            _ => {}
        }
    }

    fn style(&self, style: Style, text: &str) -> String {
        if self.colours { styled(style, text) } else { anstream::adapter::strip_str(text).to_string() }
    }

    /// Takes the panel away: what is written next belongs to the conversation.
    fn lift(&mut self) {
        if self.at != At::Panel {
            return;
        }
        self.go_to_panel();
        self.bytes.push_str("\x1b[J");
        self.at = At::Fresh;
    }

    fn go_to_panel(&mut self) {
        self.bytes.push('\r');
        self.up(self.above);
    }

    fn up(&mut self, rows: usize) {
        if rows > 0 {
            self.bytes.push_str(&format!("\x1b[{rows}A"));
        }
    }

    /// Adds words to the line that goes on.
    fn words(&mut self, style: Style, text: &str) {
        self.lift();
        self.tool = None;
        if self.open.is_some_and(|open| open != style) {
            self.end_line();
            self.flow = Flow::default();
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.return_to_line();
                self.bytes.push_str("\r\n");
                self.flow.end_line();
                (self.open, self.at) = (None, At::Fresh);
            }
            if line.is_empty() {
                continue;
            }
            self.return_to_line();
            for step in self.flow.push(line, self.width) {
                match step {
                    Step::Write(text) => self.bytes += &self.style(style, &text),
                    Step::TakeBack(column) => self.bytes.push_str(&format!("\r\x1b[{column}C\x1b[K")),
                    Step::Break => self.bytes.push_str("\r\n"),
                }
            }
            (self.open, self.at) = (Some(style), At::Open);
        }
    }

    /// Goes behind the line that goes on. As little of it as can be is written again, and nothing is erased: where a window has got
    /// narrower and that is not known yet, a row that is written again would take two.
    fn return_to_line(&mut self) {
        let (At::Fresh, Some(style)) = (self.at, self.open) else { return };
        self.up(1);
        self.bytes.push('\r');
        let (column, text) = self.flow.way_back();
        if column > 0 {
            self.bytes.push_str(&format!("\x1b[{column}C"));
        }
        if !text.is_empty() {
            self.bytes += &self.style(style, text);
        }
        self.at = At::Open;
    }

    fn end_line(&mut self) {
        self.lift();
        self.open = None;
        self.flow.interrupt();
        if self.at == At::Open {
            self.bytes.push_str("\r\n");
            self.at = At::Fresh;
        }
    }

    /// Adds a whole line, broken between words where it is too long; returns it as it is written.
    fn line(&mut self, style: Style, text: &str) -> String {
        self.end_line();
        self.tool = None;
        let written = in_rows(text, self.width);
        for row in written.split('\n') {
            self.bytes += &self.style(style, row);
            self.bytes.push_str("\r\n");
        }
        written
    }

    /// Takes back the line of a tool, if it is the last one.
    fn take_back(&mut self, id: &str) {
        self.lift();
        let Some((last, written)) = &self.tool else { return };
        let taken = written.split('\n').map(|row| rows(columns(row), self.width)).sum();
        if last == id && taken <= MAX_TOOL_ROWS {
            self.up(taken);
            self.bytes.push_str("\x1b[J");
        }
    }

    /// Puts the panel below the conversation, and writes all that was to be written.
    pub(crate) fn draw(&mut self, panel: &Panel) -> io::Result<()> {
        match self.at {
            At::Panel if self.panel == *panel => return Ok(()),
            At::Panel => self.go_to_panel(),
            At::Open => self.bytes.push_str("\r\n"),
            At::Fresh => {}
        }
        for (index, row) in panel.rows.iter().enumerate() {
            if index > 0 {
                self.bytes.push_str("\r\n");
            }
            for (style, text) in row {
                self.bytes += &self.style(*style, text);
            }
            self.bytes.push_str("\x1b[K");
        }
        self.bytes.push_str("\x1b[J");
        self.up(panel.rows.len().saturating_sub(1 + panel.cursor.0));
        self.bytes.push('\r');
        if panel.cursor.1 > 0 {
            self.bytes.push_str(&format!("\x1b[{}C", panel.cursor.1));
        }
        self.panel.clone_from(panel);
        (self.at, self.above) = (At::Panel, panel.cursor.0);
        self.flush()
    }

    /// The terminal has another width: it has wrapped anew what stands there, as nearly all of them do.
    pub(crate) fn resize(&mut self, width: usize) {
        if self.width == width.max(1) {
            return;
        }
        self.width = width.max(1);
        self.flow.resize(self.width);
        if self.at == At::Panel {
            let (row, column) = self.panel.cursor;
            let needed = |row: &Row| row.iter().map(|(_, text)| columns(text)).sum::<usize>();
            let above = self.panel.rows.iter().take(row).map(|row| rows(needed(row), self.width));
            self.above = above.sum::<usize>() + column / self.width;
            // All of it goes: a row that was wrapped would stay one with the next.
            self.lift();
        }
    }

    /// Leaves the conversation on the screen, and nothing else.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.end_line();
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;

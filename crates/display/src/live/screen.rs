//! Where pieces go: the answer to stdout exactly as it is, everything else to stderr, each on lines of its own although
//! both may be the same terminal.

use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::Style;
use rekindle_terminal::output::{self, DIM, PLAIN, WARN, columns, styled};
use rekindle_terminal::streaming_wrap::{Flow, Step};

use super::diff::Styled;
use super::piece::{Piece, drift_lines};
use crate::hints::{before_command, in_rows};

/// What stands on the terminal's last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// Nothing.
    Empty,
    /// Words of the answer.
    Answer,
    /// Words of a thought.
    Thought,
    /// A question that is to vanish.
    Prompt,
}

/// Stdout and stderr.
pub(crate) struct Screen<O, E> {
    out: O,
    err: E,
    /// The answer is seen on a terminal.
    out_is_terminal: bool,
    /// How many columns the rest has, if it is seen on a terminal; people make windows smaller.
    width: fn() -> Option<usize>,
    /// How many columns words of the answer and of thoughts have, where they are put in rows; none where they go on as they are.
    answer_width: Option<fn() -> Option<usize>>,
    thought_width: Option<fn() -> Option<usize>>,
    /// The words of a message, in rows.
    flow: Flow,
    tail: Tail,
    /// The answer's last line has no end yet.
    open: bool,
    /// The tool call whose line is the last one, and that as it was written.
    tool: Option<(String, String)>,
    /// The question on the last line, as it was written.
    prompt: String,
}

/// Rows of a line that can be taken back: more may have left the screen.
const MAX_ROWS: usize = 8;

/// Returns what clears a line as it was written, with the cursor behind it; none if it is too long. A terminal that has become narrower
/// has wrapped its rows.
fn clear(written: &str, width: usize) -> Option<String> {
    let rows = |row| columns(row).saturating_sub(1) / width.max(1) + 1;
    match written.split('\n').map(rows).sum() {
        0 | 1 => Some("\r\x1b[2K".into()),
        rows @ 2..=MAX_ROWS => Some(format!("\r\x1b[{}A\x1b[J", rows - 1)),
        _ => None,
    }
}

/// Tells whether the terminal does nothing but print.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Writes words in rows of a width.
fn flow(out: &mut dyn Write, flow: &mut Flow, text: &str, width: usize, style: Style) -> io::Result<()> {
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            flow.end_line();
            writeln!(out)?;
        }
        for step in flow.push(line, width) {
            match step {
                Step::Write(text) => write!(out, "{}", styled(style, text))?,
                Step::TakeBack(column) => write!(out, "\r\x1b[{column}C\x1b[K")?,
                Step::Break => writeln!(out)?,
            }
        }
    }
    Ok(())
}

impl Screen<io::Stdout, anstream::AutoStream<io::Stderr>> {
    /// Returns ours.
    pub(crate) fn ours() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let out_is_terminal = out.is_terminal();
        let err = anstream::AutoStream::auto(err);
        let (is_plain, is_styled) = (is_dumb(), err.current_choice() != ColorChoice::Never);
        let screen = Screen::new(out, err, out_is_terminal, output::stderr_width);
        // What takes a word back would be stripped where there are no colours.
        let thought_width = (is_styled && !is_plain).then_some(output::stderr_width as fn() -> Option<usize>);
        let answer_width = (!is_plain).then_some(output::stdout_width as fn() -> Option<usize>);
        Screen { answer_width, thought_width, ..screen }
    }
}

impl<O: Write, E: Write> Screen<O, E> {
    fn new(out: O, err: E, out_is_terminal: bool, width: fn() -> Option<usize>) -> Self {
        Screen {
            out,
            err,
            out_is_terminal,
            width,
            answer_width: None,
            thought_width: None,
            flow: Flow::default(),
            tail: Tail::Empty,
            open: false,
            tool: None,
            prompt: String::new(),
        }
    }

    /// Shows a piece, if it is one to be shown.
    pub(crate) fn show(&mut self, piece: &Piece) -> io::Result<()> {
        match piece {
            Piece::Answer(text) => {
                if self.tail != Tail::Answer {
                    self.fresh_line()?;
                }
                self.write_answer(text)?;
                self.out.flush()?;
                self.open = !text.ends_with('\n');
                self.tail = if self.open && self.out_is_terminal { Tail::Answer } else { Tail::Empty };
                self.tool = None;
            }
            Piece::AnswerEnd => self.end_answer()?,
            Piece::Thought(text) => {
                if self.tail != Tail::Thought {
                    self.fresh_line()?;
                }
                self.write_thought(text)?;
                self.err.flush()?;
                self.tail = if text.ends_with('\n') { Tail::Empty } else { Tail::Thought };
                self.tool = None;
            }
            Piece::ThoughtEnd => {
                if self.tail == Tail::Thought {
                    self.fresh_line()?;
                }
                self.flow = Flow::default();
            }
            Piece::Line(line) => self.line(line)?,
            Piece::Drifted(drift) => drift_lines(drift).iter().try_for_each(|line| self.line(line))?,
            Piece::Tool(id, line) => {
                if let (Some((last, written)), Tail::Empty, Some(width)) =
                    (&self.tool, self.tail, (self.width)())
                    && last == id
                    && let Some(clear) = clear(written, width)
                {
                    write!(self.err, "\x1b[1A{clear}")?;
                }
                let written = self.in_rows(&line.1, in_rows);
                self.write_line(line.0, &written)?;
                self.tool = Some((id.clone(), written));
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes words of the answer: as they are, or in rows where a person sees them.
    fn write_answer(&mut self, text: &str) -> io::Result<()> {
        match self.answer_width.and_then(|width| width()) {
            Some(width) => flow(&mut self.out, &mut self.flow, text, width, PLAIN),
            None => self.out.write_all(text.as_bytes()),
        }
    }

    fn write_thought(&mut self, text: &str) -> io::Result<()> {
        match self.thought_width.and_then(|width| width()) {
            Some(width) => flow(&mut self.err, &mut self.flow, text, width, DIM),
            None => write!(self.err, "{}", styled(DIM, text)),
        }
    }

    /// Ends the answer's last line, if it has no end.
    fn end_answer(&mut self) -> io::Result<()> {
        self.flow = Flow::default();
        // On a terminal a line about something else may have ended it already.
        let ended = self.out_is_terminal && self.tail != Tail::Answer;
        if !std::mem::take(&mut self.open) || ended {
            return Ok(());
        }
        self.tail = Tail::Empty;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Shows a line about what happens.
    pub(crate) fn line(&mut self, (style, text): &Styled) -> io::Result<()> {
        self.write_line(*style, &self.in_rows(text, in_rows))
    }

    /// Shows a line of ours that names a command, which can be copied whole.
    pub(crate) fn hint(&mut self, (style, text): &Styled) -> io::Result<()> {
        self.write_line(*style, &self.in_rows(text, before_command))
    }

    /// Returns a text in rows where a person sees it, and whole elsewhere.
    fn in_rows(&self, text: &str, rows: fn(&str, usize) -> String) -> String {
        (self.width)().map_or_else(|| text.to_owned(), |width| rows(text, width))
    }

    fn write_line(&mut self, style: Style, written: &str) -> io::Result<()> {
        self.fresh_line()?;
        writeln!(self.err, "{}", styled(style, written))?;
        self.tool = None;
        self.err.flush()
    }

    /// Shows a question on the last line, or clears the one that is there.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        let written = self.in_rows(text, in_rows);
        write!(self.err, "{}", styled(WARN, &written))?;
        (self.tail, self.prompt) = (Tail::Prompt, written);
        self.err.flush()
    }

    /// Tells whether a question stands on the last line.
    pub(crate) fn has_prompt(&self) -> bool {
        self.tail == Tail::Prompt
    }

    /// Begins a line on the terminal; the answer itself gets no line end from this.
    pub(crate) fn fresh_line(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.tail, Tail::Empty) {
            Tail::Empty => {}
            Tail::Answer | Tail::Thought => {
                self.flow.interrupt();
                writeln!(self.err)?;
            }
            Tail::Prompt => match clear(&self.prompt, (self.width)().unwrap_or(usize::MAX)) {
                Some(clear) => write!(self.err, "{clear}")?,
                None => writeln!(self.err)?,
            },
        }
        self.err.flush()
    }
}

#[cfg(test)]
mod tests;

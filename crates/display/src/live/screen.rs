//! Where pieces go: the answer to stdout exactly as it is, everything else to stderr, each on lines of its own although
//! both may be the same terminal.

use std::io::{self, IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::Style;
use rekindle_terminal::output::{self, DIM, PLAIN, WARN, columns, styled};
use rekindle_terminal::word_wrap::{Flow, Step};

use super::diff::Styled;
use super::piece::{Piece, drift_lines};

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
    /// The tool call whose line is the last one, and the columns it takes.
    tool: Option<(String, usize)>,
    /// The columns that the question on the last line takes.
    prompt: usize,
}

/// Rows of a line that can be taken back: more may have left the screen.
const MAX_ROWS: usize = 8;

/// Returns what clears a line of so many columns, with the cursor behind it; none if it is too long.
fn clear(columns: usize, width: usize) -> Option<String> {
    let rows = columns.saturating_sub(1) / width.max(1);
    match rows {
        0 => Some("\r\x1b[2K".into()),
        1..MAX_ROWS => Some(format!("\r\x1b[{rows}A\x1b[J")),
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
            prompt: 0,
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
                if let (Some((last, columns)), Tail::Empty, Some(width)) =
                    (&self.tool, self.tail, (self.width)())
                    && last == id
                    && let Some(clear) = clear(*columns, width)
                {
                    write!(self.err, "\x1b[1A{clear}")?;
                }
                self.line(line)?;
                self.tool = Some((id.clone(), columns(&line.1)));
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
        self.fresh_line()?;
        writeln!(self.err, "{}", styled(*style, text))?;
        self.tool = None;
        self.err.flush()
    }

    /// Shows a question on the last line, or clears the one that is there.
    pub(crate) fn prompt(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        write!(self.err, "{}", styled(WARN, text))?;
        (self.tail, self.prompt) = (Tail::Prompt, columns(text));
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
            Tail::Prompt => match clear(self.prompt, (self.width)().unwrap_or(usize::MAX)) {
                Some(clear) => write!(self.err, "{clear}")?,
                None => writeln!(self.err)?,
            },
        }
        self.err.flush()
    }
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::screen::Screen as Terminal;

    use super::*;

    fn shown(out_is_terminal: bool, pieces: &[Piece]) -> (String, String) {
        let mut screen = Screen::new(Vec::new(), Vec::new(), out_is_terminal, || Some(20));
        for piece in pieces {
            screen.show(piece).expect("memory");
        }
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (text(screen.out), text(screen.err))
    }

    fn pieces() -> Vec<Piece> {
        let line = |text: &str| (PLAIN, text.to_owned());
        vec![
            Piece::Answer("one".into()),
            Piece::Line(line("news")),
            Piece::Answer(" two".into()),
            Piece::AnswerEnd,
            Piece::Tool("t".into(), line("▸ x")),
            Piece::Tool("t".into(), line("✓ x")),
            Piece::Answer("three\n".into()),
            Piece::AnswerEnd,
        ]
    }

    #[test]
    fn the_answer_is_exact_and_the_rest_apart() {
        let (out, err) = shown(false, &pieces());
        assert_eq!(out, "one two\nthree\n");
        assert_eq!(err, "news\n▸ x\n\x1b[1A\r\x1b[2K✓ x\n");
    }

    #[test]
    fn on_a_terminal_lines_do_not_run_into_each_other() {
        let (out, err) = shown(true, &pieces());
        assert_eq!(out, "one two\nthree\n");
        assert_eq!(err, "\nnews\n▸ x\n\x1b[1A\r\x1b[2K✓ x\n");
    }

    /// Writes pieces of an answer to a terminal, whose width may change in between; returns its rows.
    fn seen(pieces: &[(&str, usize)]) -> Vec<String> {
        thread_local!(static WIDTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
        let width: fn() -> Option<usize> = || Some(WIDTH.get());
        let mut screen = Screen::new(Vec::new(), Vec::new(), true, width);
        (screen.answer_width, screen.thought_width) = (Some(width), Some(width));
        let mut terminal = Terminal::new(pieces[0].1, 24);
        for (text, columns) in pieces {
            if WIDTH.replace(*columns) != *columns {
                terminal.resize(*columns, 24);
            }
            let piece = match text.strip_prefix("thinks: ") {
                Some(thought) => Piece::Thought(thought.into()),
                None => Piece::Answer((*text).into()),
            };
            screen.show(&piece).expect("memory");
            // What is not the answer goes to the same terminal.
            for bytes in [std::mem::take(&mut screen.err), std::mem::take(&mut screen.out)] {
                terminal.write(String::from_utf8(bytes).expect("text").replace('\n', "\r\n").as_bytes());
            }
        }
        terminal.rows()
    }

    #[test]
    fn words_stay_whole_at_the_edge_of_a_terminal() {
        let pieces = [
            ("the wor", 12),
            ("d crosses the ed", 12),
            ("ge; 漢字 abc", 12),
            (" wide\n```\na b c d e f g h", 12),
        ];
        let lines = ["the word", "crosses the", "edge; 漢字", "abc wide", "```", "a b c d e f", "g h"];
        assert_eq!(seen(&pieces), lines);
        let thought = [("thinks: about the ed", 12), ("thinks: ge of it", 12), ("so it is", 12)];
        assert_eq!(seen(&thought), ["about the", "edge of it", "so it is"]);
        // The window gets smaller, then larger, in the middle of words.
        let resized = [("one two three fo", 20), ("ur five six sev", 10), ("en eight nine ten", 30)];
        let rows = ["one two three four", "five six", "seven eight nine ten"];
        assert_eq!(seen(&resized), rows);
    }

    #[test]
    fn what_is_taken_back_is_taken_back_with_all_its_rows() {
        let mut screen = Screen::new(Vec::new(), Vec::new(), true, || Some(20));
        let line = |text: &str| Piece::Tool("t".into(), (PLAIN, text.to_owned()));
        let (long, whole) = ("▸ a title of two rows", "▸ a title of one row");
        screen.show(&line(long)).expect("memory");
        screen.show(&line(whole)).expect("memory");
        screen.show(&line("✓")).expect("memory");
        screen.prompt("a question that has more rows than two").expect("memory");
        screen.line(&(PLAIN, "x".into())).expect("memory");
        let err = String::from_utf8(screen.err).expect("text");
        let styled = styled(WARN, "a question that has more rows than two");
        let clear = "\r\x1b[1A\x1b[J";
        assert_eq!(err, format!("{long}\n\x1b[1A{clear}{whole}\n\x1b[1A\r\x1b[2K✓\n{styled}{clear}x\n"));
        assert_eq!((super::clear(160, 20).is_some(), super::clear(161, 20)), (true, None));
    }
}

//! What happens, as it happens: a line for each thing, with when it was and how it is known. On a terminal the words
//! that are streaming show themselves on a line that vanishes.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use anstyle::Style;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN, columns, styled, wrap};
use serde::Serialize;

use super::verdict::Check;

/// The columns before what happened: an indentation, the time, a mark.
const HEAD: usize = 13;

/// Columns that are kept for what happened, so that what is known stands in one column where there is room.
const WHAT: usize = 35;

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Something happens.
    Plain,
    /// Somebody is killed.
    Kill,
    /// What was hoped for.
    Good,
    /// What should not be.
    Bad,
}

impl Tone {
    fn mark(self) -> (&'static str, Style) {
        match self {
            Tone::Plain => ("·", PLAIN),
            // A death that was wanted must not look like a check that failed.
            Tone::Kill => ("†", WARN),
            Tone::Bad => ("✗", BAD),
            Tone::Good => ("✓", GOOD),
        }
    }
}

/// One thing that happened.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    act: u32,
    at_ms: u64,
    what: String,
    known_by: String,
}

/// All of it.
pub(super) struct Timeline {
    began: Instant,
    act: u32,
    entries: Vec<Entry>,
    /// Nothing is printed: what happened is told as a whole, at the end.
    silent: bool,
    /// A line that vanishes can be shown.
    live: bool,
    /// It is shown now.
    shown: bool,
    /// The newest words on it.
    tail: String,
}

impl Timeline {
    pub(super) fn new(silent: bool) -> Timeline {
        let live = !silent && io::stdout().is_terminal();
        Timeline {
            began: Instant::now(),
            act: 0,
            entries: Vec::new(),
            silent,
            live,
            shown: false,
            tail: String::new(),
        }
    }

    /// Says what this is.
    pub(super) fn open(&mut self, title: &str, text: &str) -> io::Result<()> {
        let text = wrap(text, output::width(), "", "");
        self.print(&format!("{}\n{}", styled(BOLD, title), styled(DIM, text)))
    }

    /// Begins the next act.
    pub(super) fn act(&mut self, title: &str) -> io::Result<()> {
        self.act += 1;
        let act = self.act;
        self.print(&format!("\n{}", styled(BOLD, format_args!("{act}  {title}"))))
    }

    /// Says that something happened, and how that is known.
    pub(super) fn note(&mut self, tone: Tone, what: &str, known_by: &str) -> io::Result<()> {
        let at = self.began.elapsed();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        let (what, known_by) = (what.to_owned(), known_by.to_owned());
        let text = line(tone, at.as_secs_f64(), &what, &known_by, output::width());
        self.entries.push(Entry { act: self.act, at_ms, what, known_by });
        self.print(&text)
    }

    /// Shows the newest of the words that are streaming, until something else is said.
    pub(super) fn stream(&mut self, words: &str) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        let room = output::width().saturating_sub(HEAD + 1);
        self.tail.push_str(words);
        let first = self.tail.chars().count().saturating_sub(room);
        self.tail = self.tail.chars().skip(first).collect();
        // A word that is cut is not shown: the line begins behind the first gap.
        let from = if first == 0 { 0 } else { self.tail.find(' ').map_or(0, |at| at + 1) };
        let seconds = self.began.elapsed().as_secs_f64();
        let text = styled(DIM, format_args!("  {seconds:6.2}s  » {}", self.tail[from..].trim_end()));
        self.shown = true;
        let mut out = output::stdout();
        write!(out, "\r\x1b[2K{text}")?;
        out.flush()
    }

    /// Says what came of it.
    pub(super) fn verdict(&mut self, title: &str, checks: &[Check]) -> io::Result<()> {
        self.print(&format!("\n{}", styled(BOLD, title)))?;
        let width = output::width();
        for check in checks {
            let tone = if check.ok { Tone::Good } else { Tone::Bad };
            let (mark, style) = tone.mark();
            let head = format!("   {} ", styled(style, mark));
            let style = if check.ok { PLAIN } else { style };
            let row = Row { head, indent: 5, style, what: check.name, known_by: &check.detail };
            self.print(&row.fit(width))?;
        }
        Ok(())
    }

    /// Takes the line away that is to vanish.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.shown) {
            self.tail.clear();
            let mut out = output::stdout();
            write!(out, "\r\x1b[2K")?;
            out.flush()?;
        }
        Ok(())
    }

    /// Prints the last words.
    pub(super) fn close(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.print(&format!("\n{}", styled(style, text)))
    }

    /// Prints something that belongs to no moment.
    pub(super) fn remark(&mut self, text: &str) -> io::Result<()> {
        self.print(&styled(DIM, text))
    }

    /// Returns everything that happened.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns how long it has taken so far, in milliseconds.
    pub(super) fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn print(&mut self, text: &str) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        self.clear()?;
        let mut out = output::stdout();
        writeln!(out, "{text}")?;
        out.flush()
    }
}

fn line(tone: Tone, seconds: f64, what: &str, known_by: &str, width: usize) -> String {
    let (mark, style) = tone.mark();
    let head = format!("{}{} ", styled(DIM, format_args!("  {seconds:6.2}s  ")), styled(style, mark));
    Row { head, indent: HEAD, style, what, known_by }.fit(width)
}

/// Something, and how it is known.
struct Row<'a> {
    head: String,
    /// The columns that the head takes.
    indent: usize,
    style: Style,
    what: &'a str,
    known_by: &'a str,
}

impl Row<'_> {
    /// Puts what is known beside what it is about, or below it where there is no room.
    fn fit(&self, width: usize) -> String {
        let (head, what) = (&self.head, styled(self.style, self.what));
        let taken = columns(self.what).max(WHAT);
        if self.indent + taken + 2 + columns(self.known_by) <= width {
            let gap = " ".repeat(taken - columns(self.what) + 2);
            return format!("{head}{what}{gap}{}", styled(DIM, self.known_by));
        }
        let indent = " ".repeat(self.indent);
        let below = wrap(self.known_by, width, &indent, &indent);
        format!("{head}{what}\n{}", styled(DIM, below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stands_beside_or_below() {
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        let wide = plain(line(Tone::Plain, 1.0, "a daemon listens", "process 7", 100));
        assert_eq!(wide, format!("    1.00s  · {:35}  process 7", "a daemon listens"));
        let narrow = plain(line(Tone::Kill, 12.5, "a daemon listens", "process 7 and more", 64));
        assert_eq!(narrow, "   12.50s  † a daemon listens\n             process 7 and more");
    }
}

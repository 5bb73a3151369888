//! Words as they come, in rows of a width: one that would cross the edge begins the next row. What that takes is told in steps, which
//! whoever writes to a terminal carries out; nothing here commands one. Pure.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::code_fence::Fence;

/// Columns between two stops of a tab.
const TAB: usize = 8;

/// Longest line of which all is remembered: more is only needed when the window is made larger or smaller.
const MAX_LINE: usize = 64 << 10;

/// Something to be done to a terminal, behind what was written last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes this: the terminal wraps it where it is too long.
    Write(String),
    /// Erases the row from this column on, which is never its first.
    TakeBack(usize),
    /// Begins a row.
    Break,
}

/// A text that goes on.
#[derive(Debug, Default)]
pub struct Flow {
    width: usize,
    /// What was written since the last line end or break: the terminal has it in rows, and wraps those anew in another width.
    line: String,
    /// The last row, as the terminal has it.
    row: String,
    columns: usize,
    /// Where the last word of the row begins: its byte and its column.
    word: (usize, usize),
    /// Blanks that did not fit were left out: what comes next begins a row.
    is_broken: bool,
    /// Whether what is written stays as it is.
    fence: Fence,
}

impl Flow {
    /// Returns how the cursor gets behind what stands on the last row: the column to go to, and what is to be written there. That is
    /// the last character where the row is full, since nothing else brings the cursor behind it, and the whole row where terminals
    /// differ in how many columns something takes.
    pub fn way_back(&self) -> (usize, &str) {
        if self.row.graphemes(true).any(|shown| shown.chars().nth(1).is_some()) {
            return (0, &self.row);
        }
        let last = self.row.graphemes(true).next_back().unwrap_or_default();
        if self.columns >= self.width { (self.columns - last.width(), last) } else { (self.columns, "") }
    }

    /// Adds text without line ends, in a terminal of so many columns; returns what is to be done. Tabs become blanks.
    pub fn push(&mut self, text: &str, width: usize) -> Vec<Step> {
        self.resize(width);
        let mut out = Out::default();
        for shown in text.graphemes(true) {
            self.fence.see(shown);
            if shown == "\t" {
                let blanks = TAB - self.columns % TAB;
                (0..blanks).for_each(|_| self.add(" ", &mut out));
            } else {
                self.add(shown, &mut out);
            }
        }
        if self.line.len() > MAX_LINE {
            self.line.clone_from(&self.row);
        }
        out.steps()
    }

    fn add(&mut self, shown: &str, out: &mut Out) {
        let (is_blank, columns) = (shown == " ", shown.width());
        if self.is_broken {
            // The beginning of a row needs none.
            if is_blank {
                return;
            }
            out.begin_row();
            self.begin_row("");
        }
        if self.columns + columns > self.width {
            let (at, column) = self.word;
            let (has_word, is_after_blank) = (at < self.row.len(), self.row.ends_with(' '));
            let is_prose = self.fence.is_prose();
            if is_prose && is_blank {
                self.is_broken = true;
                return;
            }
            if is_prose && column > 0 && (is_after_blank || has_word && columns == 1) {
                let word = self.row.split_off(at);
                out.take_back(&word, column);
                self.begin_row(&word);
            } else {
                // The terminal wraps it.
                (self.row, self.columns, self.word) = (String::new(), 0, (0, 0));
            }
        }
        out.text.push_str(shown);
        self.line.push_str(shown);
        self.put(shown, columns);
    }

    /// Adds to the last row what has room there.
    fn put(&mut self, shown: &str, columns: usize) {
        self.row.push_str(shown);
        self.columns += columns;
        // Wide characters are written without blanks between them, and a line may end at any.
        if shown == " " || columns > 1 {
            self.word = (self.row.len(), self.columns);
        }
    }

    fn begin_row(&mut self, word: &str) {
        self.is_broken = false;
        (self.line, self.row, self.columns) = (word.to_owned(), word.to_owned(), word.width());
        self.word = (0, 0);
    }

    /// The terminal has another width, and has wrapped anew what stands there, as nearly all of them do.
    pub fn resize(&mut self, width: usize) {
        let width = width.max(1);
        if self.width == width {
            return;
        }
        self.width = width;
        let line = std::mem::take(&mut self.line);
        (self.row, self.columns, self.word) = (String::new(), 0, (0, 0));
        for shown in line.graphemes(true) {
            let columns = shown.width();
            if self.columns + columns > width {
                (self.row, self.columns, self.word) = (String::new(), 0, (0, 0));
            }
            self.put(shown, columns);
        }
        self.line = line;
    }

    /// The line has ended.
    pub fn end_line(&mut self) {
        self.interrupt();
        self.fence.end_line();
    }

    /// Something else is written below, and the line goes on below that.
    pub fn interrupt(&mut self) {
        self.begin_row("");
    }
}

/// What is to be written.
#[derive(Default)]
struct Out {
    done: Vec<Step>,
    text: String,
}

impl Out {
    fn write(&mut self) {
        if !self.text.is_empty() {
            self.done.push(Step::Write(std::mem::take(&mut self.text)));
        }
    }

    fn begin_row(&mut self) {
        self.write();
        self.done.push(Step::Break);
    }

    /// Takes a word back that the row ends with, and begins a row with it.
    fn take_back(&mut self, word: &str, column: usize) {
        // What was not written yet need not be erased.
        if self.text.len() >= word.len() {
            self.text.truncate(self.text.len() - word.len());
            self.write();
        } else {
            self.text.clear();
            self.done.push(Step::TakeBack(column));
        }
        self.done.push(Step::Break);
        self.text.push_str(word);
    }

    fn steps(mut self) -> Vec<Step> {
        self.write();
        self.done
    }
}

#[cfg(test)]
mod tests;

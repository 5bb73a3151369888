//! Which lines of a text are prose, and which stay as they are because somebody may want to copy them: code between fences, what is
//! indented, rows of tables. A line is known by its first characters, as they come. Pure.

/// Backquotes that make a fence, at least.
const FENCE: usize = 3;

/// Blanks that make a line one of code.
const CODE: usize = 4;

/// A text, line by line.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// The line is between two fences.
    is_inside: bool,
    /// Blanks at the beginning of the line.
    blanks: usize,
    /// Backquotes behind those.
    quotes: usize,
    begins: Begins,
    /// There are other backquotes in the line: what it begins with ends in it.
    has_more: bool,
}

/// What a line begins with.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Blanks, so far.
    #[default]
    Blank,
    /// Backquotes, so far.
    Quotes,
    /// A tab, or what a table's rows begin with.
    Kept,
    /// Anything else.
    Words,
}

impl Fence {
    /// Takes the next character of the line.
    pub(crate) fn see(&mut self, shown: &str) {
        self.begins = match (self.begins, shown) {
            (Begins::Blank, " ") => {
                self.blanks += 1;
                Begins::Blank
            }
            (Begins::Blank, "\t" | "|") => Begins::Kept,
            (Begins::Blank | Begins::Quotes, "`") => {
                self.quotes += 1;
                Begins::Quotes
            }
            (Begins::Words, "`") => {
                self.has_more = true;
                Begins::Words
            }
            (Begins::Kept, _) => Begins::Kept,
            _ => Begins::Words,
        };
    }

    /// Tells whether the line may be broken between words, as far as it is known.
    pub(crate) fn is_prose(&self) -> bool {
        !(self.is_inside || self.is_fence() || self.blanks >= CODE || self.begins == Begins::Kept)
    }

    fn is_fence(&self) -> bool {
        self.quotes >= FENCE && self.blanks < CODE && !self.has_more
    }

    pub(crate) fn end_line(&mut self) {
        let is_inside = self.is_inside != self.is_fence();
        *self = Fence { is_inside, ..Fence::default() };
    }
}

//! Rows of a table of situations: all are tried, then those that came out otherwise are told together.

use super::home::Home;

#[derive(Default)]
pub(super) struct Table {
    rows: usize,
    wrong: Vec<String>,
}

impl Table {
    /// Checks one thing of a situation.
    pub(super) fn is(&mut self, name: &str, actual: &str, expected: &str) {
        self.rows += 1;
        if actual != expected {
            self.wrong.push(format!("{name}\n    is       {actual}\n    expected {expected}"));
        }
    }

    /// Checks what was recorded, the status, and how the reason begins for which nothing happens.
    pub(super) fn row(&mut self, name: &str, home: &mut Home, news: &str, status: &str, held: &str) {
        let shown = format!("{} | {} | {}", home.news(), home.status(), home.held());
        self.rows += 1;
        let expected = format!("{news} | {status} | {held}");
        if !(shown.starts_with(&expected) && (held.is_empty() == home.held().is_empty())) {
            self.wrong.push(format!("{name}\n    is       {shown}\n    expected {expected}"));
        }
    }

    /// Tells what came out otherwise; there must have been so many rows.
    pub(super) fn done(self, rows: usize) {
        assert!(self.wrong.is_empty(), "{} of {}:\n{}", self.wrong.len(), self.rows, self.wrong.join("\n"));
        assert_eq!(self.rows, rows, "rows of the table");
    }
}

//! The panel below the conversation: what waits, what is asked, a hint, the status, and the line that is typed on.

use std::time::Duration;

use anstyle::Style;
use rekindle_terminal::output::{BOLD, DIM, PLAIN, WARN, cut};

use super::Core;
use crate::layout::{gist, lay_out};
use crate::painter::{Panel, Row};

/// Queued messages that are shown.
const MAX_QUEUED: usize = 3;

/// Rows of the conversation that are always left to be seen.
const LEFT: usize = 2;

/// What stands before what is typed: as wide in every row.
const PROMPT: &str = "> ";
const INDENT: &str = "  ";

impl Core {
    /// Returns the panel for a terminal of a size.
    pub(crate) fn panel(&self, width: usize, height: usize, now: Duration) -> Panel {
        // The last column stays free: a row that is full wraps when the window gets smaller.
        let width = width.saturating_sub(1).max(4);
        let room = height.saturating_sub(LEFT).max(1);
        let typed = lay_out(self.editor.text(), self.editor.cursor(), width - PROMPT.len());
        let first = typed.cursor.0.saturating_sub(room.saturating_sub(1));
        let last = typed.rows.len().min(first + room);
        let mut rows = self.rows_above(width, now);
        // What is typed comes first, then the status.
        rows.drain(..rows.len().saturating_sub(room - (last - first)));
        let above = rows.len();
        for (index, row) in typed.rows[first..last].iter().enumerate() {
            let prompt = if first + index == 0 { PROMPT } else { INDENT };
            rows.push(vec![(BOLD, prompt.to_owned()), (PLAIN, row.clone())]);
        }
        Panel { rows, cursor: (above + typed.cursor.0 - first, PROMPT.len() + typed.cursor.1) }
    }

    fn rows_above(&self, width: usize, now: Duration) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut row = |style: Style, text: &str| rows.push(vec![(style, cut(text, width))]);
        for text in self.outbox.sending() {
            row(DIM, &format!("  sending: {}", gist(text, width)));
        }
        let queued = self.outbox.queued();
        let (count, more) = (queued.len(), queued.len().saturating_sub(MAX_QUEUED));
        for text in queued.take(MAX_QUEUED) {
            row(DIM, &format!("  queued: {}", gist(text, width)));
        }
        if more > 0 {
            row(DIM, &format!("  … {more} more queued"));
        }
        let asked = self.questions.asked();
        if let Some(ask) = asked {
            let how = match (self.questions.about_to_answer(), ask.choices.len()) {
                (Some(answer), _) => format!("  answering: {answer} …"),
                (None, _) if !self.questions.is_read(now) => "  a question".to_owned(),
                (None, 0) => "  your next line answers it".to_owned(),
                (None, count) => format!("  press 1-{count}, y or n; or type one of them and Enter"),
            };
            row(WARN, &how);
        }
        if let Some((style, text)) = &self.notice {
            row(*style, &format!("  {text}"));
        }
        let (style, text) = self.status.text(asked.is_some(), count, now);
        row(style, &text);
        rows
    }
}

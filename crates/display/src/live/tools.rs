//! Tool calls: a line each, which changes with what becomes of the call, and what it changes in files.

use std::collections::HashMap;

use rekindle_terminal::output::{BAD, DIM, GOOD, PLAIN, plural};
use rekindle_terminal::sanitise;
use serde_json::Value;

use super::diff::{Styled, diffs};
use super::piece::{Piece, line};

/// Lines of a difference that are shown while the agent works; a permission shows them all.
const MAX_DIFF: usize = 40;

#[derive(Debug, Default)]
struct Tool {
    title: String,
    diff: Vec<Styled>,
}

/// The tool calls that were shown.
#[derive(Debug, Default)]
pub(super) struct Tools(HashMap<String, Tool>);

impl Tools {
    /// Shows a tool call, or what became of it.
    pub(super) fn take(
        &mut self,
        id: &str,
        title: Option<&str>,
        status: Option<&str>,
        raw: Option<Value>,
    ) -> Vec<Piece> {
        let tool = self.0.entry(id.to_owned()).or_default();
        let title = title.map(sanitise::line).filter(|title| !title.is_empty());
        let renamed = title.as_ref().is_some_and(|title| *title != tool.title);
        tool.title = title.unwrap_or_else(|| std::mem::take(&mut tool.title));
        let name = if tool.title.is_empty() { "a tool" } else { &tool.title };
        let shown = match status {
            Some("completed") => Some((GOOD, format!("✓ {name}"))),
            Some("failed") => Some((BAD, format!("✗ {name}"))),
            Some("pending" | "in_progress") | None if renamed => Some((PLAIN, format!("▸ {name}"))),
            _ => None,
        };
        let mut pieces: Vec<Piece> =
            shown.map(|shown| Piece::Tool(id.to_owned(), shown)).into_iter().collect();
        let diff = raw.map(|raw| diffs(&raw["content"])).unwrap_or_default();
        if !diff.is_empty() && diff != tool.diff {
            let more = diff.len().saturating_sub(MAX_DIFF);
            pieces.extend(diff.iter().take(MAX_DIFF).map(|(style, text)| line(*style, format!("  {text}"))));
            if more > 0 {
                pieces.push(line(DIM, format!("  … {} more", plural(more as u64, "line"))));
            }
            tool.diff = diff;
        }
        pieces
    }
}

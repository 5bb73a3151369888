//! A search through records: the words that are looked for, which texts of a record are looked at, and the excerpt that shows where
//! they stand. Pure: who reads logs hands in one record after the other.

mod excerpt;
mod record_text;
mod words;

pub use excerpt::ExcerptPart;
pub use words::{BadSearch, MAX_QUERY, MAX_WORDS, SearchWords};

use schemars::JsonSchema;

use crate::event::Event;
use crate::string_enum::string_enums;

string_enums! {
    /// What the text is that was found.
    #[derive(JsonSchema)]
    pub enum FoundIn {
        /// What a person or program said to the agent.
        Prompt = "prompt",
        /// What the agent said.
        Agent = "agent",
        /// A tool that the agent used: a command, a title, the files that it named.
        Tool = "tool",
        /// What the agent asked.
        Question = "question",
        /// Files that changed during a run.
        Files = "files",
    }
}

/// A record that has all the words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What has them.
    pub found_in: FoundIn,
    /// The text around the first of them, in one line.
    pub excerpt: Vec<ExcerptPart>,
}

/// Looks for words in an event; all of them have to be in it.
pub fn find_in_event(words: &SearchWords, event: &Event<'_>) -> Option<Found> {
    let (found_in, text) = record_text::of(event)?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let excerpt = excerpt::around(words, &text)?;
    Some(Found { found_in, excerpt })
}

//! Documentation as tests read it: the commands of its pages, what is shown below them, and how each is to be tried.

mod markdown;
mod shell_words;
mod shown;

pub use markdown::{Block, Example, Item, Page, Way};
pub use shell_words::commands_of;
pub use shown::matches_shown;

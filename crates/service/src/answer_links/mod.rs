//! Answer links: a person elsewhere opens a link of a notification, sees what is asked, and confirms one answer. Which options get
//! one (`linkable`), how they are made (`mint`) and what whoever opens one is shown (`view`, `question`).
//!
//! A link is a resume token that takes one option of one wait. What makes it safe is decided elsewhere: the domain refuses every
//! other option, and the server answers nothing to a GET.

mod linkable;
mod mint;
mod question;
mod view;

pub(crate) use mint::{AnswerLinks, MintedLinks};
pub(crate) use question::question_line;
pub(crate) use view::token_view;

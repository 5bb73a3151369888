//! Links in bodies: only those to answer by, and only if they can be nothing else.

use crate::notice::AnswerLink;
use crate::text::line;

/// The longest address that is passed on.
const LONGEST: usize = 1000;

/// The longest label: what fits on a button.
const LABEL: usize = 40;

/// More links than a question has answers.
const MOST: usize = 8;

/// A link with a clean label.
#[derive(PartialEq, Eq)]
pub(super) struct Link {
    pub(super) label: String,
    pub(super) url: String,
}

/// Returns the links that can be passed on: to the web, without a character by which a link ends or begins anew somewhere.
pub(super) fn usable(links: &[AnswerLink]) -> Vec<Link> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'*+,;=%".contains(c);
    let is_web = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    let usable = links
        .iter()
        .filter(|link| is_web(&link.url) && link.url.len() <= LONGEST && link.url.chars().all(fits));
    let named = |link: &AnswerLink| {
        let label = line(&link.label, LABEL);
        Link { label: if label.is_empty() { "Answer".to_owned() } else { label }, url: link.url.clone() }
    };
    usable.take(MOST).map(named).collect()
}

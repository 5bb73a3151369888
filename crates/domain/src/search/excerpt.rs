//! The excerpt of a text that shows where words stand in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::SearchWords;

/// Bytes before the first word, and in all: two lines of a terminal.
const BEFORE: usize = 60;
const LENGTH: usize = 200;

/// A part of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExcerptPart {
    /// The text.
    pub text: String,
    /// It is one of the words that were looked for.
    #[serde(default)]
    pub matched: bool,
}

/// A text in lower case, which knows where each of its bytes comes from.
struct Folded {
    text: String,
    /// For each byte of `text` the beginning of the character that it comes from.
    from: Vec<usize>,
}

impl Folded {
    fn new(text: &str) -> Folded {
        let mut folded =
            Folded { text: String::with_capacity(text.len()), from: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices() {
            folded.text.extend(c.to_lowercase());
            folded.from.resize(folded.text.len(), at);
        }
        folded
    }

    /// Returns where a word stands in the text that was folded.
    fn places<'a>(&'a self, word: &'a str, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.text.match_indices(word).map(move |(at, found)| {
            // A character that became several is marked whole.
            let last = self.from[at + found.len() - 1];
            (self.from[at], last + text[last..].chars().next().map_or(0, char::len_utf8))
        })
    }
}

/// Returns the text around the first of the words, with each of them marked; none if a word is missing.
pub(super) fn around(words: &SearchWords, text: &str) -> Option<Vec<ExcerptPart>> {
    let folded = Folded::new(text);
    if !words.words().iter().all(|word| folded.text.contains(word.as_str())) {
        return None;
    }
    let mut places: Vec<(usize, usize)> =
        words.words().iter().flat_map(|word| folded.places(word, text)).collect();
    places.sort_unstable();
    let first = places.first()?.0;
    let begin = floor(text, first.saturating_sub(BEFORE));
    let end = floor(text, begin.saturating_add(LENGTH));
    let mut parts = Vec::new();
    let mut push = |text: &str, matched: bool| {
        if !text.is_empty() {
            parts.push(ExcerptPart { text: text.to_owned(), matched });
        }
    };
    push(if begin > 0 { "…" } else { "" }, false);
    let mut at = begin;
    for (from, to) in places {
        // Words may overlap, and the end may be in the middle of one.
        let (from, to) = (from.max(at), to.min(end));
        if from < to {
            push(&text[at..from], false);
            push(&text[from..to], true);
            at = to;
        }
    }
    push(&text[at..end], false);
    push(if end < text.len() { "…" } else { "" }, false);
    Some(parts)
}

/// Returns the beginning of the character that a byte is in.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(query: &str, text: &str) -> Option<String> {
        let parts = around(&SearchWords::parse(query).expect("words"), text)?;
        let part =
            |part: &ExcerptPart| if part.matched { format!("[{}]", part.text) } else { part.text.clone() };
        Some(parts.iter().map(part).collect())
    }

    #[test]
    fn every_word_is_marked_and_all_have_to_be_there() {
        assert_eq!(
            shown("flaky TEST", "Fix the Flaky test, test it"),
            Some("Fix the [Flaky] [test], [test] it".into())
        );
        assert_eq!(shown("flaky other", "Fix the flaky test"), None);
        assert_eq!(shown("test tes", "a test"), Some("a [tes][t]".into()), "words that overlap");
        assert_eq!(shown("ÜBER", "das Überwachen"), Some("das [Über]wachen".into()));
        // One character in upper case, two in lower case.
        assert_eq!(shown("i", "İx"), Some("[İ]x".into()));
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_word() {
        let text = format!("{} needle {}", "é".repeat(100), "z".repeat(500));
        let shown = shown("needle", &text).expect("found");
        assert!(shown.starts_with("…é") && shown.contains(" [needle] z") && shown.ends_with("z…"), "{shown}");
        assert!(shown.len() <= LENGTH + 10, "{}", shown.len());
    }

    proptest! {
        #[test]
        fn whatever_the_text_is_an_excerpt_is_a_piece_of_it(text in ".{0,300}", query in "[a-zéİß ]{1,6}") {
            let Ok(words) = SearchWords::parse(&query) else { return Ok(()) };
            if let Some(parts) = around(&words, &text) {
                let whole: String = parts.iter().map(|part| part.text.as_str()).collect();
                prop_assert!(text.contains(whole.trim_matches('…')) || text.contains('…'));
                prop_assert!(parts.iter().any(|part| part.matched));
            }
        }
    }
}

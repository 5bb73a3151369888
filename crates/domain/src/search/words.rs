//! The words of a search, and how a line is ruled out without being parsed.

/// Longest query, in characters: far more than a person types.
pub const MAX_QUERY: usize = 200;

/// Most words of a query: each is looked for in every line that has the longest.
pub const MAX_WORDS: usize = 8;

/// Words that are looked for, whatever their case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWords {
    /// In lower case; none is empty.
    words: Vec<String>,
}

/// Why a query cannot be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSearch {
    /// It has no word.
    #[error("a search needs at least one word")]
    Empty,
    /// It is too long.
    #[error("a search has at most {MAX_QUERY} characters")]
    TooLong,
    /// It has too many words.
    #[error("a search has at most {MAX_WORDS} words")]
    TooMany,
}

impl SearchWords {
    /// Reads a query: words between blanks, each of which has to be found.
    pub fn parse(query: &str) -> Result<SearchWords, BadSearch> {
        if query.chars().count() > MAX_QUERY {
            return Err(BadSearch::TooLong);
        }
        let mut words: Vec<String> = Vec::new();
        for word in query.split_whitespace().map(str::to_lowercase) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        match words.len() {
            0 => Err(BadSearch::Empty),
            1..=MAX_WORDS => Ok(SearchWords { words }),
            _ => Err(BadSearch::TooMany),
        }
    }

    /// Returns the words in lower case.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns what every line has that has all the words, in ASCII lower case: the longest stretch of ASCII letters and digits in any of
    /// them. These stand in a line as they are, while JSON may write anything else in another way. None if no word has any.
    pub fn needle(&self) -> Option<&str> {
        let stretches = self.words.iter().flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
        stretches.filter(|stretch| !stretch.is_empty()).max_by_key(|stretch| stretch.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_a_few_words_whatever_their_case() {
        let words = |query: &str| SearchWords::parse(query).map(|words| words.words);
        assert_eq!(words("  Flaky\ttest flaky "), Ok(vec!["flaky".into(), "test".into()]));
        assert_eq!(words(" \n"), Err(BadSearch::Empty));
        assert_eq!(words(&"é".repeat(MAX_QUERY)).map(|words| words.len()), Ok(1));
        assert_eq!(words(&"é".repeat(MAX_QUERY + 1)), Err(BadSearch::TooLong));
        assert_eq!(words("1 2 3 4 5 6 7 8").map(|words| words.len()), Ok(MAX_WORDS));
        assert_eq!(words("1 2 3 4 5 6 7 8 9"), Err(BadSearch::TooMany));
    }

    #[test]
    fn lines_are_ruled_out_by_what_json_never_writes_in_another_way() {
        let needle = |query: &str| SearchWords::parse(query).expect("words").needle().map(str::to_owned);
        assert_eq!(needle("src/Main.rs of"), Some("main".into()));
        assert_eq!(needle("\"quoted\""), Some("quoted".into()));
        assert_eq!(needle("Überweg"), Some("berweg".into()));
        assert_eq!((needle("漢字"), needle("→ é")), (None, None));
    }
}

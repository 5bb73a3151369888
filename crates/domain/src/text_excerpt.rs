//! The last words of an agent: the end of what it said, short enough to be shown.

/// Characters of a line that is shown.
const LINE: usize = 160;

/// Characters of what is kept of a task's last words.
const RESULT: usize = 4_000;

/// Returns the end of a message in one line; none of an empty one.
pub fn last_line(said: &str) -> Option<String> {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = tail(&line, LINE);
    (!end.is_empty()).then(|| end.to_owned())
}

/// Returns the end of a message as it is kept for whoever asks what came of it; none of an empty one.
pub fn result(said: &str) -> Option<String> {
    let end = tail(said.trim(), RESULT);
    (!end.is_empty()).then(|| end.to_owned())
}

/// Returns the last characters of a text.
fn tail(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_message_counts_and_nothing_is_cut_in_the_middle_of_a_letter() {
        assert_eq!(last_line(" a\n b\t"), Some("a b".into()));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(last_line(&"é".repeat(200)), Some("é".repeat(160)));
        assert_eq!(result("a\n b \n"), Some("a\n b".into()));
        assert_eq!(result(&format!("{}z", "é".repeat(5_000))).map(|end| end.chars().count()), Some(4_000));
        assert_eq!(result(""), None);
    }
}

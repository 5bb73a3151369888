//! Text of agents made plain: nothing in it commands a terminal, hides, or turns the direction of what is read.

use rekindle_terminal::sanitise;

/// Returns the text with its line ends, of at most so many characters.
pub(crate) fn block(text: &str, most: usize) -> String {
    let visible = visible(text);
    cut(visible.trim(), most)
}

/// Returns the text as one line of at most so many characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let words = visible(text);
    cut(&words.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

fn visible(text: &str) -> String {
    let plain = sanitise::block(text);
    plain.chars().filter(|c| !is_hidden(*c)).map(|c| if is_line_end(c) { '\n' } else { c }).collect()
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Tells whether a character is not to be seen: joiners, fillers, tags and whatever else lets a word look like another.
fn is_hidden(c: char) -> bool {
    sanitise::turns_direction(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Cuts a text behind so many characters, and says so.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_to_be_seen_goes_and_the_rest_stays() {
        let cases = [
            ("plain ünï 漢字 🎉", "plain ünï 漢字 🎉"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("@every\u{200d}one", "@everyone"),
            ("evil \u{202e}gpj.exe\u{2069}", "evil gpj.exe"),
            ("a\u{ad}b\u{feff}c\u{e0041}d\u{3164}", "abcd"),
            ("one\u{2028}two", "one\ntwo"),
            ("nul\0 bel\u{7}", "nul bel"),
        ];
        for (text, expected) in cases {
            assert_eq!(block(text, 100), expected, "{text:?}");
        }
        assert_eq!(line("a\n\n b\tc", 100), "a b c");
        assert_eq!((block("abcdef", 6), block("abcdefg", 6)), ("abcdef".to_owned(), "abcde…".to_owned()));
        assert_eq!((line("", 5), block("x", 0)), (String::new(), "…".to_owned()));
    }

    proptest! {
        #[test]
        fn nothing_hidden_passes_whatever_is_said(text in "\\PC*|.*|(\u{1b}|\\[|\u{202e}|\u{200b}|\r|\n|\u{9b}|@|a|\u{2028})*") {
            for cleaned in [block(&text, 50), line(&text, 50)] {
                prop_assert!(cleaned.chars().count() <= 50);
                for c in cleaned.chars() {
                    prop_assert!(!is_hidden(c) && !is_line_end(c) && (!c.is_control() || matches!(c, '\n' | '\t')), "{c:?}");
                }
            }
            prop_assert!(!line(&text, 50).contains('\n'));
        }
    }
}

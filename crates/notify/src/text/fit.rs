//! Text made to fit: escaped as a service wants it, and cut to what it takes, never in the middle of an escape.

/// What breaks a word for services, and looks like nothing to people. Clean text has none, so that each one is ours.
const BREAK: char = '\u{200b}';

/// Returns text in which no service finds anybody to call, nor an address to link: a break follows every `@`, and stands inside of `://`.
pub(crate) fn defused(text: &str) -> String {
    text.replace('@', &format!("@{BREAK}")).replace("://", &format!(":{BREAK}//"))
}

/// Escapes a text character by character, and cuts it where the next would be beyond `most`, as `measure` counts.
pub(crate) fn fit(
    text: &str,
    most: usize,
    measure: fn(&str) -> usize,
    escape: fn(char, &mut String),
) -> String {
    let ellipsis = measure("…");
    let mut out = String::with_capacity(text.len());
    let mut used = 0;
    // Where it would be cut, if there is more than fits.
    let mut end = 0;
    let mut piece = String::new();
    for c in text.chars() {
        piece.clear();
        escape(c, &mut piece);
        used += measure(&piece);
        if used > most {
            out.truncate(end);
            if ellipsis <= most {
                out.push('…');
            }
            return out;
        }
        out.push_str(&piece);
        if used + ellipsis <= most {
            end = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn doubled(c: char, out: &mut String) {
        if c == '*' {
            out.push('\\');
        }
        out.push(c);
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        let fitted = |text: &str, most| fit(text, most, |piece| piece.chars().count(), doubled);
        let cases = [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("a*b", 4, r"a\*b"),
            ("a*bc", 4, r"a\*…"),
            ("a**", 4, r"a\*…"),
            ("**", 3, r"\*…"),
            ("**", 2, "…"),
            ("ab", 0, ""),
            ("", 0, ""),
        ];
        for (text, most, expected) in cases {
            assert_eq!(fitted(text, most), expected, "{text} in {most}");
        }
        assert_eq!(fit("äöü", 5, str::len, doubled), "ä…");
        assert_eq!(fit("äö", 2, str::len, doubled), "");
    }

    #[test]
    fn nobody_is_called_and_nothing_is_linked() {
        assert_eq!(defused("@everyone at https://x"), "@\u{200b}everyone at https:\u{200b}//x");
        assert_eq!(defused("@@here"), "@\u{200b}@\u{200b}here");
    }

    proptest! {
        #[test]
        fn it_never_is_longer_than_asked(text in ".*", most in 0usize..40) {
            prop_assert!(fit(&text, most, str::len, doubled).len() <= most);
            prop_assert!(fit(&text, most, |piece| piece.encode_utf16().count(), doubled).encode_utf16().count() <= most);
        }
    }
}

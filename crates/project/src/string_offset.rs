//! Bytes of a string of TOML, as it is written and as it is read: quotes, escapes and lines that go on are no part of what is read.

/// Returns the byte of a string as it is written, quotes included, at which the byte `offset` of what it says begins.
pub(crate) fn offset_in_string(written: &str, offset: usize) -> usize {
    let quotes = if written.starts_with("\"\"\"") || written.starts_with("'''") { 3 } else { 1 };
    let (has_escapes, is_long) = (written.starts_with('"'), quotes == 3);
    let mut at = quotes;
    if is_long {
        // The first line break behind the quotes does not count.
        let rest = written.get(at..).unwrap_or_default();
        at += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    }
    let mut read = 0;
    while let Some(rest) = written.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        let (takes, means) = match first {
            '\\' if has_escapes => escape(rest),
            other => (other.len_utf8(), other.len_utf8()),
        };
        // What means nothing stands before what comes next.
        if read >= offset && means > 0 {
            break;
        }
        (at, read) = (at + takes, read + means);
    }
    at.min(written.len())
}

/// Returns how many bytes an escape takes, and how many it means.
fn escape(rest: &str) -> (usize, usize) {
    let digits = match rest.chars().nth(1) {
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        Some(space) if space.is_ascii_whitespace() => {
            let goes_on = rest[1..].trim_start_matches([' ', '\t', '\r', '\n']);
            return (rest.len() - goes_on.len(), 0);
        }
        Some(other) => return (1 + other.len_utf8(), 1),
        None => return (1, 0),
    };
    let code = rest.get(2..2 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    (2 + digits, code.and_then(char::from_u32).map_or(1, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_found_where_it_is_written() {
        // Each `@` is what is looked for, by its byte in what is read.
        let cases = [
            (r#""ab@""#, 2),
            (r#""@""#, 0),
            ("'a\\n@'", 3),
            (r#""\n\t\"\\@""#, 4),
            (r#""é\u00e9\U0001F600\x41@""#, 2 + 2 + 4 + 1),
            ("\"\"\"\none\n@\"\"\"", 4),
            ("\"\"\"\r\n@\"\"\"", 0),
            ("'''\n\n@'''", 1),
            ("\"\"\"one \\\n     @\"\"\"", 4),
            ("\"\"\"\\\n  @\"\"\"", 0),
        ];
        for (written, offset) in cases {
            let document = format!("a = {written}");
            let read: toml::Table = toml::from_str(&document).expect("a document");
            assert_eq!(read["a"].as_str().and_then(|text| text.find('@')), Some(offset), "{written}");
            assert_eq!(Some(offset_in_string(written, offset)), written.find('@'), "{written}");
        }
    }

    #[test]
    fn what_is_beyond_the_end_is_at_the_end() {
        for written in ["\"ab\"", "'''", "\"", "", "\"\\", "\"\\u12", "\"\\é"] {
            assert!(offset_in_string(written, 99) <= written.len(), "{written}");
        }
    }
}

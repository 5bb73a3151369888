//! A view of Rust text in which only code is left: comments, literals and, on request, tests are blanked.
//! Lines stay where they are, so a place in the view is a place in the file.

/// Stands for a character of a string, where strings are told from comments.
const STRING: char = '\u{1}';

/// Replaces comments and the literals of strings and characters by spaces.
pub(crate) fn code_only(text: &str) -> String {
    without_literals(text, ' ')
}

/// Replaces everything but the literals of strings by spaces; those of tests too.
pub(crate) fn strings_only(text: &str) -> String {
    let marked = without_tests(&without_literals(text, STRING));
    let kept = |(c, mark)| if mark == STRING || c == '\n' { c } else { ' ' };
    text.chars().zip(marked.chars()).map(kept).collect()
}

/// Replaces comments by spaces, and the literals of strings and characters by what they are to look like.
fn without_literals(text: &str, literal: char) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, blank) = match literal_length(rest, previous) {
            Some(length) => (length, true),
            None => (first.len_utf8(), false),
        };
        let (head, tail) = rest.split_at(length);
        if blank {
            push_filled(&mut code, head, if head.starts_with('/') { ' ' } else { literal });
        } else {
            code.push_str(head);
        }
        previous = if blank { ' ' } else { first };
        rest = tail;
    }
    code
}

/// Replaces every item under `#[cfg(test)]` by spaces; expects what `code_only` returned.
pub(crate) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, from_mark) = rest.split_at(start);
        kept.push_str(before);
        let (test, after) = from_mark.split_at(MARK.len() + item_length(&from_mark[MARK.len()..]));
        push_filled(&mut kept, test, ' ');
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Tells whether a character can be part of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn push_filled(code: &mut String, text: &str, fill: char) {
    code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { fill }));
}

/// Returns the length of the comment or literal that `rest` starts with, if it does.
fn literal_length(rest: &str, previous: char) -> Option<usize> {
    match rest.as_bytes() {
        [b'/', b'/', ..] => Some(rest.find('\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(block_comment_length(rest)),
        [b'"', ..] => Some(string_length(rest)),
        [b'\'', ..] => char_length(rest),
        [b'r' | b'b' | b'c', ..] if !is_word(previous) => raw_string_length(rest),
        _ => None,
    }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A quote starts a character only if another one follows behind it; otherwise it is a lifetime.
fn char_length(rest: &str) -> Option<usize> {
    let inner = rest.chars().nth(1)?;
    if inner == '\\' {
        let close = rest.get(3..)?.find('\'')?;
        return Some(3 + close + 1);
    }
    let end = 1 + inner.len_utf8();
    rest[end..].starts_with('\'').then_some(end + 1)
}

/// Handles `r"…"`, `r#"…"#` and the same behind `b` or `c`; a raw identifier such as `r#type` is code.
fn raw_string_length(rest: &str) -> Option<usize> {
    let after_r = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let inner = after_r.trim_start_matches('#');
    let hashes = after_r.len() - inner.len();
    let inner = inner.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let length = inner.find(&close).map_or(inner.len(), |at| at + close.len());
    Some(rest.len() - inner.len() + length)
}

/// Returns the length of one item: up to its closing brace or its semicolon.
fn item_length(code: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth <= 0 && matches!(c, '}' | ';') {
            return at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words that are left, which is easier to read than counted spaces.
    fn words(code: &str) -> Vec<&str> {
        code.split_whitespace().collect()
    }

    #[test]
    fn comments_and_literals_vanish_and_lines_stay() {
        let cases = [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"a "b \" // c" d"#, "a d"),
            (r###"a r#"b " c"# d br"e\" f"###, "a d f"),
            (r"a '\'' b '\\' c 'x' d 'ü' e", "a b c d e"),
            ("r#type 'a b", "r#type 'a b"),
            ("var\"s\"", "var"),
            ("a \"never closed", "a"),
        ];
        for (text, left) in cases {
            assert_eq!(words(&code_only(text)), words(left), "{text}");
        }
        let text = "a\n/* b\nc */ \"d\ne\" f\n";
        assert_eq!(code_only(text).lines().count(), text.lines().count());
        assert_eq!(code_only(text).lines().last().map(str::trim), Some("f"));
    }

    #[test]
    fn strings_stay_where_they_are_without_code_comments_and_tests() {
        let text = "f(\"a ü\"); // \"b\"\ng(r#\"c\nd\"#);\n#[cfg(test)]\nmod tests { const E: &str = \"e\"; }\n\"f\"\n";
        let strings = strings_only(text);
        assert_eq!(words(&strings), ["\"a", "ü\"", "r#\"c", "d\"#", "\"f\""]);
        assert_eq!(strings.lines().position(|line| line.contains("\"f\"")), Some(5));
    }

    #[test]
    fn items_for_tests_vanish_and_the_code_behind_them_stays() {
        let code =
            "a();\n#[cfg(test)]\nmod tests;\nb();\n#[cfg(test)]\nfn t(x: [u8; 4]) { { c(); } }\nd();\n";
        assert_eq!(words(&without_tests(code)), ["a();", "b();", "d();"]);
        assert_eq!(without_tests(code).lines().count(), code.lines().count());
    }
}

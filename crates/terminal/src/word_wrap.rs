//! Lines broken between words, for a width: what was said whole. Words that come one by one are put in rows by `streaming_wrap`. Pure.

use std::fmt::Write;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

/// Returns how many columns a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Breaks a text into lines of at most some columns, each behind an indentation; the first has its own.
/// Words longer than a line, such as paths and commands, are left whole so that they can be copied; only wide characters, which are
/// written without blanks between them, are parted.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut out = first.to_owned();
    let mut used = columns(first);
    let mut fresh = true;
    for word in text.split_whitespace() {
        let mut blank = usize::from(!fresh);
        for piece in pieces(word) {
            let needed = columns(piece) + blank;
            if !fresh && used + needed > width {
                out.push('\n');
                out.push_str(rest);
                used = columns(rest);
            } else if blank > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(piece);
            used += columns(piece);
            (fresh, blank) = (false, 0);
        }
    }
    out
}

/// Returns the parts of a word between which a line may end: each wide character is one, and so is what stands between them.
fn pieces(word: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = vec![0];
    for (at, shown) in word.grapheme_indices(true).filter(|(_, shown)| columns(shown) > 1) {
        ends.extend([at, at + shown.len()]);
    }
    ends.push(word.len());
    ends.dedup();
    ends.windows(2).map(|ends| &word[ends[0]..ends[1]]).collect()
}

/// Breaks lines that are wider than some columns between words, and leaves all others as they are; what goes on is indented two
/// columns further than its line.
pub fn wrap_lines(text: &str, width: usize) -> String {
    text.lines().map(|line| wrap_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut out = String::new();
    let (mut used, mut rest) = (0, line);
    while !rest.is_empty() {
        // A word, with all blanks in front of it: columns that stand below each other stay so.
        let begin = rest.find(|c| c != ' ').unwrap_or(rest.len());
        let end = rest[begin..].find(' ').map_or(rest.len(), |at| begin + at);
        let mut blanks = &rest[..begin];
        // Blanks at a line's end are a piece too.
        let parts = if begin == end { vec![""] } else { pieces(&rest[begin..end]) };
        for piece in parts {
            if used > indent && used + blanks.len() + columns(piece) > width {
                let _ = write!(out, "\n{:1$}", "", indent + 2);
                used = indent + 2;
            } else {
                out.push_str(blanks);
                used += blanks.len();
            }
            out.push_str(piece);
            used += columns(piece);
            blanks = "";
        }
        rest = &rest[end..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_into_lines_behind_an_indentation() {
        assert_eq!(wrap("one two three", 9, "→ ", "  "), "→ one two\n  three");
        assert_eq!(wrap("/a/very/long/path x", 8, "", " "), "/a/very/long/path\n x");
        assert_eq!(wrap("", 8, "  ", ""), "  ");
        assert_eq!(wrap("ab 漢字漢字 x", 8, "", " "), "ab 漢字\n 漢字 x");
    }

    #[test]
    fn only_lines_that_are_too_wide_are_broken_and_never_within_a_word() {
        for (text, width, expected) in [
            ("hint: one two", 13, "hint: one two"),
            ("hint: one two", 12, "hint: one\n  two"),
            // Rows keep their columns.
            ("of these:\n  a     npm i a", 14, "of these:\n  a     npm i\n    a"),
            ("/a/very/long/path x", 8, "/a/very/long/path\n  x"),
            ("  /a/very/long/path", 8, "  /a/very/long/path"),
            ("漢字 漢字 漢字", 9, "漢字 漢字\n  漢字"),
            // Wide characters are written without blanks between them: a row is filled with as many as it has room for.
            ("one 漢字漢字漢字", 9, "one 漢字\n  漢字漢\n  字"),
            ("> 漢字ab漢字", 8, "> 漢字ab\n  漢字"),
            ("漢字 /a/path", 8, "漢字\n  /a/path"),
            ("    漢字漢字", 8, "    漢字\n      漢\n      字"),
            ("", 8, ""),
        ] {
            assert_eq!(wrap_lines(text, width), expected);
        }
    }
}

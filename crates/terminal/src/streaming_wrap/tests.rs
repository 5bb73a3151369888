//! What steps make of a terminal's rows.

use super::*;

/// A terminal of a width, as steps change it: rows, and whether each goes on in the next.
struct Terminal {
    flow: Flow,
    width: usize,
    rows: Vec<String>,
}

impl Terminal {
    fn new(width: usize) -> Terminal {
        Terminal { flow: Flow::default(), width, rows: vec![String::new()] }
    }

    fn push(&mut self, text: &str) -> &mut Terminal {
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.flow.end_line();
                self.rows.push(String::new());
            }
            for step in self.flow.push(line, self.width) {
                match step {
                    Step::Write(text) => text.graphemes(true).for_each(|shown| self.put(shown)),
                    Step::Break => self.rows.push(String::new()),
                    Step::TakeBack(column) => {
                        assert!(column > 0, "a row is never erased from its beginning");
                        let row = self.last();
                        let kept = row.graphemes(true).scan(0, |used, shown| {
                            *used += shown.width();
                            (*used <= column).then_some(shown)
                        });
                        *row = kept.collect();
                    }
                }
            }
            let row = self.flow.row.clone();
            assert_eq!(*self.last(), row);
        }
        self
    }

    fn put(&mut self, shown: &str) {
        if self.last().width() + shown.width() > self.width {
            self.rows.push(String::new());
        }
        self.last().push_str(shown);
    }

    fn last(&mut self) -> &mut String {
        self.rows.last_mut().expect("a row")
    }

    fn rows(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.trim_end()).collect()
    }
}

#[track_caller]
fn check(text: &str, width: usize, rows: &[&str]) {
    let mut whole = Terminal::new(width);
    assert_eq!(whole.push(text).rows(), rows, "at once");
    let mut each = Terminal::new(width);
    for shown in text.graphemes(true) {
        each.push(shown);
    }
    assert_eq!(each.rows(), rows, "character by character");
}

#[test]
fn a_word_that_would_cross_the_edge_begins_the_next_row() {
    check("one two three", 8, &["one two", "three"]);
    check("one two three", 7, &["one two", "three"]);
    check("one two  three", 7, &["one two", "three"]);
    check("one two", 80, &["one two"]);
    check("a bcdef\nghi jkl\n", 5, &["a", "bcdef", "ghi", "jkl", ""]);
    check("one two \nx", 7, &["one two", "x"]);
    // Blanks inside a row stay.
    check("a  b cd", 6, &["a  b", "cd"]);
}

#[test]
fn a_word_longer_than_a_row_is_the_terminal_s_to_wrap() {
    check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
    check("a bcdefghij k", 4, &["a", "bcde", "fghi", "j k"]);
    check("abcd efgh", 4, &["abcd", "efgh"]);
    check("ab", 1, &["a", "b"]);
}

#[test]
fn a_line_may_end_at_any_wide_character() {
    check("漢字漢字", 5, &["漢字", "漢字"]);
    check("ab 漢字漢字", 6, &["ab 漢", "字漢字"]);
    check("a 漢字x yz", 7, &["a 漢字x", "yz"]);
    check("字 one two", 7, &["字 one", "two"]);
}

#[test]
fn what_may_be_copied_stays_as_it_is() {
    check("```\nlet x = 12\n```\nso it is", 7, &["```", "let x =", " 12", "```", "so it", "is"]);
    check("```rust code\nlet x = 12", 7, &["```rust", " code", "let x =", " 12"]);
    check("    let x = 1", 9, &["    let x", " = 1"]);
    check("\tx yz", 10, &["        x", "yz"]);
    check("| ab | cd |", 6, &["| ab |", " cd |"]);
    // Blanks in front of a fence, and one that ends in its own line.
    check("  ```\na bcd ef", 6, &["  ```", "a bcd", "ef"]);
    check("```x``` is it\nand so", 6, &["```x``", "` is", "it", "and so"]);
}

#[test]
fn another_width_breaks_what_comes_and_leaves_what_was_broken() {
    let mut terminal = Terminal::new(10);
    terminal.push("one two thr");
    assert_eq!(terminal.rows(), ["one two", "thr"]);
    terminal.width = 20;
    terminal.push("ee four five six");
    assert_eq!(terminal.rows(), ["one two", "three four five six"]);
    // The terminal wraps what stands there in its own way.
    terminal.flow.resize(8);
    assert_eq!((terminal.flow.row.as_str(), terminal.flow.way_back()), ("six", (3, "")));
    terminal.rows = vec!["three fo".into(), "ur five".into(), "six".into()];
    terminal.width = 8;
    terminal.push(" seven");
    assert_eq!(terminal.rows(), ["three fo", "ur five", "six", "seven"]);
}

#[test]
fn what_stands_in_between_leaves_the_row_free() {
    let mut terminal = Terminal::new(8);
    terminal.push("one two");
    terminal.flow.interrupt();
    terminal.rows.push(String::new());
    terminal.push("three four");
    assert_eq!(terminal.rows(), ["one two", "three", "four"]);
    let mut flow = Flow::default();
    assert_eq!(flow.push("one tw", 6), [Step::Write("one tw".into())]);
    let back = [Step::TakeBack(4), Step::Break, Step::Write("two".into())];
    assert_eq!(flow.push("o", 6), back);
    assert_eq!(flow.push("abc def", 6).last(), Some(&Step::Write("def".into())));
}

#[test]
fn the_way_back_writes_again_only_what_it_must() {
    for (text, back) in [
        ("", (0, "")),
        ("one", (3, "")),
        ("one tw", (5, "w")),
        // A row that is one column short of full, because the next character needs two.
        ("a漢字", (5, "")),
        ("漢字漢", (4, "漢")),
        // Terminals differ in how many columns these take.
        ("👨‍👩‍👧 x", (0, "👨‍👩‍👧 x")),
        ("e\u{301}x", (0, "e\u{301}x")),
    ] {
        let mut flow = Flow::default();
        flow.push(text, 6);
        assert_eq!(flow.way_back(), back, "{text}");
    }
}

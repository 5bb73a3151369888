//! What stands on a screen after all that was written to it.

use rekindle_terminal::output::GOOD;
use rekindle_testkit::screen::Screen;

use super::*;

struct Seen {
    painter: Painter<Vec<u8>>,
    screen: Screen,
}

impl Seen {
    fn new(columns: usize, rows: usize) -> Seen {
        Seen { painter: Painter::new(Vec::new(), true, columns), screen: Screen::new(columns, rows) }
    }

    fn draw(&mut self, rows: &[&str]) {
        let row = |text: &&str| vec![(PLAIN, (*text).to_owned())];
        let last = rows.last().map_or(0, |row| columns(row));
        let panel = Panel { rows: rows.iter().map(row).collect(), cursor: (rows.len() - 1, last) };
        self.painter.draw(&panel).expect("memory");
        self.screen.write(&std::mem::take(&mut self.painter.out));
    }

    fn words(&mut self, text: &str) {
        self.painter.show(&Piece::Answer(text.into()));
    }

    fn line(&mut self, text: &str) {
        self.painter.show(&Piece::Line((GOOD, text.into())));
    }

    fn tool(&mut self, text: &str) {
        self.painter.show(&Piece::Tool("t".into(), (PLAIN, text.into())));
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.screen.resize(columns, rows);
        self.painter.resize(columns);
    }

    /// Every word stands there once and whole, in this order, and so does the panel.
    #[track_caller]
    fn has_words(&self, words: &str, panel: &[&str]) {
        let text = self.screen.text();
        let seen: Vec<&str> = text.split_whitespace().collect();
        let expected: Vec<&str> = words.split_whitespace().chain(panel.iter().copied()).collect();
        assert_eq!(seen, expected, "{text}");
    }

    #[track_caller]
    fn is(&self, lines: &[&str]) {
        assert_eq!(self.screen.text().lines().collect::<Vec<_>>(), lines);
    }
}

#[test]
fn words_go_on_where_they_were_and_the_panel_stays_below() {
    let mut seen = Seen::new(10, 6);
    seen.draw(&["status", "> a"]);
    seen.words("one");
    seen.draw(&["status", "> ab"]);
    seen.words(" two three");
    seen.draw(&["> ab"]);
    seen.is(&["one two", "three", "> ab"]);
    assert_eq!(seen.screen.cursor(), (2, 4));
    seen.words("\nfour\n");
    seen.draw(&["status", "> ab"]);
    seen.line("news");
    seen.words("five");
    seen.painter.finish().expect("memory");
    seen.screen.write(&std::mem::take(&mut seen.painter.out));
    seen.is(&["one two", "three", "four", "news", "five"]);
}

#[test]
fn a_row_that_is_just_full_is_gone_on_from() {
    let mut seen = Seen::new(5, 6);
    for (text, shown) in
        [("12345", "12345"), ("6", "123456"), ("漢漢字", "123456漢漢字"), ("x", "123456漢漢字x")]
    {
        seen.words(text);
        seen.draw(&[">"]);
        seen.is(&[shown, ">"]);
    }
}

#[test]
fn nothing_is_lost_when_it_leaves_the_screen() {
    let mut seen = Seen::new(8, 4);
    let mut expected = String::new();
    for number in 0..60 {
        let text = format!("w{number} ");
        expected += &text;
        seen.words(&text);
        seen.draw(&["status", "> ab"]);
    }
    seen.has_words(&expected, &["status", ">", "ab"]);
    // A break is the terminal's only where a word is longer than a row.
    assert!(seen.screen.text().lines().all(|line| columns(line) <= 8), "{}", seen.screen.text());
}

#[test]
fn a_word_that_would_cross_the_edge_begins_the_next_row_although_some_of_it_is_written() {
    let mut seen = Seen::new(12, 12);
    for words in ["the wor", "d cro", "ss", "es the ed", "ge; 漢字 a", "bc wide", " ", "row"] {
        seen.words(words);
        seen.draw(&["status", "> ab"]);
    }
    let rows = ["the word", "crosses the", "edge; 漢字", "abc wide row"];
    assert_eq!(seen.screen.rows(), [&rows[..], &["status", "> ab"]].concat());
    seen.words(" more\n");
    seen.draw(&[">"]);
    assert_eq!(seen.screen.rows(), [&rows[..], &["more", ">"]].concat());
}

#[test]
fn code_is_left_to_the_terminal_so_that_it_can_be_copied_whole() {
    let mut seen = Seen::new(12, 12);
    let code = "```sh\ncargo nextest run --workspace\n```\n    cargo fmt --all\nand words again";
    for words in code.split_inclusive(' ') {
        seen.words(words);
        seen.draw(&[">"]);
    }
    let lines =
        ["```sh", "cargo nextest run --workspace", "```", "    cargo fmt --all", "and words", "again", ">"];
    seen.is(&lines);
}

/// What was broken stays so, what the terminal wrapped is wrapped anew, and no word is lost or stands there twice.
#[test]
fn words_stay_whole_when_the_window_gets_another_size_while_they_come() {
    for widths in [[30, 18, 30], [24, 60, 21], [40, 19, 80]] {
        let mut seen = Seen::new(widths[0], 30);
        let mut expected = String::new();
        for number in 0..60 {
            let (word, rest) = (format!("word{number}"), if number % 9 == 0 { " 漢字漢字 " } else { " " });
            expected += &format!("{word}{rest}");
            // A word in two pieces, and the window changes between them.
            let (one, other) = word.split_at(3);
            seen.words(one);
            seen.draw(&["status", "> ab"]);
            if number == 20 || number == 40 {
                seen.resize(widths[number / 20], 30);
            }
            seen.words(other);
            seen.words(rest);
            seen.draw(&["status", "> ab"]);
        }
        seen.has_words(&expected, &["status", ">", "ab"]);
    }
}

#[test]
fn a_tool_s_line_is_written_over_with_all_its_rows() {
    let mut seen = Seen::new(10, 8);
    seen.tool("a tool with a long title");
    seen.draw(&[">"]);
    seen.tool("done");
    seen.draw(&[">"]);
    seen.is(&["done", ">"]);
    seen.line("news");
    seen.tool("again");
    seen.draw(&[">"]);
    seen.is(&["done", "news", "again", ">"]);
}

#[test]
fn a_window_of_another_size_keeps_every_line_and_one_panel() {
    let mut seen = Seen::new(20, 8);
    seen.line("a line that is told");
    seen.words("words that go on and on and");
    seen.draw(&["the status is long", "> what is typed"]);
    for (columns, rows) in [(10, 8), (7, 8), (30, 8), (4, 12), (20, 5)] {
        seen.resize(columns, rows);
        seen.words(" on");
        seen.draw(&["st", ">"]);
        let text = seen.screen.text();
        assert_eq!(text.matches("st\n").count(), 1, "{columns}: {text}");
        assert_eq!(text.matches('>').count(), 1, "{columns}: {text}");
    }
    seen.has_words("a line that is told words that go on and on and on on on on on", &["st", ">"]);
}

/// Whoever writes the row again erases nothing from its beginning: the rows of the line stay one, and are wrapped anew together.
#[test]
fn a_line_that_goes_on_in_many_rows_is_whole_in_a_window_of_another_size() {
    let mut seen = Seen::new(20, 24);
    let mut expected = String::new();
    for number in 0..40 {
        let text = format!("w{number} ");
        expected += &text;
        seen.words(&text);
        seen.draw(&["status", "> ab"]);
        match number {
            15 => seen.resize(14, 24),
            25 => seen.resize(30, 24),
            _ => {}
        }
    }
    seen.has_words(&expected, &["status", ">", "ab"]);
}

#[test]
fn lines_are_broken_between_words_and_go_on_indented() {
    let mut seen = Seen::new(20, 12);
    seen.line("    $ echo deployed to the staging server");
    seen.tool("a tool with a title of many words");
    seen.draw(&[">"]);
    seen.tool("done");
    seen.draw(&[">"]);
    seen.is(&["    $ echo deployed", "      to the staging", "      server", "done", ">"]);
}

/// It may be copied whole; what others say of one is broken like everything else.
#[test]
fn a_command_of_ours_stays_one_line() {
    let mut seen = Seen::new(20, 12);
    for line in [
        "left. Come back with:",
        "rekindle attach sess_1",
        "  $ rekindle run tests > log",
        "> rekindle run all tests",
    ] {
        seen.line(line);
    }
    seen.draw(&[">"]);
    let said = ["  $ rekindle run", "    tests > log", "> rekindle run all", "  tests", ">"];
    seen.is(&[&["left. Come back", "  with:", "rekindle attach sess_1"][..], &said].concat());
}

#[test]
fn without_colours_there_are_none() {
    let mut painter = Painter::new(Vec::new(), false, 20);
    painter.show(&Piece::Line((GOOD, "a \x1b[1mtable\x1b[0m".into())));
    painter.draw(&Panel { rows: vec![vec![(GOOD, "> ".into())]], cursor: (0, 2) }).expect("memory");
    let text = String::from_utf8(painter.out).expect("text");
    assert_eq!(text, "a table\r\n> \x1b[K\x1b[J\r\x1b[2C");
}

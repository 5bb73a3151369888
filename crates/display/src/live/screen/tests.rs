//! What is written to stdout and stderr, and what stands on a terminal that is both.

use rekindle_testkit::screen::Screen as Terminal;

use super::*;

fn shown(out_is_terminal: bool, pieces: &[Piece]) -> (String, String) {
    let mut screen = Screen::new(Vec::new(), Vec::new(), out_is_terminal, || Some(20));
    for piece in pieces {
        screen.show(piece).expect("memory");
    }
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(screen.out), text(screen.err))
}

fn pieces() -> Vec<Piece> {
    let line = |text: &str| (PLAIN, text.to_owned());
    vec![
        Piece::Answer("one".into()),
        Piece::Line(line("news")),
        Piece::Answer(" two".into()),
        Piece::AnswerEnd,
        Piece::Tool("t".into(), line("▸ x")),
        Piece::Tool("t".into(), line("✓ x")),
        Piece::Answer("three\n".into()),
        Piece::AnswerEnd,
    ]
}

#[test]
fn the_answer_is_exact_and_the_rest_apart() {
    let (out, err) = shown(false, &pieces());
    assert_eq!(out, "one two\nthree\n");
    assert_eq!(err, "news\n▸ x\n\x1b[1A\r\x1b[2K✓ x\n");
}

#[test]
fn on_a_terminal_lines_do_not_run_into_each_other() {
    let (out, err) = shown(true, &pieces());
    assert_eq!(out, "one two\nthree\n");
    assert_eq!(err, "\nnews\n▸ x\n\x1b[1A\r\x1b[2K✓ x\n");
}

/// Writes pieces of an answer to a terminal, whose width may change in between; returns its rows.
fn seen(pieces: &[(&str, usize)]) -> Vec<String> {
    thread_local!(static WIDTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
    let width: fn() -> Option<usize> = || Some(WIDTH.get());
    let mut screen = Screen::new(Vec::new(), Vec::new(), true, width);
    (screen.answer_width, screen.thought_width) = (Some(width), Some(width));
    let mut terminal = Terminal::new(pieces[0].1, 24);
    for (text, columns) in pieces {
        if WIDTH.replace(*columns) != *columns {
            terminal.resize(*columns, 24);
        }
        let piece = match text.strip_prefix("thinks: ") {
            Some(thought) => Piece::Thought(thought.into()),
            None => Piece::Answer((*text).into()),
        };
        screen.show(&piece).expect("memory");
        // What is not the answer goes to the same terminal.
        for bytes in [std::mem::take(&mut screen.err), std::mem::take(&mut screen.out)] {
            terminal.write(String::from_utf8(bytes).expect("text").replace('\n', "\r\n").as_bytes());
        }
    }
    terminal.rows()
}

#[test]
fn words_stay_whole_at_the_edge_of_a_terminal() {
    let pieces = [
        ("the wor", 12),
        ("d crosses the ed", 12),
        ("ge; 漢字 abc", 12),
        (" wide\n```\na b c d e f g h", 12),
    ];
    let lines = ["the word", "crosses the", "edge; 漢字", "abc wide", "```", "a b c d e f", "g h"];
    assert_eq!(seen(&pieces), lines);
    let thought = [("thinks: about the ed", 12), ("thinks: ge of it", 12), ("so it is", 12)];
    assert_eq!(seen(&thought), ["about the", "edge of it", "so it is"]);
    // The window gets smaller, then larger, in the middle of words.
    let resized = [("one two three fo", 20), ("ur five six sev", 10), ("en eight nine ten", 30)];
    let rows = ["one two three four", "five six", "seven eight nine ten"];
    assert_eq!(seen(&resized), rows);
}

#[test]
fn what_is_taken_back_is_taken_back_with_all_its_rows() {
    let mut screen = Screen::new(Vec::new(), Vec::new(), true, || Some(20));
    let line = |text: &str| Piece::Tool("t".into(), (PLAIN, text.to_owned()));
    let (long, whole) = ("▸ a title of two rows", "▸ a title of one row");
    let wrapped = "▸ a title of two\n  rows";
    screen.show(&line(long)).expect("memory");
    screen.show(&line(whole)).expect("memory");
    screen.show(&line("✓")).expect("memory");
    screen.prompt("a question that has more rows than two").expect("memory");
    screen.line(&(PLAIN, "x".into())).expect("memory");
    let err = String::from_utf8(screen.err).expect("text");
    let styled = styled(WARN, "a question that has\n  more rows than two");
    let clear = "\r\x1b[1A\x1b[J";
    let clear_of = |written: &str| super::clear(written, 20);
    assert_eq!(err, format!("{wrapped}\n\x1b[1A{clear}{whole}\n\x1b[1A\r\x1b[2K✓\n{styled}{clear}x\n"));
    let of = |columns| clear_of(&"x".repeat(columns));
    assert_eq!((of(160).is_some(), of(161)), (true, None));
}

/// Writes lines to a terminal of a width, or to none; returns what was written.
fn lines(width: fn() -> Option<usize>, pieces: &[Piece]) -> String {
    let mut screen = Screen::new(Vec::new(), Vec::new(), false, width);
    for piece in pieces {
        screen.show(piece).expect("memory");
    }
    let hint = "left; the agent keeps working. Come back with: rekindle attach 01khz0p6r8";
    screen.hint(&(PLAIN, hint.into())).expect("memory");
    String::from_utf8(screen.err).expect("text")
}

#[test]
fn lines_are_broken_between_words_and_go_on_indented_where_a_person_sees_them() {
    let line = |text: &str| Piece::Line((PLAIN, text.to_owned()));
    let pieces = [
        line("> a prompt of many words"),
        line("  $ echo deployed to the staging server"),
        Piece::Tool("t".into(), (PLAIN, "▸ a title of many words".into())),
        Piece::Tool("t".into(), (PLAIN, "✓ a title of many words".into())),
    ];
    let expected = "> a prompt of many\n  words\n  $ echo deployed to\n    the staging\n    server\n\
        ▸ a title of many\n  words\n\x1b[1A\r\x1b[1A\x1b[J✓ a title of many\n  words\n\
        left; the agent\n  keeps working.\n  Come back with:\nrekindle attach 01khz0p6r8\n";
    assert_eq!(lines(|| Some(20), &pieces), expected);
    let whole = "> a prompt of many words\n  $ echo deployed to the staging server\n\
        ▸ a title of many words\n✓ a title of many words\n\
        left; the agent keeps working. Come back with: rekindle attach 01khz0p6r8\n";
    assert_eq!(lines(|| None, &pieces), whole);
}

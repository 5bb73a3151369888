//! The text that is being typed, and the place in it: what keys do to it. Pure.

use unicode_segmentation::UnicodeSegmentation;

/// Longest text that can be typed or pasted: more than any prompt, and what a redrawn line can bear.
const MAX_TEXT: usize = 1 << 20;

/// Text, with a cursor in it.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// The byte in front of which is typed; never within what a person sees as one character.
    cursor: usize,
    /// What was cut last.
    cut: String,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Puts a text in the place of all that is there.
    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Takes the text away.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts a text in front of the cursor; tells whether there was room for it.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        let fits = self.text.len() + text.len() <= MAX_TEXT;
        if fits {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
            // What was typed may belong to what follows, as an accent does.
            self.cursor = self.boundary_from(self.cursor);
        }
        fits
    }

    /// Returns the first place between two characters from a byte on.
    fn boundary_from(&self, byte: usize) -> usize {
        let starts = self.text.grapheme_indices(true).map(|(at, _)| at);
        starts.chain([self.text.len()]).find(|at| *at >= byte).unwrap_or(self.text.len())
    }

    fn before(&self) -> usize {
        let before = self.text[..self.cursor].grapheme_indices(true).next_back();
        before.map_or(0, |(at, _)| at)
    }

    fn behind(&self) -> usize {
        self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_behind(&self) -> usize {
        let word = self.text[self.cursor..].unicode_word_indices().next();
        word.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.before();
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.behind();
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_before();
    }

    pub(crate) fn word_right(&mut self) {
        self.cursor = self.word_behind();
    }

    pub(crate) fn home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn end(&mut self) {
        self.cursor = self.line_end();
    }

    /// Goes to the line above; tells whether there is one.
    pub(crate) fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(end) = start.checked_sub(1) else { return false };
        let column = self.text[start..self.cursor].graphemes(true).count();
        let above = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.in_line(above, end, column);
        true
    }

    /// Goes to the line below; tells whether there is one.
    pub(crate) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
        let below = self.text[end + 1..].find('\n').map_or(self.text.len(), |at| end + 1 + at);
        self.cursor = self.in_line(end + 1, below, column);
        true
    }

    fn in_line(&self, start: usize, end: usize, column: usize) -> usize {
        let at = self.text[start..end].grapheme_indices(true).nth(column);
        at.map_or(end, |(at, _)| start + at)
    }

    /// Removes from one place to another, and goes there.
    fn remove(&mut self, from: usize, to: usize) -> String {
        self.cursor = from;
        let removed = self.text.drain(from..to).collect();
        // What was apart may belong together now.
        self.cursor = self.boundary_from(self.cursor);
        removed
    }

    pub(crate) fn backspace(&mut self) {
        self.remove(self.before(), self.cursor);
    }

    pub(crate) fn delete(&mut self) {
        self.remove(self.cursor, self.behind());
    }

    fn cut_out(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.remove(from, to);
        }
    }

    /// Cuts the rest of the line, or its end if nothing else is left of it.
    pub(crate) fn cut_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.cursor { self.behind() } else { end };
        self.cut_out(self.cursor, end);
    }

    pub(crate) fn cut_to_start(&mut self) {
        self.cut_out(self.line_start(), self.cursor);
    }

    /// Cuts the word before the cursor, as shells do: up to the blank in front of it.
    pub(crate) fn cut_word(&mut self) {
        let before = self.text[..self.cursor].trim_end();
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        self.cut_out(start, self.cursor);
    }

    pub(crate) fn cut_word_behind(&mut self) {
        self.cut_out(self.cursor, self.word_behind());
    }

    /// Puts in what was cut last.
    pub(crate) fn paste_cut(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text with `|` where the cursor is.
    fn editor(text: &str) -> Editor {
        let cursor = text.find('|').expect("a cursor");
        Editor { text: text.replacen('|', "", 1), cursor, cut: String::new() }
    }

    fn shown(editor: &Editor) -> String {
        let mut text = editor.text.clone();
        text.insert(editor.cursor, '|');
        text
    }

    #[test]
    fn keys_move_and_change_what_people_see_as_characters_words_and_lines() {
        type Step = fn(&mut Editor);
        let up: Step = |editor| {
            editor.up();
        };
        let down: Step = |editor| {
            editor.down();
        };
        let cases: &[(&str, Step, &str)] = &[
            ("ab|c", Editor::left, "a|bc"),
            ("|a", Editor::left, "|a"),
            ("a|", Editor::right, "a|"),
            // A family is one, a flag is one, an accent belongs to its letter.
            ("a👨‍👩‍👧|", Editor::left, "a|👨‍👩‍👧"),
            ("|🇩🇪x", Editor::right, "🇩🇪|x"),
            ("e\u{301}|", Editor::backspace, "|"),
            ("|漢字", Editor::delete, "|字"),
            ("a|", Editor::delete, "a|"),
            ("one two|", Editor::word_left, "one |two"),
            ("one| two three", Editor::word_right, "one two| three"),
            ("one|", Editor::word_right, "one|"),
            ("a\nbc|d\ne", Editor::home, "a\n|bcd\ne"),
            ("a\n|bcd\ne", Editor::end, "a\nbcd|\ne"),
            ("abc\nde|", up, "ab|c\nde"),
            ("a\ndef|", up, "a|\ndef"),
            ("ab|c", up, "ab|c"),
            ("ab|c\nd", down, "abc\nd|"),
            ("abc|", down, "abc|"),
            ("a b|cd\ne", Editor::cut_to_end, "a b|\ne"),
            ("ab|\ne", Editor::cut_to_end, "ab|e"),
            ("x\nab|c", Editor::cut_to_start, "x\n|c"),
            ("cd /tmp/a-b  |", Editor::cut_word, "cd |"),
            ("|x", Editor::cut_word, "|x"),
            ("a | b c", Editor::cut_word_behind, "a | c"),
        ];
        for (before, step, after) in cases {
            let mut editor = editor(before);
            step(&mut editor);
            assert_eq!(shown(&editor), *after, "{before}");
        }
    }

    #[test]
    fn what_is_cut_can_be_put_back_and_nothing_cut_loses_nothing() {
        let mut editor = editor("one two|");
        editor.cut_word();
        editor.cut_to_end();
        editor.home();
        editor.paste_cut();
        assert_eq!(shown(&editor), "two|one ");
        assert_eq!(editor.take(), "twoone ");
        assert!(editor.is_empty() && editor.cursor() == 0);
    }

    #[test]
    fn a_text_is_typed_where_the_cursor_is_and_has_an_end() {
        let mut editor = editor("a|b");
        assert!(editor.insert("x\ny"));
        assert_eq!(shown(&editor), "ax\ny|b");
        assert!(!editor.insert(&"z".repeat(MAX_TEXT)), "there is no room for it");
        assert_eq!(shown(&editor), "ax\ny|b");
        editor.set("new");
        assert_eq!(shown(&editor), "new|");
    }
}

//! Where text stands in columns: rows of a width, and the place of the cursor in them. Pure.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns of a tab in what is typed.
const TYPED_TAB: &str = "    ";

/// Text in rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Laid {
    pub(crate) rows: Vec<String>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
}

/// Lays out what is typed in rows of a width; the cursor stands in front of a byte.
pub(crate) fn lay_out(text: &str, cursor: usize, width: usize) -> Laid {
    let mut rows = vec![String::new()];
    let (mut used, mut place) = (0, None);
    for (at, shown) in text.grapheme_indices(true) {
        let is_end = matches!(shown, "\n" | "\r\n");
        let shown = if shown == "\t" { TYPED_TAB } else { shown };
        let columns = if is_end { 0 } else { shown.width() };
        // The cursor stands where the next character will.
        if used + columns.max(1) > width && !is_end {
            rows.push(String::new());
            used = 0;
        }
        if at == cursor {
            place = Some((rows.len() - 1, used));
        }
        if is_end {
            rows.push(String::new());
            used = 0;
        } else {
            rows.last_mut().expect("a row").push_str(shown);
            used += columns;
        }
    }
    let cursor = place.unwrap_or_else(|| {
        if used >= width {
            rows.push(String::new());
            used = 0;
        }
        (rows.len() - 1, used)
    });
    Laid { rows, cursor }
}

/// Returns how many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns how many rows so many columns take.
pub(crate) fn rows(columns: usize, width: usize) -> usize {
    columns.div_ceil(width.max(1)).max(1)
}

/// Returns the first line of a text, cut to some columns.
pub(crate) fn gist(text: &str, width: usize) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim().replace('\t', " ");
    let whole = if lines.next().is_some() { format!("{first} …") } else { first };
    rekindle_terminal::output::cut(&whole, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_laid_out_with_its_cursor() {
        for (text, cursor, width, rows, place) in [
            ("", 0, 10, &[""][..], (0, 0)),
            ("abc", 1, 10, &["abc"], (0, 1)),
            ("abc", 3, 10, &["abc"], (0, 3)),
            // A full row: the cursor stands on the next.
            ("abc", 3, 3, &["abc", ""], (1, 0)),
            ("abcd", 3, 3, &["abc", "d"], (1, 0)),
            ("a\nb", 1, 10, &["a", "b"], (0, 1)),
            ("a\nb", 2, 10, &["a", "b"], (1, 0)),
            ("abc\nd", 3, 3, &["abc", "d"], (0, 3)),
            ("a\n", 2, 10, &["a", ""], (1, 0)),
            // A wide character that does not fit any more goes to the next row whole.
            ("漢字漢", 9, 5, &["漢字", "漢"], (1, 2)),
            ("a漢字", 4, 5, &["a漢字"], (0, 3)),
            ("👨‍👩‍👧x", 18, 10, &["👨‍👩‍👧x"], (0, 2)),
            ("\tx", 1, 10, &["    x"], (0, 4)),
        ] {
            let expected = rows.iter().map(|row| (*row).to_owned()).collect();
            let laid = lay_out(text, cursor, width);
            assert_eq!(laid, Laid { rows: expected, cursor: place }, "{text:?} at {cursor} in {width}");
        }
    }

    #[test]
    fn columns_take_rows() {
        assert_eq!((rows(0, 5), rows(5, 5), rows(6, 5), rows(6, 0)), (1, 1, 2, 6));
    }

    #[test]
    fn a_gist_is_one_line() {
        assert_eq!((gist("\n a\tb \n", 10).as_str(), gist("a\nb", 10).as_str()), ("a b", "a …"));
        assert_eq!(gist("abcdef", 4), "abc…");
    }
}

//! What a terminal shows for what is written to it: as much of one as our output needs. What was there before another
//! screen was drawn on comes back with the first one.

/// One row, and whether the next one goes on with the same line.
#[derive(Default, Clone)]
struct Row {
    cells: Vec<char>,
    wrapped: bool,
}

/// Returns every line that a terminal with so many columns shows, those above its upper edge included.
pub(crate) fn screen(output: &str, columns: usize) -> String {
    let mut rows = vec![Row::default()];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut behind = None;
    let mut chars = output.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x07' => {}
            '\x08' => column = column.saturating_sub(1),
            '\x1b' => {
                // The rest of one that ends here comes with what is read next.
                let Some(next) = chars.next() else { break };
                assert_eq!(next, '[', "an escape that nobody knows");
                let mut number = String::new();
                let end = chars.by_ref().find(|c| {
                    let is_end = c.is_ascii_alphabetic();
                    number.extend((!is_end).then_some(*c));
                    is_end
                });
                match (end, number.as_str()) {
                    (None, _) => break,
                    (Some('m'), _) => {}
                    (Some('A'), count) => row = row.saturating_sub(count.parse().unwrap_or(1)),
                    (Some('H'), "") => (row, column) = (0, 0),
                    (Some('K'), "") => rows[row].cells.truncate(column),
                    (Some('K'), "2") => rows[row] = Row::default(),
                    (Some('h' | 'l'), "?25") => {}
                    (Some('h'), "?1049") => {
                        behind = Some((std::mem::replace(&mut rows, vec![Row::default()]), row, column));
                    }
                    (Some('l'), "?1049") => {
                        (rows, row, column) = behind.take().expect("another screen");
                    }
                    (Some('J'), "" | "0") => {
                        rows.truncate(row + 1);
                        rows[row].cells.truncate(column);
                        rows[row].wrapped = false;
                    }
                    other => panic!("an escape that nobody knows: {other:?}"),
                }
            }
            c => {
                // The last column is left only for another character.
                if column == columns {
                    rows[row].wrapped = true;
                    (row, column) = (row + 1, 0);
                }
                if row == rows.len() {
                    rows.push(Row::default());
                }
                let cells = &mut rows[row].cells;
                cells.resize(cells.len().max(column + 1), ' ');
                cells[column] = c;
                column += 1;
            }
        }
        while row >= rows.len() {
            rows.push(Row::default());
        }
    }
    let mut text = String::new();
    for row in &rows {
        text.extend(&row.cells);
        if !row.wrapped {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
    }
    text
}

#[test]
fn lines_are_wrapped_overwritten_and_cleared() {
    assert_eq!(screen("one\r\ntwo\rT", 80), "one\nTwo\n");
    assert_eq!(screen("abcde", 3), "abcde\n");
    assert_eq!(screen("abcde\r\x1b[2K", 3), "abc\n", "only the last row is cleared");
    assert_eq!(screen("x\r\nabcde\x1b[1A\r\x1b[J!", 3), "x\n!\n");
    assert_eq!(screen("one\r\n\x1b[?1049h\x1b[Habc\x1b[Hx\x1b[K\x1b[J", 80), "x\n", "another screen");
    assert_eq!(screen("one\r\n\x1b[?1049h\x1b[Habc\x1b[?1049ltwo", 80), "one\ntwo\n", "and back");
    for half in ["", "[", "[?", "[?104"] {
        assert_eq!(screen(&format!("one\x1b{half}"), 80), "one\n", "the rest is not there yet");
    }
    assert_eq!(screen("\x1b[1;31mred\x1b[0m\r\n\x1b[1A\x1b[2Kx", 80), "x\n\n");
}

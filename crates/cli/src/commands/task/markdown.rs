//! Lists of things to do in Markdown: items with an empty box, each with what is indented below it.

/// Returns the text of every item that is not checked, in order. Lines below an item that are indented deeper belong to it, up to the
/// next item.
pub(super) fn unchecked_items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    // The indentation of the item that we are in, if it is open.
    let mut within: Option<usize> = None;
    let mut in_code = false;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_inside = within.is_some_and(|item| indent > item);
        if !in_code && let Some((is_open, words)) = item(line.trim_start()) {
            within = is_open.then_some(indent);
            if is_open {
                items.push(words.trim().to_owned());
            }
            continue;
        }
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        match (within, items.last_mut()) {
            (Some(item), Some(last)) if is_inside || line.trim().is_empty() => {
                last.push('\n');
                last.push_str(unindent(line, item + 2));
            }
            _ => within = None,
        }
    }
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// Reads a line as an item of a list with a box: whether the box is empty, and what stands behind it.
fn item(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix(['-', '*', '+'])?.strip_prefix(' ')?.trim_start();
    let rest = rest.strip_prefix('[')?;
    let (mark, words) = rest.split_once(']')?;
    match mark {
        " " | "" => Some((true, words)),
        "x" | "X" => Some((false, words)),
        _ => None,
    }
}

/// Takes away as much indentation as an item's text has.
fn unindent(line: &str, most: usize) -> &str {
    let indent = line.len() - line.trim_start_matches(' ').len();
    &line[indent.min(most)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_open_item_is_one_with_what_is_below_it() {
        let text = "\
# Plan

Some words.
- [ ] first
  with more

  and a list:
  - a
    ```
    - [ ] no item
    ```
- [x] done
  not this
* [ ]   second
+ [] third
  - [ ] nested
- not a task
  nor this
- [?] neither
";
        let first = "first\nwith more\n\nand a list:\n- a\n  ```\n  - [ ] no item\n  ```";
        assert_eq!(unchecked_items(text), [first, "second", "third", "nested"]);
    }

    #[test]
    fn a_text_without_items_has_none() {
        for text in ["", "words", "- item", "- [ ]", "- [ ] \n"] {
            assert!(unchecked_items(text).is_empty(), "{text:?}");
        }
    }
}

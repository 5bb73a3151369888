//! The name that somebody meant who mistyped another one. Pure.

/// Returns the candidate that a word is nearest to, if one is near: at most one edit for each three letters of the longer word.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |candidate: &'a str| {
        let longer = word.chars().count().max(candidate.chars().count());
        let edits = edits(word, candidate);
        (edits <= longer.div_ceil(3)).then_some((edits, candidate))
    };
    candidates.into_iter().filter_map(near).min().map(|(_, candidate)| candidate)
}

/// Returns how many edits lead from one word to another: a letter added, removed or replaced, or two neighbours swapped.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut now = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut least = replaced.min(last[column + 1] + 1).min(now[column] + 1);
            if row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other {
                least = least.min(before_last[column - 1] + 1);
            }
            now.push(least);
        }
        before_last = std::mem::replace(&mut last, now);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("limit", "limit", 0),
            ("limits", "limit", 1),
            ("limt", "limit", 1),
            ("lmiit", "limit", 1),
            ("keep", "path", 4),
            ("ümit", "limit", 2),
        ] {
            assert_eq!((edits(from, to), edits(to, from)), (count, count), "{from} {to}");
        }
    }

    #[test]
    fn what_was_meant_is_near_and_nothing_else_is() {
        let names = ["keep_days", "max_bytes", "mode", "limit"];
        for (word, meant) in [
            ("keep_day", Some("keep_days")),
            ("keepdays", Some("keep_days")),
            ("max_size", None),
            ("maxbytes", Some("max_bytes")),
            ("limits", Some("limit")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
    }
}

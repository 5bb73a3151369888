//! What a page shows below a command, compared with what the command said. `…` stands for anything: in a line for any part of it, as
//! a line for any lines. How many blanks stand between words does not count, nor do blank ends.

/// Stands for anything.
const ANY: char = '…';

/// Compares what is shown with what was said.
pub fn matches_shown<'a>(shown: impl IntoIterator<Item = &'a str>, said: &str) -> bool {
    let shown: Vec<String> = shown.into_iter().map(squeezed).collect();
    let said: Vec<String> = said.trim_end().lines().map(squeezed).collect();
    let is_any = |line: &String| line.chars().eq([ANY]);
    matches(&shown, &said, &is_any, &|shown: &String, said: &String| line_matches(shown, said))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_matches(shown: &str, said: &str) -> bool {
    let letters = |line: &str| line.chars().collect::<Vec<char>>();
    matches(&letters(shown), &letters(said), &|c| *c == ANY, &|shown, said| shown == said)
}

/// Tells whether things match a pattern in which some stand for any number of things.
fn matches<T>(
    pattern: &[T],
    things: &[T],
    is_any: &impl Fn(&T) -> bool,
    same: &impl Fn(&T, &T) -> bool,
) -> bool {
    // Which beginnings of the things the beginning of the pattern matches.
    let mut fits = vec![false; things.len() + 1];
    fits[0] = true;
    for part in pattern {
        if is_any(part) {
            let first = fits.iter().position(|fits| *fits).unwrap_or(fits.len());
            fits.iter_mut().skip(first).for_each(|fits| *fits = true);
            continue;
        }
        for end in (1..fits.len()).rev() {
            fits[end] = fits[end - 1] && same(part, &things[end - 1]);
        }
        fits[0] = false;
    }
    fits.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_stand_for_anything_and_everything_else_for_itself() {
        let check = |shown: &str, said: &str| matches_shown(shown.lines(), said);
        for (shown, said) in [
            ("", ""),
            ("a b", "a    b  \n\n"),
            ("…", ""),
            ("…", "x\ny\n"),
            ("a\n…", "a\n"),
            ("a\n…\nz", "a\nb\nc\nz\n"),
            ("run … ended in …", "run r_1 ended in 3s"),
            ("…s ago", "3s ago"),
            ("a…", "a"),
        ] {
            assert!(check(shown, said), "{shown:?} {said:?}");
        }
        for (shown, said) in [
            ("", "x"),
            ("a", "a b"),
            ("a", "a\nb"),
            ("a\nb", "a"),
            ("a…c", "ab"),
            ("…\nz", "z\ny"),
            ("ab", "a b"),
        ] {
            assert!(!check(shown, said), "{shown:?} {said:?}");
        }
    }
}

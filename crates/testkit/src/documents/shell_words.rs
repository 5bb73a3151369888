//! The command lines of one program within a line for a shell, word by word: enough of a shell's grammar for examples.

/// Returns the arguments of each call of a program in a line for a shell. Words that a shell would expand stay as they are.
pub fn commands_of(program: &str, line: &str) -> Vec<Vec<String>> {
    simple_commands(line)
        .into_iter()
        .filter_map(|words| {
            // Variables may be set in front, and other programs may run ours.
            let first = words.iter().position(|word| !is_assignment(word))?;
            let first = first + usize::from(matches!(words[first].as_str(), "if" | "until" | "while" | "!"));
            (words.get(first)? == program).then(|| words[first + 1..].to_vec())
        })
        .collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()))
}

/// Splits a line at whatever separates commands, and those into words; what is in `$(…)` is split for itself.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut redirected = false;
    let mut letters = line.chars().peekable();
    let mut within = Vec::new();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => match letters.next() {
                None | Some('\n') => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            (None | Some('"'), '$') if letters.peek() == Some(&'(') => {
                letters.next();
                let mut depth = 1;
                let inner: String = letters
                    .by_ref()
                    .take_while(|c| {
                        depth += i32::from(*c == '(') - i32::from(*c == ')');
                        depth > 0
                    })
                    .collect();
                within.extend(simple_commands(&inner));
                word.get_or_insert_default().push_str("expanded");
            }
            (None, '#') if word.is_none() => {
                letters.by_ref().find(|c| *c == '\n');
                commands.push(Vec::new());
            }
            (None, '|' | '&' | ';' | '\n' | '(' | ')') => {
                end_word(&mut commands, &mut word, &mut redirected);
                commands.push(Vec::new());
            }
            (None, '>' | '<') => {
                // A digit in front is the number of what is redirected.
                if word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                end_word(&mut commands, &mut word, &mut redirected);
                while letters.next_if(|c| matches!(c, '>' | '&')).is_some() {}
                redirected = true;
            }
            (None, c) if c.is_whitespace() => end_word(&mut commands, &mut word, &mut redirected),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut commands, &mut word, &mut redirected);
    commands.extend(within);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Ends a word: it belongs to the last command, unless something is redirected to it.
fn end_word(commands: &mut [Vec<String>], word: &mut Option<String>, redirected: &mut bool) {
    let Some(word) = word.take() else { return };
    if std::mem::take(redirected) {
        return;
    }
    if let Some(last) = commands.last_mut() {
        last.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_wherever_a_shell_would_make_them() {
        let calls = |line: &str| {
            let calls = commands_of("rekindle", line);
            calls.into_iter().map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        for (line, expected) in [
            ("rekindle ps  # what runs", &["ps"][..]),
            ("rekindle run 'fix it; now' -- sh -c \"a | b\"", &["run fix it; now -- sh -c a | b"]),
            ("A=1 B='x y' rekindle serve 2> log.json", &["serve"]),
            ("rekindle token create > t && rekindle ps | head", &["token create", "ps"]),
            ("id=$(rekindle ps -q x); rekindle rm \"$id\"", &["rm $id", "ps -q x"]),
            ("rekindle export \\\n  -o x.rkb", &["export -o x.rkb"]),
            ("if rekindle waits; then :; fi", &["waits"]),
            ("docker run rekindle", &[]),
            ("echo rekindle ps", &[]),
            ("rekindle pipeline run < /dev/null", &["pipeline run"]),
        ] {
            assert_eq!(calls(line), expected, "{line}");
        }
    }
}

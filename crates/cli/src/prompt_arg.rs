//! What an agent is asked: words on the command line, a file, stdin.

use std::io::{IsTerminal, Read};
use std::path::Path;

use rekindle_client::failure::Failure;

/// Largest prompt: what the log takes as one payload.
const MAX_PROMPT: u64 = 64 << 20;

/// Returns what to say: words, what a file has, or both; without either what stdin has. Stdin is not read unless it is
/// the only source or asked for: whoever calls us may hold it open for ever.
pub(crate) fn prompt(words: Option<&str>, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let stdin = || {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MAX_PROMPT).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| unreadable("stdin", &error))
    };
    let text = match (words, file) {
        (Some("-"), None) => stdin()?,
        (Some(words), None) => words.to_owned(),
        (words, Some(path)) => {
            let text = if path == Path::new("-") { stdin()? } else { read_file(path)? };
            join(words.unwrap_or_default(), &text)
        }
        (None, None) if std::io::stdin().is_terminal() => return Ok(None),
        (None, None) => stdin()?,
    };
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

fn read_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| unreadable(&path.display().to_string(), &error))
}

fn join(words: &str, piped: &str) -> String {
    match (words.trim().is_empty(), piped.trim().is_empty()) {
        (_, true) => words.to_owned(),
        (true, false) => piped.to_owned(),
        (false, false) => format!("{words}\n\n{piped}"),
    }
}

fn unreadable(what: &str, error: &std::io::Error) -> Failure {
    let why = match error.kind() {
        std::io::ErrorKind::InvalidData => "it is not valid UTF-8".to_owned(),
        _ => error.to_string(),
    };
    Failure::usage("prompt_unreadable", format!("the prompt cannot be read from {what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_a_file_make_one_prompt() {
        assert_eq!(join("review this", "diff\n"), "review this\n\ndiff\n");
        assert_eq!((join("words", " \n"), join("", "piped")), ("words".into(), "piped".into()));
    }
}

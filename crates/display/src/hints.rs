//! Our own commands as hints name them: with the home or the server that this one was told of, so that whoever copies one
//! speaks to the same daemon.

use std::ffi::OsStr;
use std::fmt::Display;
use std::sync::OnceLock;

use rekindle_terminal::output::shell_word;

use crate::short_id::{SHORTEST, short};

/// What the command line says of whom to speak to.
static WHOM: OnceLock<String> = OnceLock::new();

/// Remembers what the command line says of whom to speak to: flags and their values, those that were given.
pub fn remember(flags: &[(&str, Option<&OsStr>)]) {
    // Set once, when the command line was read.
    let _ = WHOM.set(flags_text(flags));
}

/// Writes a command of ours as it has to be given.
pub fn ours(rest: impl Display) -> String {
    format!("rekindle {}{rest}", WHOM.get().map_or("", String::as_str))
}

/// Writes the command that watches a session.
pub fn attach(session: impl Display) -> String {
    ours(format_args!("attach {}", brief(session)))
}

/// Writes an id as tables show it: as much of it as names it, and a line has room for.
pub fn brief(id: impl Display) -> String {
    short(&id.to_string(), SHORTEST).to_owned()
}

fn flags_text(flags: &[(&str, Option<&OsStr>)]) -> String {
    let given = flags.iter().filter_map(|(flag, value)| Some((flag, (*value)?.to_string_lossy())));
    given.map(|(flag, value)| format!("{flag} {} ", shell_word(&value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_written_as_a_shell_reads_it() {
        let flags = |home: Option<&'static str>, server: Option<&'static str>| {
            flags_text(&[("--home", home.map(OsStr::new)), ("--server", server.map(OsStr::new))])
        };
        assert_eq!(flags(None, None), "");
        assert_eq!(flags(None, Some("https://h:7433")), "--server https://h:7433 ");
        assert_eq!(flags(Some("/a b/it's"), None), r"--home '/a b/it'\''s' ");
        assert_eq!(ours("ps"), "rekindle ps");
    }
}

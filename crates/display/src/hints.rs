//! Our own commands as hints name them: with the home or the server that this one was told of, so that whoever copies one
//! speaks to the same daemon.

use std::ffi::OsStr;
use std::fmt::Display;
use std::sync::OnceLock;

use rekindle_terminal::output::{columns, is_terminal, shell_word, wrap_lines};

use crate::short_id::{SHORTEST, short};

/// What the command line says of whom to speak to.
static WHOM: OnceLock<String> = OnceLock::new();

/// What a command of ours begins with.
const COMMAND: &str = "rekindle ";

/// Remembers what the command line says of whom to speak to: flags and their values, those that were given.
pub fn remember(flags: &[(&str, Option<&OsStr>)]) {
    // Set once, when the command line was read.
    let _ = WHOM.set(flags_text(flags));
}

/// Writes a command of ours as it has to be given.
pub fn ours(rest: impl Display) -> String {
    format!("{COMMAND}{}{rest}", WHOM.get().map_or("", String::as_str))
}

/// Breaks a line between words where it is too wide. One that is laid out already, as what commands a terminal is, stays whole, and so
/// does a command of ours, so that it can be copied; what people, agents and tools say stands behind a mark or blanks.
pub fn in_rows(text: &str, width: usize) -> String {
    let is_whole = text.contains('\x1b') || text.starts_with(COMMAND);
    if is_whole { text.to_owned() } else { wrap_lines(text, width) }
}

/// Breaks words of ours that name a command where they are too wide: it begins a row, and stays whole from there on.
pub fn before_command(text: &str, width: usize) -> String {
    match text.find(COMMAND).filter(|_| columns(text) > width) {
        Some(0) => text.to_owned(),
        Some(at) => format!("{}\n{}", wrap_lines(text[..at].trim_end(), width), &text[at..]),
        None => in_rows(text, width),
    }
}

/// Writes the command that watches a session.
pub fn attach(session: impl Display) -> String {
    ours(format_args!("attach {}", brief(session)))
}

/// Writes an id as tables show it: as much of it as names it, and a line has room for.
pub fn brief(id: impl Display) -> String {
    short(&id.to_string(), SHORTEST).to_owned()
}

/// Writes an id that is all of the output: for a person as tables show it, and whole for a script that takes it.
pub fn id_alone(id: impl Display) -> String {
    if is_terminal() { brief(id) } else { id.to_string() }
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

    #[test]
    fn a_command_stays_whole_and_what_others_say_of_one_does_not() {
        for (text, expected) in [
            ("rekindle attach 01khz0p6r8 --all", "rekindle attach 01khz0p6r8 --all"),
            ("  $ rekindle run tests", "  $ rekindle run\n    tests"),
            ("\x1b[1ma row of some table\x1b[0m", "\x1b[1ma row of some table\x1b[0m"),
        ] {
            assert_eq!(in_rows(text, 18), expected);
        }
        let left = "left; it works on. Come back with: rekindle attach 01khz0p6r8";
        assert_eq!(before_command(left, 80), left);
        let apart = "left; it works on.\n  Come back with:\nrekindle attach 01khz0p6r8";
        assert_eq!(before_command(left, 18), apart);
        assert_eq!(
            before_command(apart.lines().last().unwrap_or_default(), 18),
            "rekindle attach 01khz0p6r8"
        );
        assert_eq!(before_command("no command at all here", 18), "no command at all\n  here");
    }
}

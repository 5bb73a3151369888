//! The directives by example. The help of the command prints this table, and a test holds the parser to it.

use std::fmt::Write;

/// A line as a script would have it, and what it does.
pub(crate) const DIRECTIVES: &[(&str, &str)] = &[
    ("say Hello world", "streams a message word by word"),
    ("think about it", "streams a thought"),
    ("plan look; change; check", "a plan whose entries get done one after the other"),
    ("tool read src/main.rs", "a tool call: KIND TITLE, pending, in_progress, completed; nothing is done"),
    ("write path/to/file contents", "writes a file below the session's directory, with a newline at its end"),
    ("append log.txt one line", "appends a line to such a file"),
    ("run echo hi", "runs a shell command; its output is in the tool call"),
    ("ask delete everything?", "asks permission; the turn ends here unless it is given"),
    ("guarded make deploy", "asks permission for a command that it says nothing of before, and runs it"),
    ("ask-two first? | second?", "asks several permissions at once and waits for all"),
    ("withdraw 50ms never mind?", "asks permission and withdraws the question after a moment [100ms]"),
    ("question favourite colour?", "asks with a form and says the answer"),
    ("sleep 200ms", "pauses; a cancel ends it"),
    ("words 5000 every 1ms", "streams w1 w2 ... in one message"),
    ("usage 1200 300 0.05", "reports tokens in, tokens out and the cost"),
    ("mode yolo", "changes the mode; in yolo no permission is asked"),
    ("title New title", "names the session"),
    ("notice text", "a notice, which is no part of the conversation"),
    ("commands", "the list of slash commands"),
    ("unknown-update", "an update of a kind that nobody knows, and one with fields that nobody knows"),
    ("tool-between", "a tool update between two parts of one message"),
    ("hang", "never answers; with `hang deaf` the whole turn ignores cancels too"),
    ("crash 1", "exits; `crash mid-line` does so in the middle of writing a line"),
    ("crash-signal", "dies by SIGKILL"),
    ("crash-before", "wherever it stands: exits before the prompt is kept or anything is sent"),
    ("crash-after", "exits right after the prompt was answered"),
    ("crash-kept", "with --answers: exits after the answer was kept, before it is said"),
    ("noise some text", "a line that is no message; also `noise binary`, `blank`, `escape`, `string`"),
    ("huge 20MiB", "one update whose line has exactly that many bytes"),
    ("repeat-ids", "its own request ids begin at 0 again, now and in every later turn"),
    (
        "barrier NAME",
        "makes NAME.reached in the directory of barriers and waits a minute at most for NAME.go",
    ),
    ("stderr 10MB", "writes that much to stderr; `stderr endless` never stops, beside the turn"),
    ("grandchild 30", "leaves a child that holds stdout open; `grandchild 30 detach` one that nobody owns"),
    ("ignore-term", "ignores SIGTERM from now on"),
    ("poke", "waits until any line has come in since the prompt, answers to its questions apart"),
    ("refuse no more", "answers the prompt with an error; `refuse -32000 text` names its code"),
    ("stop-reason max_tokens", "gives that reason when the turn ends"),
    ("forget", "forgets the session: it cannot be loaded any more"),
    ("eof-linger", "does not exit when stdin ends"),
    ("event tested", "tells that something happened"),
    ("heartbeat busy", "a sign of life"),
    ("artifact out/report.txt", "tells of a file that it has made; a second word is claimed as its SHA-256"),
    ("outcome approved it is fine", "ends with what a step of a pipeline came to; nothing behind it is read"),
];

/// Returns the table of directives for the help of the command.
pub fn directives_help() -> String {
    let width = DIRECTIVES.iter().map(|(example, _)| example.len()).max().unwrap_or(0);
    let mut help = String::from("Directives, one in each line of the prompt:\n");
    for (example, meaning) in DIRECTIVES {
        // Writing to a string cannot fail.
        let _ = writeln!(help, "  {example:width$}  {meaning}");
    }
    help.push_str(
        "\nOther lines of a script are said as they stand. A prompt without any directive gets a friendly answer\n\
         that touches nothing. A prompt that has [Resume Context] at the start of a line, or whose first line says\n\
         that something was interrupted, is answered with what is remembered; nothing it quotes is carried out, but\n\
         what comes behind [End of Resume Context] is, unless that asks to go on.\n\
         With --carry-on the rest of the interrupted turn follows, without the step that was cut.\n",
    );
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_directive_once() {
        let help = directives_help();
        for (example, _) in DIRECTIVES {
            assert_eq!(help.matches(&format!("\n  {example} ")).count(), 1, "{example}");
        }
    }
}

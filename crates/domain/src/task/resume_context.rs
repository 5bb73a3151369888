//! What the agent of another attempt is told before the task's own prompt: what came of the last one, in few words.

use std::fmt::Write;

use crate::event::{TouchedFile, UncertainTool};

/// Most bytes that are told.
const MOST: usize = 8 << 10;

/// Files and tool calls that are listed.
const LISTED: usize = 40;

/// The last attempt of a task, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastAttempt<'a> {
    /// The attempt that begins now.
    pub attempt: u32,
    /// How many there may be.
    pub most: u32,
    /// Why the last one ended.
    pub why: &'a str,
    /// Its session was rewound since: what it did may be undone, and is not told.
    pub taken_back: bool,
    /// Turns that were made.
    pub turns: u32,
    /// Tool calls that were made.
    pub tool_calls: u32,
    /// Files that are not what they were before it.
    pub files: &'a [TouchedFile],
    /// How many there are in all.
    pub file_count: u64,
    /// Tool calls that may or may not have had their effect.
    pub uncertain: &'a [UncertainTool],
    /// What was said last.
    pub last_words: Option<&'a str>,
}

/// Writes what an agent is told of the last attempt; the prompt comes behind it, as it is.
pub fn resume_context(last: &LastAttempt<'_>) -> String {
    let mut text =
        format!("[Resume Context]\nThis is attempt {} of {} at the task below.", last.attempt, last.most);
    let why = one_line(last.why, 1000);
    if !why.is_empty() {
        let _ = write!(text, " The last one ended: {why}.");
    }
    if last.taken_back {
        text.push_str("\nIts session was taken back since: the files may not be as it left them.\n");
    } else {
        let (turns, calls) = (count(last.turns, "turn"), count(last.tool_calls, "tool call"));
        let _ = writeln!(text, "\nIt made {turns} and {calls}.");
    }
    if last.file_count > 0 {
        let _ = writeln!(text, "Files that it touched:");
        for file in last.files.iter().take(LISTED) {
            let lines = match (file.lines_added, file.lines_removed) {
                (Some(added), Some(removed)) => format!(" (+{added} -{removed})"),
                _ => String::new(),
            };
            let _ = writeln!(text, "- {}{lines}, {}", one_line(&path_text(file), 300), file.change.as_str());
        }
        let more = last.file_count.saturating_sub(last.files.len().min(LISTED) as u64);
        if more > 0 {
            let _ = writeln!(text, "- and {more} more");
        }
    }
    if !last.uncertain.is_empty() {
        let _ = writeln!(text, "These may or may not have had their effect; look before you repeat them:");
        for tool in last.uncertain.iter().take(LISTED) {
            let _ = writeln!(text, "- {}", one_line(&tool.label(), 300));
        }
    }
    if let Some(words) = last.last_words.map(|words| one_line(words, 1000)).filter(|words| !words.is_empty())
    {
        let _ = writeln!(text, "Its last words: {words}");
    }
    let end = "[End of Resume Context]\n\n";
    cut(&mut text, MOST - end.len());
    text.push_str(end);
    text
}

fn path_text(file: &TouchedFile) -> String {
    String::from_utf8_lossy(&file.path.bytes().unwrap_or_default()).into_owned()
}

fn count(number: u32, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Returns a text in one line, and not longer than so many characters.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Cuts a text behind a whole line, so that it has at most so many bytes.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let mut at = most;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let end = text[..at].rfind('\n').map_or(at, |end| end + 1);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileChange;
    use crate::path_name::PathName;

    fn touched(path: &str) -> TouchedFile {
        let path = PathName::from(path.as_bytes());
        TouchedFile { path, change: FileChange::Modified, lines_added: Some(3), lines_removed: Some(1) }
    }

    #[test]
    fn what_is_known_is_told_once_and_in_order() {
        let tool = UncertainTool {
            tool_call_id: "t".into(),
            title: "Run".into(),
            kind: None,
            input: Some("make\ninstall".into()),
        };
        let last = LastAttempt {
            attempt: 2,
            most: 3,
            why: "overloaded\n",
            taken_back: false,
            turns: 1,
            tool_calls: 2,
            files: &[touched("src/main.rs")],
            file_count: 3,
            uncertain: &[tool],
            last_words: Some("I will  now\ninstall it"),
        };
        let expected = "[Resume Context]\nThis is attempt 2 of 3 at the task below. The last one ended: overloaded.\nIt made 1 turn and 2 tool calls.\n\
            Files that it touched:\n- src/main.rs (+3 -1), modified\n- and 2 more\n\
            These may or may not have had their effect; look before you repeat them:\n- Run: make install\n\
            Its last words: I will now install it\n[End of Resume Context]\n\n";
        assert_eq!(resume_context(&last), expected);
        let nothing = LastAttempt { attempt: 2, most: 2, ..LastAttempt::default() };
        let expected = "[Resume Context]\nThis is attempt 2 of 2 at the task below.\nIt made 0 turns and 0 tool calls.\n[End of Resume Context]\n\n";
        assert_eq!(resume_context(&nothing), expected);
        let taken_back = LastAttempt { taken_back: true, why: "failed", ..nothing };
        let expected = "[Resume Context]\nThis is attempt 2 of 2 at the task below. The last one ended: failed.\n\
            Its session was taken back since: the files may not be as it left them.\n[End of Resume Context]\n\n";
        assert_eq!(resume_context(&taken_back), expected);
    }

    #[test]
    fn however_much_there_is_it_is_short_and_ends_as_it_should() {
        let files: Vec<TouchedFile> =
            (0..500).map(|n| touched(&format!("{}/{n}.rs", "ä".repeat(280)))).collect();
        let words = "ü".repeat(100_000);
        let last = LastAttempt {
            attempt: 3,
            most: 3,
            why: &words,
            files: &files,
            file_count: 500,
            last_words: Some(&words),
            ..LastAttempt::default()
        };
        let told = resume_context(&last);
        assert!(told.len() <= MOST && told.ends_with("\n[End of Resume Context]\n\n"), "{}", told.len());
    }
}

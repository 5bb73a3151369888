//! What an agent is told of files that were put back behind its back, before the next message.

use std::fmt::Write;

use crate::event::ChangedFile;
use crate::session::RestoredFiles;

/// Characters of a path that are told.
const PATH: usize = 200;

/// Returns what is told before a message.
pub fn restored_files_text(restored: &RestoredFiles) -> String {
    let mut text = String::from("[Files Restored]\n");
    let files = if restored.total == 1 { "1 file" } else { &format!("{} files", restored.total) };
    text.push_str(&format!(
        "The user has put {files} of the working directory back to an earlier state. Look again before you rely on what you \
         remember of them:\n"
    ));
    for ChangedFile { path, change } in &restored.first {
        let bytes = path.bytes().unwrap_or_default();
        let _ = writeln!(text, "- {} ({})", shown(&bytes), change.as_str());
    }
    let more = restored.total.saturating_sub(restored.first.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "({more} more are left out here.)");
    }
    text.push_str("[End of Files Restored]\n\n");
    text
}

/// Returns a path as one line, whatever is in its name.
fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let mut line: String =
        text.chars().take(PATH).map(|char| if char.is_control() { '?' } else { char }).collect();
    if text.chars().nth(PATH).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileChange;

    fn file(path: &[u8], change: FileChange) -> ChangedFile {
        ChangedFile { path: path.into(), change }
    }

    #[test]
    fn files_are_told_one_a_line_and_the_rest_is_counted() {
        let first = vec![
            file(b"src/a.rs", FileChange::Modified),
            file(b"new\nline\xff", FileChange::Deleted),
            file(&[b'x'; 300], FileChange::Added),
        ];
        let text = restored_files_text(&RestoredFiles { total: 5, first });
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.starts_with("[Files Restored]\n") && text.ends_with("[End of Files Restored]\n\n"));
        assert!(lines[1].contains("5 files"), "{text}");
        assert_eq!(lines[2..4], ["- src/a.rs (modified)", "- new?line\u{fffd} (deleted)"]);
        assert_eq!(lines[4], format!("- {}… (added)", "x".repeat(200)));
        assert_eq!(lines[5], "(2 more are left out here.)");
        let one = RestoredFiles { total: 1, first: vec![file(b"a", FileChange::Added)] };
        assert!(restored_files_text(&one).contains("put 1 file of"));
    }
}

//! The answers that are there already, by the keys of the work: a file to which a line is added for each.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use super::Answer;

/// A line of the file.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    key: String,
    answer: Answer,
}

/// The answers.
pub(super) struct Answers {
    file: File,
    known: HashMap<String, Answer>,
}

impl Answers {
    /// Reads the file, making it if it is not there. A line that was cut was never answered with.
    pub(super) fn open(path: &Path) -> io::Result<Answers> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let mut known = HashMap::new();
        for line in BufReader::new(&file).lines() {
            if let Ok(kept) = serde_json::from_str::<Kept>(&line?) {
                known.insert(kept.key, kept.answer);
            }
        }
        Ok(Answers { file, known })
    }

    pub(super) fn get(&self, key: &str) -> Option<Answer> {
        self.known.get(key).cloned()
    }

    /// Keeps an answer: it is on disk when this returns.
    pub(super) fn keep(&mut self, key: &str, answer: &Answer) -> io::Result<()> {
        let kept = Kept { key: key.to_owned(), answer: answer.clone() };
        // Behind one that was cut it begins a line of its own.
        let line = format!("\n{}\n", serde_json::to_string(&kept)?);
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.known.insert(kept.key, kept.answer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_found_again_and_one_that_was_cut_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("answers");
        let answer = |ending: &str| Answer {
            ending: ending.into(),
            payload: json!({"findings": ending}),
            files: [("a".to_owned(), ending.to_owned())].into(),
            artifacts: vec![json!({"kind": "artifact", "path": "a", "sha256": "0"})],
        };
        let mut answers = Answers::open(&path).expect("opened");
        answers.keep("ik:1", &answer("completed")).expect("kept");
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(br#"{"key":"ik:2","answer":{"en"#))
            .expect("cut");
        let mut again = Answers::open(&path).expect("opened");
        assert_eq!((again.get("ik:1"), again.get("ik:2")), (Some(answer("completed")), None));
        again.keep("ik:2", &answer("approved")).expect("kept");
        assert_eq!(Answers::open(&path).expect("opened").get("ik:2"), Some(answer("approved")));
    }
}

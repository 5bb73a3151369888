//! A command of ours without a terminal: what it is given, what it says, how it ends. None may take for ever.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::Value;

use crate::lab::{Lab, PATIENCE, wait_for};

/// What a command is given to read.
#[derive(Clone, Copy)]
pub(crate) enum Stdin<'a> {
    /// Nothing.
    Nothing,
    /// Something that never comes: a pipe that nobody closes.
    HeldOpen,
    /// This.
    Text(&'a str),
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Expects an exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Expects words on stderr.
    #[track_caller]
    pub(crate) fn tells(self, words: &str) -> Ran {
        assert!(self.err.contains(words), "{words:?} in {self:#?}");
        self
    }

    /// Expects words on stdout.
    #[track_caller]
    pub(crate) fn shows(self, words: &str) -> Ran {
        assert!(self.out.contains(words), "{words:?} in {self:#?}");
        self
    }

    /// Reads stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Reads stderr as an error in JSON, and returns its code.
    #[track_caller]
    pub(crate) fn error_code(&self) -> String {
        let error: Value =
            serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        error["error"]["code"].as_str().expect("a code").to_owned()
    }
}

fn all_of(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = tell.send(bytes);
    });
    told
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn ran(command: &mut Command, stdin: Stdin<'_>) -> Ran {
    command.stdin(if matches!(stdin, Stdin::Nothing) { Stdio::null() } else { Stdio::piped() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let out = all_of(child.stdout.take().expect("a pipe"));
    let err = all_of(child.stderr.take().expect("a pipe"));
    let mut pipe = child.stdin.take();
    if let (Stdin::Text(text), Some(mut pipe)) = (stdin, pipe.take_if(|_| matches!(stdin, Stdin::Text(_)))) {
        pipe.write_all(text.as_bytes()).expect("it reads");
    }
    let status = wait_for(&format!("the end of {command:?}"), || child.try_wait().expect("looked"));
    // Whoever took these along would keep a caller waiting that reads them to their end.
    let text = |told: Receiver<Vec<u8>>| {
        String::from_utf8(told.recv_timeout(PATIENCE).expect("it is closed")).expect("text")
    };
    Ran { code: status.code(), out: text(out), err: text(err) }
}

impl Lab {
    /// Runs a command of ours to its end, with nothing to read.
    #[track_caller]
    pub(crate) fn ran(&self, arguments: &[&str]) -> Ran {
        ran(&mut self.rekindle(arguments), Stdin::Nothing)
    }

    /// Runs `run` with these arguments and the demo agent.
    #[track_caller]
    pub(crate) fn run_demo(&self, arguments: &[&str], stdin: Stdin<'_>) -> Ran {
        let mut command = self.rekindle(&["run"]);
        ran(command.args(arguments).arg("--").args(self.demo(&[])), stdin)
    }

    /// Returns the only session.
    #[track_caller]
    pub(crate) fn only_session(&self) -> String {
        let list = self.get("/api/sessions");
        let sessions = list["sessions"].as_array().expect("a list");
        assert_eq!(sessions.len(), 1, "{list}");
        sessions[0]["id"].as_str().expect("an id").to_owned()
    }
}

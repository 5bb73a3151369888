//! How a command fails: an exit code, a stable code for programs, a message and its causes for people, and a
//! hint where there is a next step. Errors of the libraries are mapped to these here, once.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use rekindle_store::home::HomeError;
use rekindle_store::offline::OfflineError;
use rekindle_store::{LoadError, OpenError, OpenSessionError, RecoverError, ScanError};
use rekindle_wire::code::{Code, ErrorBody};
use serde_json::json;

use rekindle_terminal::json_escape::Escaped;
use rekindle_terminal::output::{for_stderr, shell_word};
use rekindle_terminal::sanitise;

use crate::hint_text::hint_text;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// Failed, or something was found.
    Failed = 1,
    /// Wrong usage, or no usable home.
    Usage = 2,
    /// The run was interrupted and does not go on by itself.
    Interrupted = 3,
    /// The run waits for someone.
    Waiting = 4,
    /// There is no daemon.
    NoDaemon = 5,
    /// Whoever watched went away: what shells say of a command that was ended by Ctrl-C.
    Detached = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// What a daemon says of something that was named and is not there.
const UNKNOWN: [Code; 8] = [
    Code::SessionUnknown,
    Code::WaitUnknown,
    Code::SnapshotNotFound,
    Code::TaskUnknown,
    Code::DependencyUnknown,
    Code::RunUnknown,
    Code::RunNotInSession,
    Code::RecordUnknown,
];

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    code: Cow<'static, str>,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// Something went wrong.
    pub fn failed(code: impl Into<Cow<'static, str>>, error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Failed, code: code.into(), error: error.into(), hint: None }
    }

    /// A log is damaged, and what is before the damage was shown.
    pub fn damaged(session: impl Display, place: impl Display, why: &str) -> Failure {
        let error = anyhow::anyhow!("the log of {session} is damaged at {place}: {why}");
        Failure::failed("session_damaged", error)
            .hint("the records before it are shown; rekindle doctor says what can be done")
    }

    /// The caller asked for something that makes no sense.
    pub fn usage(code: &'static str, message: String) -> Failure {
        Failure { exit: Exit::Usage, code: code.into(), error: anyhow::Error::msg(message), hint: None }
    }

    /// Returns the failure that an answer of the daemon's tells of.
    pub fn refused(status: u16, body: &[u8]) -> Failure {
        match serde_json::from_slice::<ErrorBody<'_>>(body) {
            Ok(ErrorBody { error }) => {
                let failure =
                    Failure::failed(error.code.into_owned(), anyhow::Error::msg(error.message.into_owned()));
                // Named by whoever asked, like an id that is in no list.
                let unknown = UNKNOWN.map(Code::as_str).contains(&failure.code());
                let failure = if unknown { failure.exit_with(Exit::Usage) } else { failure };
                let command = error.advice.as_ref().and_then(hint_text);
                command.or(error.hint).into_iter().fold(failure, Failure::hint)
            }
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.chars().take(200).collect::<String>();
                Failure::failed("refused", anyhow::anyhow!("the daemon answered {status}: {text}"))
            }
        }
    }

    /// There is no daemon, and one is needed.
    pub fn no_daemon(message: impl Into<String>) -> Failure {
        let error = anyhow::Error::msg(message.into());
        Failure { exit: Exit::NoDaemon, code: "no_daemon".into(), error, hint: None }
    }

    fn unusable(code: &'static str, error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit: Exit::Usage, code: code.into(), error: error.into(), hint: None }
    }

    /// Adds what to do next.
    pub fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// Changes how the process ends.
    pub fn exit_with(self, exit: Exit) -> Failure {
        Failure { exit, ..self }
    }

    /// Returns the code for programs.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the message with its causes, in one line.
    pub fn message(&self) -> String {
        let message: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        sanitise::line(&message.join(": "))
    }

    /// Returns it as a JSON object.
    pub fn to_json(&self) -> serde_json::Value {
        let message: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        json!({"error": {"code": self.code, "message": message.join(": "), "hint": self.hint}})
    }

    /// Tells whether someone else has answered before.
    pub fn is_too_late(&self) -> bool {
        matches!(&*self.code, "token_consumed" | "wait_closed")
    }

    /// Tells whether nobody answered at all.
    pub fn is_absence(&self) -> bool {
        self.is_daemon_gone() || &*self.code == crate::SILENT
    }

    /// Tells whether the daemon went away, or is about to: what was only to be looked at can be looked at elsewhere.
    pub fn is_daemon_gone(&self) -> bool {
        matches!(&*self.code, "no_daemon" | "outcome_unknown" | "shutting_down")
    }

    /// Tells whether the reader of our output went away.
    pub fn is_broken_pipe(&self) -> bool {
        let cause = self.error.downcast_ref::<io::Error>();
        self.code == OUTPUT && cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Prints it to stderr.
    pub fn report(&self, json: bool) {
        if json {
            // Nobody may be there to read it.
            let mut out = Escaped::new(std::io::stderr(), std::io::stderr().is_terminal());
            let _ = writeln!(out, "{}", self.to_json());
            return;
        }
        let print = |word: &str, text: &dyn std::fmt::Display| {
            anstream::eprintln!("{}", for_stderr(&format!("{word}: {}", sanitise::block(&text.to_string()))));
        };
        print("error", &self.error);
        for cause in self.error.chain().skip(1) {
            print("  because", &cause);
        }
        if let Some(hint) = &self.hint {
            print("hint", hint);
        }
    }
}

/// The code of a failure to write our own output.
const OUTPUT: &str = "output";

/// Writing to stdout is the only thing that commands do with a bare `io::Error`.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::failed(OUTPUT, error)
    }
}

impl From<HomeError> for Failure {
    fn from(error: HomeError) -> Failure {
        match &error {
            HomeError::Missing(_) => Failure::unusable("home_missing", error)
                .hint("rekindle run TEXT makes one and starts a session; --home PATH or $REKINDLE_HOME names another"),
            HomeError::Newer { .. } => Failure::unusable("home_newer", error)
                .hint("nothing in it was changed; install the Rekindle that made it, or name another home with --home PATH"),
            HomeError::NotAHome { .. } => {
                Failure::unusable("home_unreadable", error).hint("rekindle doctor checks the rest of it")
            }
            HomeError::NotEmpty { .. } => Failure::unusable("home_foreign", error)
                .hint("name another home with --home PATH or $REKINDLE_HOME; nothing in this one was changed"),
            HomeError::Locked { .. } => Failure::unusable("home_in_use", error)
                .hint("only one process can use a home at a time: `rekindle restart` replaces its daemon while agents keep working, --home PATH names another home"),
            HomeError::Io(failed) => {
                let path = shell_word(&failed.path.display().to_string());
                let hint = match failed.source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        format!("the disk is full: df -h {path} shows how much is used; the output of running agents is kept")
                    }
                    io::ErrorKind::ReadOnlyFilesystem => format!(
                        "the file system is mounted read-only: findmnt -T {path} shows it; --home PATH names another home"
                    ),
                    _ => format!("check that it exists and is yours: ls -ld {path}"),
                };
                Failure::unusable("home_unreadable", error).hint(hint)
            }
        }
    }
}

impl From<ScanError> for Failure {
    fn from(error: ScanError) -> Failure {
        match &error {
            ScanError::Newer { .. } | ScanError::Unknown { .. } => Failure::unusable("home_newer", error)
                .hint("nothing was changed; install the Rekindle that wrote it"),
            ScanError::Read(_) => {
                Failure::unusable("wal_unreadable", error).hint("rekindle doctor checks the rest of the home")
            }
        }
    }
}

impl From<OfflineError> for Failure {
    fn from(error: OfflineError) -> Failure {
        match error {
            OfflineError::Home(error) => error.into(),
            OfflineError::Scan(error) => error.into(),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Home(error) => error.into(),
            OpenError::Recover(RecoverError::Scan(error)) => error.into(),
            OpenError::Recover(error) => Failure::unusable("home_unusable", error),
            OpenError::Thread(_) => Failure::unusable("home_unusable", error),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        match &error {
            LoadError::NotFound(_) => Failure::unusable("session_unknown", error),
            LoadError::Newer { .. } => Failure::failed("session_newer", error)
                .hint("the file was not changed and other sessions are not affected; rekindle log still shows the log"),
            LoadError::Quarantined { .. } => Failure::failed("session_quarantined", error)
                .hint("rekindle doctor says more; rekindle doctor --release SESSION releases it"),
            LoadError::Unread { .. } | LoadError::Read(_) => {
                Failure::failed("session_unreadable", error).hint("rekindle doctor says what can be done")
            }
        }
    }
}

impl From<OpenSessionError> for Failure {
    fn from(error: OpenSessionError) -> Failure {
        match error {
            OpenSessionError::Load(error) => error.into(),
            other => Failure::failed("session_unusable", other),
        }
    }
}

#[cfg(test)]
mod tests {
    use rekindle_store::PathError;

    use super::*;

    #[test]
    fn a_home_that_cannot_be_written_is_told_from_one_that_is_not_ours() {
        for (kind, word) in [
            (io::ErrorKind::StorageFull, "df -h /h"),
            (io::ErrorKind::ReadOnlyFilesystem, "read-only"),
            (io::ErrorKind::PermissionDenied, "yours"),
        ] {
            let error = PathError { doing: "create", path: "/h".into(), source: kind.into() };
            let failure = Failure::from(HomeError::Io(error)).to_json().to_string();
            let told = ["df -h /h", "read-only", "yours"].into_iter().filter(|one| failure.contains(one));
            assert_eq!(told.collect::<Vec<_>>(), [word], "{failure}");
        }
    }

    #[test]
    fn advice_is_worded_as_a_command_and_what_is_not_known_in_the_daemon_s_words() {
        for (advice, expected) in [
            (r#","advice":{"kind":"list_sessions"}"#, "rekindle ps -a"),
            (r#","advice":{"kind":"create_token","scope":"admin"}"#, "in its words"),
            (r#","advice":{"kind":"of_a_newer_daemon","x":1}"#, "in its words"),
            ("", "in its words"),
        ] {
            let body = format!(
                r#"{{"error":{{"code":"session_unknown","message":"m","hint":"in its words"{advice}}}}}"#
            );
            let failure = Failure::refused(404, body.as_bytes());
            assert_eq!(failure.to_json()["error"]["hint"], expected, "{advice}");
        }
    }
}

//! A temporary home, the binary, and pictures of directories to compare.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rekindle_testkit::made::dev_program;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_rekindle");

/// A home that goes away with the test.
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    /// A place for a home, with nothing there yet.
    pub(crate) fn empty() -> Home {
        Home { directory: TempDir::new().expect("a temporary directory") }
    }

    /// A home with twelve sessions: finished, interrupted and unfinished ones.
    pub(crate) fn made() -> Home {
        Home::made_with(&["--sessions", "12", "--records", "30"])
    }

    pub(crate) fn made_with(options: &[&str]) -> Home {
        let home = Home::empty();
        let made = home.run(&[&["dev", "make-home"], options].concat());
        assert!(made.status.success(), "{}", stderr(&made));
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        // What is for developers is in a program of its own.
        let mut command = match args {
            ["dev", rest @ ..] => {
                let mut command = Command::new(dev_program(BINARY));
                command.args(rest);
                command
            }
            _ => {
                let mut command = Command::new(BINARY);
                command.args(args);
                command
            }
        };
        command.env_clear().env("REKINDLE_HOME", self.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary runs")
    }

    /// Runs a command that must succeed and returns what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// Runs a command that prints JSON, whatever its exit code.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let text = stdout(&output);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {text}{}", stderr(&output)))
    }

    /// Runs a command that prints a JSON object a line.
    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(args);
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Starts a command whose stdin and stdout the test holds.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().expect("the binary starts")
    }

    /// The sessions, by their logs, sorted.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let names = fs::read_dir(self.path().join("sessions")).expect("sessions");
        let names = names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut ids: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".messages.jsonl").map(str::to_owned)).collect();
        ids.sort();
        ids
    }

    pub(crate) fn log_path(&self, session: &str) -> PathBuf {
        self.path().join("sessions").join(format!("{session}.messages.jsonl"))
    }

    pub(crate) fn picture(&self) -> Picture {
        Picture::of(&self.path())
    }
}

/// Everything below a directory: permissions, times and contents.
#[derive(PartialEq, Eq)]
pub(crate) struct Picture(BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>);

impl Picture {
    pub(crate) fn of(root: &Path) -> Picture {
        let mut seen = BTreeMap::new();
        let mut todo = vec![root.to_owned()];
        while let Some(path) = todo.pop() {
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let mut bytes = Vec::new();
            if metadata.is_dir() {
                todo.extend(
                    fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()),
                );
            } else {
                bytes = fs::read(&path).expect("a file");
            }
            let mode = metadata.permissions().mode() & 0o7777;
            seen.insert(path, (mode, metadata.mtime(), metadata.mtime_nsec(), bytes));
        }
        Picture(seen)
    }

    /// Fails with the names of what differs.
    pub(crate) fn assert_same(&self, other: &Picture, during: &str) {
        let differing: Vec<&PathBuf> = self
            .0
            .keys()
            .chain(other.0.keys())
            .filter(|path| self.0.get(*path) != other.0.get(*path))
            .collect();
        assert!(differing.is_empty(), "{during} changed {differing:?}");
    }

    pub(crate) fn modes(&self) -> impl Iterator<Item = (&Path, u32)> {
        self.0.iter().map(|(path, (mode, ..))| (path.as_path(), *mode))
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

/// The findings of a kind in a report of `doctor --json`.
pub(crate) fn findings<'a>(report: &'a Value, code: &str) -> Vec<&'a Value> {
    let all = report["findings"].as_array().expect("findings");
    all.iter().filter(|finding| finding["code"] == code).collect()
}

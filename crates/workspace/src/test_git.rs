//! Git for tests: with settings of its own, whatever the machine has.

use std::path::Path;
use std::process::Command;

/// The settings of every call.
const SETTINGS: [&str; 5] = [
    "user.name=a",
    "user.email=a@b",
    "commit.gpgsign=false",
    "init.defaultBranch=main",
    "protocol.file.allow=always",
];

/// Runs git in a directory, and tells whether it is there and did what it was asked for.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> bool {
    let command = Command::new("git")
        .current_dir(directory)
        .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output();
    command.is_ok_and(|output| output.status.success())
}

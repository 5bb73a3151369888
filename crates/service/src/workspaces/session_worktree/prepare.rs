//! A worktree prepared as the user's configuration says, before anybody works in it: files that git ignores are copied from the directory
//! that it is made for, and a command is run. Nothing in a repository can ask for either.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rekindle_domain::event::WorktreeSetup;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::lock_file::LockFile;
use crate::test_knobs::hurried;
use crate::workspaces::git::{GitError, done, git, run};

/// How long the command may take.
const SETUP_WITHIN: Duration = Duration::from_secs(10 * 60);

/// How often it is looked whether it has ended: a command takes seconds, and is waited for by one session only.
const LOOK: Duration = Duration::from_millis(20);

/// How much of what it says is kept: the end, where it says why it failed.
const KEPT: u64 = 4 << 10;

/// How much of a command is shown where it failed, in characters.
const SHOWN: usize = 200;

/// How worktrees are prepared: from the user's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    /// Patterns of files that git ignores and that are copied.
    pub copy: Vec<String>,
    /// The command that is run, if one is.
    pub setup: Vec<String>,
}

/// What a session brings to the preparation of its worktree.
pub struct Surroundings<'a> {
    /// The variables of its agent.
    pub env: &'a BTreeMap<String, String>,
    /// The umask of its agent.
    pub umask: u32,
    /// Whether the daemon is shutting down: then a command is ended, and run again by the next one.
    pub is_stopping: &'a dyn Fn() -> bool,
}

/// Copies files that git ignores from one worktree to another: regular ones alone, and never through a link. Returns how many.
pub(super) fn copy_ignored(from: &Path, to: &Path, patterns: &[String]) -> Result<u64, GitError> {
    if patterns.is_empty() {
        return Ok(0);
    }
    let mut command = git(from);
    // As in ignore files: a star stops at a slash, two do not.
    command.env("GIT_GLOB_PATHSPECS", "1").args(["ls-files", "-z", "--others", "--ignored"]);
    let listed = run(command.args(["--exclude-standard", "--"]).args(patterns))?;
    done("list the files that [worktree] copy names", &listed)?;
    let mut copied = 0;
    let paths = listed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    for path in paths.map(|path| Path::new(OsStr::from_bytes(path))) {
        let was = copy_file(from, to, path);
        copied += u64::from(was.map_err(|source| GitError::Io { path: from.join(path), source })?);
    }
    Ok(copied)
}

/// Copies a file, if it is a regular one and nothing is in its place; tells whether it was.
fn copy_file(from: &Path, to: &Path, path: &Path) -> io::Result<bool> {
    let above = |path: &Path| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<PathBuf>>();
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let through_link = above(path).iter().any(|above| is_link(&from.join(above)) || is_link(&to.join(above)));
    let is_regular = from.join(path).symlink_metadata()?.is_file();
    if through_link || !is_regular || to.join(path).symlink_metadata().is_ok() {
        return Ok(false);
    }
    let target = to.join(path);
    fs::create_dir_all(target.parent().unwrap_or(to))?;
    fs::copy(from.join(path), target).map(|_| true)
}

/// Runs the command that prepares a worktree, in the session's directory, and waits for it. It holds the lock of the worktree: whoever
/// comes after a daemon that died waits until it has ended.
pub(super) fn run_setup(
    command: &[String],
    directory: &Path,
    around: &Surroundings<'_>,
    (lock, log): (&LockFile, &Path),
) -> Result<Option<WorktreeSetup>, GitError> {
    let [program, arguments @ ..] = command else { return Ok(None) };
    let shown = || command.join(" ").chars().take(SHOWN).collect();
    let failed = |why: String| GitError::SetupFailed { command: shown(), why };
    let unusable = |source: io::Error| GitError::Io { path: log.to_owned(), source };
    let mut said = fs::OpenOptions::new();
    let said =
        said.read(true).write(true).create(true).truncate(true).mode(0o600).open(log).map_err(unusable)?;
    let begin = Instant::now();
    let mut setup = Command::new("sh");
    setup.args(["-c", "umask \"$1\" && shift && exec \"$@\"", "sh", &format!("{:04o}", around.umask)]);
    setup.arg(program).args(arguments).current_dir(directory).env_clear().envs(around.env);
    setup.env("PWD", directory).process_group(0).stdin(lock.share().map_err(unusable)?);
    setup.stdout(said.try_clone().map_err(unusable)?).stderr(said.try_clone().map_err(unusable)?);
    let mut child = setup.spawn().map_err(|error| failed(error.to_string()))?;
    let ended = wait(&mut child, begin + hurried("SETUP_WITHIN", SETUP_WITHIN), around.is_stopping);
    let output = end_of(said).map_err(unusable)?;
    let _ = fs::remove_file(log);
    match ended.map_err(unusable)? {
        Ended::By(status) if status.success() => Ok(Some(WorktreeSetup {
            command: command.to_vec(),
            millis: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
            output,
        })),
        Ended::By(status) => {
            let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
            Err(failed(last.map_or_else(|| status.to_string(), |last| format!("{status}: {last}"))))
        }
        Ended::TooLate => Err(failed("it did not end within ten minutes".to_owned())),
        Ended::Stopped => Err(GitError::Stopped),
    }
}

/// How the command came to its end.
enum Ended {
    By(ExitStatus),
    TooLate,
    Stopped,
}

fn wait(child: &mut Child, deadline: Instant, is_stopping: &dyn Fn() -> bool) -> io::Result<Ended> {
    let why = loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::By(status));
        }
        if is_stopping() {
            break Ended::Stopped;
        }
        if Instant::now() >= deadline {
            break Ended::TooLate;
        }
        std::thread::sleep(LOOK);
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // It may just have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()?;
    Ok(why)
}

/// Reads the end of what was said.
fn end_of(mut said: fs::File) -> io::Result<String> {
    let length = said.seek(SeekFrom::End(0))?;
    said.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
    let mut bytes = Vec::new();
    said.take(KEPT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;

//! A shell that a reader types into: one for a whole page, so that variables, aliases and directories stay. Each command has a time
//! limit, and what it says goes to a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rekindle_lab::{PATIENCE, look_for};
use rustix::process::{Pid, Signal, kill_process_group};

const REKINDLE: &str = env!("CARGO_BIN_EXE_rekindle");

/// What examples may call beside our own program. Whatever else the machine has is not there: agents above all.
const TOOLS: &[&str] = &[
    "base64", "cat", "chmod", "cp", "cut", "date", "echo", "env", "git", "grep", "head", "ls", "mkdir", "mv",
    "printf", "rm", "sed", "seq", "sh", "sleep", "sort", "tail", "touch", "tr", "true", "false", "wc",
    "zstd",
];

/// How often a file is looked at for what a command says.
const LOOK: Duration = Duration::from_millis(10);

/// Returns our program in an empty environment.
pub(crate) fn rekindle() -> Command {
    let mut command = Command::new(REKINDLE);
    command.env_clear().stdin(Stdio::null());
    command
}

/// A shell.
pub(crate) struct Shell {
    /// The directory that is its `HOME`.
    home: PathBuf,
    variables: Vec<(&'static str, PathBuf)>,
    child: Child,
    input: ChildStdin,
    /// How each command ended.
    ends: Receiver<String>,
}

/// How a command ended, and what it said.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) said: String,
}

impl Shell {
    /// Starts one in a directory. Its PATH has our program, the agents of `home/bin` and the usual tools.
    pub(crate) fn start(home: &Path, runtime: &Path, work: &Path) -> Shell {
        let tools = home.join("tools");
        std::fs::create_dir(&tools).expect("a directory");
        let paths = std::env::var_os("PATH").expect("a PATH");
        for tool in TOOLS {
            let found = std::env::split_paths(&paths).map(|path| path.join(tool)).find(|path| path.is_file());
            // A page that needs one that is missing fails there.
            found
                .into_iter()
                .for_each(|found| std::os::unix::fs::symlink(found, tools.join(tool)).expect("a link"));
        }
        let beside = Path::new(REKINDLE).parent().expect("a directory");
        let path = std::env::join_paths([beside.to_owned(), home.join("bin"), tools]).expect("a PATH");
        let variables = vec![
            ("PATH", path.into()),
            ("HOME", home.to_owned()),
            ("XDG_RUNTIME_DIR", runtime.to_owned()),
            ("TERM", "dumb".into()),
            ("LANG", "C.UTF-8".into()),
        ];
        let mut command = Command::new("/bin/sh");
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value))).current_dir(work);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().expect("a shell");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, ends) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Shell { home: home.to_owned(), variables, child, input, ends }
    }

    /// Runs a command, and returns how it ended.
    pub(crate) fn run(&mut self, command: &str) -> Ended {
        let (script, said) = (self.home.join("command.sh"), self.home.join("said"));
        std::fs::write(&script, command).expect("written");
        File::create(&said).expect("a file");
        // Read as a file, so that no quote of the command can end ours; in this shell, so that what it sets stays.
        writeln!(self.input, ". {} > {} 2>&1 < /dev/null; echo $?", script.display(), said.display())
            .expect("the shell lives");
        let end = self.ends.recv_timeout(PATIENCE);
        let said = std::fs::read_to_string(&said).expect("what it said");
        let code = end.unwrap_or_else(|error| panic!("$ {command}\n{said}\n{error}"));
        Ended { code: code.parse().expect("a number"), said }
    }

    /// Runs a command until it has said what was waited for, and interrupts it as Ctrl-C does.
    pub(crate) fn interrupt(&mut self, command: &str, is_shown: impl Fn(&str) -> bool) -> String {
        let work = self.run("pwd").said;
        let said = self.home.join("said");
        let file = File::create(&said).expect("a file");
        let mut shell = Command::new("/bin/sh");
        shell.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        shell.arg("-c").arg(command).current_dir(work.trim_end()).process_group(0).stdin(Stdio::null());
        let mut child =
            shell.stdout(file.try_clone().expect("a handle")).stderr(file).spawn().expect("a shell");
        let read = || std::fs::read_to_string(&said).expect("what it said");
        let group = Pid::from_raw(child.id() as i32).expect("a process");
        // In vain too it has to be interrupted: whoever compares tells what is missing.
        let _ = look_for(PATIENCE, LOOK, || {
            let ended = child.try_wait().expect("looked").is_some();
            let said = read();
            (ended || (!said.is_empty() && is_shown(&said))).then_some(())
        });
        let began = Instant::now();
        while child.try_wait().expect("looked").is_none() {
            // One that has just begun may not listen to it yet.
            let _ = kill_process_group(group, Signal::INT);
            assert!(began.elapsed() < PATIENCE, "$ {command}\n{}\ndoes not end at Ctrl-C", read());
            std::thread::sleep(Duration::from_millis(50));
        }
        read()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

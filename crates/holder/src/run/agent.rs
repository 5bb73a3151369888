//! Starting the agent: below us, in its own process group and control group, marked, dying when we die.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, umask};

use super::cgroup;
use crate::dir::Launch;
use crate::identity::Identity;
use crate::tree::{MARK, Tree};

/// A running agent, or one whose end has been seen.
pub(super) struct Agent {
    pub(super) identity: Identity,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) cgroup: Option<PathBuf>,
    /// How it ended.
    pub(super) ended: Option<Ended>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl Agent {
    pub(super) fn start(launch: &Launch, env: &BTreeMap<String, String>) -> io::Result<Agent> {
        let (program, arguments) =
            launch.argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&launch.cwd)
            .env_clear()
            .envs(env)
            .env(MARK, &launch.holder_id)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (cgroup, door) = cgroup::make(&launch.holder_id).unzip();
        set_pre_exec_hook(&mut command, door, launch.umask);
        let mut child = command.spawn().inspect_err(|_| {
            cgroup.as_deref().map(cgroup::remove);
        })?;
        let pid = child.id() as i32;
        // It must go before we do when memory runs out: someone has to write down how it ended.
        let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), "200");
        // An agent that has ended already is a zombie until we collect it, and so still has an identity.
        let identity = Identity::of(pid).inspect_err(|_| {
            // Whoever cannot be named cannot be kept: nobody may work on whose start is said to have failed.
            let _ = child.kill();
            let _ = child.wait();
            cgroup.as_deref().map(cgroup::remove);
        })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let agent = Agent {
            identity,
            stdin: stdin.map(OwnedFd::from),
            stdout: stdout.map(OwnedFd::from),
            stderr: stderr.map(OwnedFd::from),
            cgroup,
            ended: None,
        };
        for pipe in [&agent.stdin, &agent.stdout, &agent.stderr].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(agent)
    }

    /// Returns where to look for its processes.
    pub(super) fn tree(&self, holder_id: &str) -> Tree {
        Tree {
            mark: holder_id.into(),
            group: Some(self.identity.pid),
            ancestor: Some(getpid().as_raw_nonzero().get()),
            cgroup: self.cgroup.clone(),
            ..Tree::default()
        }
    }
}

/// Has the kernel end the agent when we die, however we die; and has it begin its life in its control group, because
/// a child it had before would be outside. Files that it makes are its user's, not ours: it has a umask of its own.
#[expect(unsafe_code, reason = "a hook between fork and exec")]
fn set_pre_exec_hook(command: &mut Command, door: Option<File>, mask: Option<u32>) {
    let holder: Pid = getpid();
    // SAFETY: the hook makes four system calls and touches no memory but its own copies of three numbers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // We may have died before that call: then nobody would ever send the signal.
            if getppid() != Some(holder) {
                return Err(io::Error::from(rustix::io::Errno::CHILD));
            }
            if let Some(door) = &door {
                // One that may not enter is found in the other ways.
                let _ = rustix::io::write(door, b"0");
            }
            if let Some(mask) = mask {
                let _ = umask(Mode::from_raw_mode(mask & 0o777));
            }
            Ok(())
        });
    }
}

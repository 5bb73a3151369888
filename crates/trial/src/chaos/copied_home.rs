//! A copy of a home in which a daemon and agents live: commands that are given the copy must leave the home itself, its
//! daemon and its agents alone, whatever the copied files say of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rekindle_client::failure::Failure;
use rekindle_seeded::Rng;

use super::damaged_copy::copy_all;
use super::faults::sessions;
use super::oracle::Sight;
use super::processes::Processes;
use crate::ground::look::lines;
use crate::ground::{end_all, is_alive};

/// How long a command may take; what it does later is done to nobody.
const COMMAND: Duration = Duration::from_secs(20);

/// How long whoever was wrongly told to end may take for it.
const ENDS: u64 = 700;

/// Copies a living home, gives commands the copy, and looks at the home.
pub(super) fn command_a_copy(
    home: &Path,
    copy: &Path,
    runtime: &Path,
    processes: &mut Processes,
    pick: u64,
) -> Result<Result<(), String>, Failure> {
    let failed = |error: std::io::Error| Failure::failed("copy", error);
    let mut rng = Rng::new(pick);
    let known = sessions(home)?;
    if known.is_empty() {
        return Ok(Err("the home has no session".into()));
    }
    let _ = std::fs::remove_dir_all(copy);
    copy_all(home, copy).map_err(failed)?;
    let read = || known.iter().map(|id| lines(home, id).unwrap_or_default()).collect::<Vec<_>>();
    let (before, pairs) = (read(), processes.pairs());
    let one = known[rng.index(known.len())].clone();
    let all: [&[&str]; 3] =
        [&["send", "--detach", &one, "say I am for the copy"], &["rm", "--force", &one], &["stop", "--all"]];
    let mut commands = Vec::new();
    for arguments in &all[rng.index(all.len())..] {
        commands.push(arguments[0].to_owned());
        give(arguments, copy, runtime, processes).map_err(failed)?;
    }
    // A daemon that was told to end needs a moment for it.
    processes.cancel.pause(ENDS);
    let serves = processes.lives() && processes.serves()?;
    let same = before.iter().zip(read()).filter(|(before, after)| *before == after).count();
    let agents = pairs.iter().filter_map(|pair| pair.agent.as_ref());
    let (agents, alive) = (agents.clone().count(), agents.filter(|agent| is_alive(agent)).count());
    processes.sights.push(Sight::LivingCopy { commands, logs: known.len(), same, serves, agents, alive });
    end_all(copy);
    super::processes::reap();
    std::fs::remove_dir_all(copy).map_err(failed)?;
    Ok(Ok(()))
}

/// Gives a command a home, and waits for it to end.
fn give(arguments: &[&str], home: &Path, runtime: &Path, processes: &Processes) -> std::io::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--home")
        .arg(home)
        .args(arguments)
        .env("XDG_RUNTIME_DIR", runtime)
        .env_remove("REKINDLE_SERVER")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if processes.cancel.wait_for(COMMAND, || child.try_wait().ok().flatten()).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(())
}

//! The holder itself: one thread, one loop, no runtime. It owns the agent's pipes, writes what passes to the
//! journal, and obeys whoever holds the highest epoch. Everything a successor needs is on disk.

mod agent;
mod cgroup;
mod clocks;
mod hint;
mod holder;
mod inputs;
mod life;
mod log;
mod peers;
mod pump;
mod requests;
mod reserve;
mod signals;
mod start_up;
mod stderr;
mod stop;
mod trouble;

use std::path::PathBuf;
use std::process::ExitCode;

/// Runs a holder for the directory that is its only argument.
pub fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("rekindle-holder DIRECTORY\n\nKeeps one agent alive. Started by rekindle, not by people.");
        return ExitCode::from(2);
    };
    match start_up::start_up(dir) {
        Ok(mut holder) => {
            holder.run();
            ExitCode::SUCCESS
        }
        Err(error) => {
            // Whoever started us reads one line.
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

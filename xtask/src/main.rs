//! `cargo xtask`: the chores of this workspace behind one command line.
//! This file reads the arguments and maps outcomes to exit codes; the work is in the modules.

mod args;
mod cargo;
mod dist;
mod failure;
mod fuzz;
mod plan;
mod slowest;
mod steps;
mod tools;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::args::Command;
use crate::cargo::Invocation;
use crate::failure::{Context as _, Result};
use crate::steps::Paint;

fn main() -> ExitCode {
    match Command::parse(env::args_os().skip(1)).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out one command; `false` means that something checked was not in order.
fn run(command: Command) -> Result<bool> {
    let root = workspace_root();
    match command {
        Command::Test { long, filters } => {
            let plan = plan::test(&root, long, &filters);
            steps::run_all(&mut io::stdout(), Paint::for_stdout(), plan)
        }
        Command::Bench(args) => {
            if needs_product(&args) {
                let build = "build --release --locked -p rekindle --bins";
                Invocation::new(&root, build).succeed().context(|| "the product could not be built")?;
            }
            let bench = Invocation::new(&root, "run --release --locked -p rekindle-bench --").args(args);
            Ok(bench.status()?.success())
        }
        Command::Demo(args) => {
            // The build that README's installation makes too.
            show(&root, "--release", "demo", args)
        }
        Command::Chaos(args) => {
            // Only a debug build can be killed between any two steps.
            show(&root, "", "chaos", args)
        }
        Command::Picture => picture(&root),
        Command::Dist(args) => dist::make(&root, &args),
        Command::FuzzApi(args) => fuzz::api(&root, args).map(|()| true),
        Command::House => Ok(plan::house(&root).status()?.success()),
        Command::Help(text) => {
            println!("{text}");
            Ok(true)
        }
    }
}

/// Builds both binaries in a profile and runs a command of `rekindle`.
fn show(root: &Path, profile: &str, command: &str, args: Vec<OsString>) -> Result<bool> {
    // Notices go to standard error: stdout may be for a program.
    eprintln!("1 of 2: building rekindle and rekindle-holder; the first time takes some minutes");
    let build = Invocation::new(root, &format!("build {profile} --locked -p rekindle --bins"));
    build.succeed().context(|| "the binaries could not be built")?;
    eprintln!("2 of 2: rekindle {command}");
    let run = format!("run {profile} --quiet --locked -p rekindle --bin rekindle -- {command}");
    Ok(Invocation::new(root, &run).args(args).status()?.success())
}

/// Records a run of the demonstration and draws the picture in README.md from it.
fn picture(root: &Path) -> Result<bool> {
    // The times in the picture are those of a build as tests have it: nothing else has to be compiled.
    let build = Invocation::new(root, "build --locked -p rekindle --bins -p rekindle-picture");
    build.succeed().context(|| "the binaries could not be built")?;
    let directory = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own));
    let draw = Invocation::new(root, "run --quiet --locked -p rekindle-picture -- docs/demo.svg");
    let demo = [directory.join("debug/rekindle").into_os_string(), "demo".into()];
    Ok(draw.args(demo).status()?.success())
}

/// Tells whether the benchmarks that are asked for start holders or daemons, whose executables are another package's.
fn needs_product(args: &[OsString]) -> bool {
    let is_flag = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-");
    args.first().is_none_or(|first| first == "holder" || first == "daemon" || is_flag(first))
}

/// Returns the directory of the workspace, whichever directory the command was given in.
fn workspace_root() -> PathBuf {
    // Cargo sets the variable when it runs us; the built-in path serves a binary started by hand.
    let own =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    own.parent().map_or_else(|| own.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_built() {
        let needs = |args: &[&str]| needs_product(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(needs(&[]) && needs(&["--quick"]) && needs(&["holder", "adopt"]) && needs(&["daemon"]));
        assert!(!needs(&["store"]) && !needs(&["store", "--quick"]));
    }
}

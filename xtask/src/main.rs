//! `cargo xtask`: the chores of this workspace behind one command line.
//! This file reads the arguments and maps outcomes to exit codes; the work is in the modules.

mod cargo;
mod fuzz;
mod house;
mod plan;
mod slowest;
mod steps;
mod tools;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

use crate::cargo::Invocation;
use crate::steps::Paint;

/// Chores of the Rekindle workspace: checks, benchmarks, house rules.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask test                 everything CI checks
  cargo xtask test torn_tail       only the tests whose name contains `torn_tail`
  cargo xtask house                only the house rules
  cargo xtask fuzz api             only the fuzz of the HTTP interface
  cargo xtask demo                 build, and watch it work
  cargo xtask chaos                build, and have it test itself on this machine
  cargo xtask bench store          the benchmarks of the store";

#[derive(Subcommand)]
enum Command {
    /// Check everything CI checks: format, lints, house rules, build, tests, documentation, fuzz.
    ///
    /// Stops at the first step that fails and prints the command that repeats it alone.
    #[command(after_help = "\
Examples:
  cargo xtask test                 all steps
  cargo xtask test --long          all steps, the crash tests with many more cases
  cargo xtask test torn_tail wal   only the tests named by the filters, no other step")]
    Test(TestArgs),

    /// Run the benchmarks in release mode; all arguments go to the bench binary.
    ///
    /// Without a name all benchmarks run. `cargo xtask bench NAME --help` shows what the bench binary takes.
    #[command(after_help = "\
Examples:
  cargo xtask bench                all benchmarks
  cargo xtask bench store          one group
  cargo xtask bench holder start   one row of another
  cargo xtask bench daemon         the daemon as a whole
  cargo xtask bench store --quick  fewer repetitions, for a first look
  cargo xtask bench store --json   for programs")]
    Bench {
        /// Which benchmark, then its own arguments.
        #[arg(value_name = "NAME", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },

    /// Build both binaries and run `rekindle demo`; all arguments go there.
    ///
    /// Kills daemons and agents for a few seconds and checks that nothing was lost.
    #[command(after_help = "\
Examples:
  cargo xtask demo                 watch it
  cargo xtask demo --keep          keep what it made, to look around in it
  cargo xtask demo --json          for programs")]
    Demo {
        /// The arguments of `rekindle demo`.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },

    /// Build both binaries and run `rekindle chaos`; all arguments go there.
    ///
    /// Kills, stops, cuts and damages for half a minute and holds every promise against what is there.
    #[command(after_help = "\
Examples:
  cargo xtask chaos                      for half a minute
  cargo xtask chaos --seconds 600        for ten
  cargo xtask chaos --seed 7 --rounds 3  the first three rounds of a plan, again")]
    Chaos {
        /// The arguments of `rekindle chaos`.
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },

    /// Let made-up requests at the product, and look whether it stands.
    Fuzz {
        #[command(subcommand)]
        target: fuzz::Target,
    },

    /// Check the house rules alone: layers, file heads, file sizes, forbidden words, cited promises.
    ///
    /// Prints one line for each violation: file, line, what is wrong, what to do.
    #[command(after_help = "\
Examples:
  cargo xtask house                exit code 0 if all rules hold, 1 if not")]
    House,
}

#[derive(Args)]
struct TestArgs {
    /// Let the randomised tests run many more cases (sets REKINDLE_TEST_LONG=1).
    #[arg(long)]
    long: bool,

    /// Run only the tests whose name contains one of these; skips all other steps.
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out one command; `false` means that something checked was not in order.
fn run(command: Command) -> anyhow::Result<bool> {
    let root = workspace_root();
    match command {
        Command::Test(args) => {
            let plan = plan::test(&root, args.long, &args.filters);
            steps::run_all(&mut io::stdout(), Paint::for_stdout(), plan)
        }
        Command::Bench { args } => {
            if needs_product(&args) {
                let build = "build --release --locked -p rekindle --bins";
                Invocation::new(&root, build).succeed().context("the product could not be built")?;
            }
            let bench = Invocation::new(&root, "run --release --locked -p rekindle-bench --").args(args);
            Ok(bench.status()?.success())
        }
        Command::Demo { args } => {
            // The build that README's installation makes too.
            show(&root, "--release", "demo", args)
        }
        Command::Chaos { args } => {
            // Only a debug build can be killed between any two steps.
            show(&root, "", "chaos", args)
        }
        Command::Fuzz { target: fuzz::Target::Api(args) } => fuzz::api(&root, args).map(|()| true),
        Command::House => house::report(&root, &mut io::stdout()),
    }
}

/// Builds both binaries in a profile and runs a command of `rekindle`.
fn show(root: &Path, profile: &str, command: &str, args: Vec<OsString>) -> anyhow::Result<bool> {
    // Notices go to standard error: stdout may be for a program.
    eprintln!("1 of 2: building rekindle and rekindle-holder; the first time takes some minutes");
    let build = Invocation::new(root, &format!("build {profile} --locked -p rekindle --bins"));
    build.succeed().context("the binaries could not be built")?;
    eprintln!("2 of 2: rekindle {command}");
    let run = format!("run {profile} --quiet --locked -p rekindle --bin rekindle -- {command}");
    Ok(Invocation::new(root, &run).args(args).status()?.success())
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
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bench_passes_every_argument_through() {
        let cli = Cli::try_parse_from(["xtask", "bench", "store", "--quick", "--json", "--", "x"]);
        let Ok(Cli { command: Command::Bench { args } }) = cli else {
            panic!("bench was not understood");
        };
        assert_eq!(args, ["store", "--quick", "--json", "--", "x"]);

        let cli = Cli::try_parse_from(["xtask", "bench", "--quick"]);
        let Ok(Cli { command: Command::Bench { args } }) = cli else {
            panic!("bench without a name was not understood");
        };
        assert_eq!(args, ["--quick"]);
    }

    #[test]
    fn demo_and_chaos_pass_every_argument_through() {
        let cli = Cli::try_parse_from(["xtask", "demo", "--json", "--keep"]);
        let Ok(Cli { command: Command::Demo { args } }) = cli else {
            panic!("demo was not understood");
        };
        assert_eq!(args, ["--json", "--keep"]);
        let cli = Cli::try_parse_from(["xtask", "chaos", "--seed", "7"]);
        let Ok(Cli { command: Command::Chaos { args } }) = cli else {
            panic!("chaos was not understood");
        };
        assert_eq!(args, ["--seed", "7"]);
    }

    #[test]
    fn what_is_measured_is_built() {
        let needs = |args: &[&str]| needs_product(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(needs(&[]) && needs(&["--quick"]) && needs(&["holder", "adopt"]) && needs(&["daemon"]));
        assert!(!needs(&["store"]) && !needs(&["store", "--quick"]));
    }
}

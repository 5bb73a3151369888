//! What `cargo xtask test` checks, and in which order: the cheap and the telling first.
//! CI runs exactly this, so a change passes there if it passes here.

use std::fs;
use std::path::Path;

use crate::cargo::Invocation;
use crate::fuzz;
use crate::slowest;
use crate::steps::Step;
use crate::tools;

/// The profile of `cargo nextest` for tests that take long.
const LONG: &str = "long";

/// Tests at once for each core: most of them wait for processes more than they compute.
const TESTS_PER_CORE: usize = 2;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The program that runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// `cargo nextest`: a process for each test, with a time limit.
    Nextest,
    /// `cargo test`: part of every Rust installation.
    Plain,
}

/// Returns the steps: all of them, or the tests alone if there are filters.
pub(crate) fn test(root: &Path, long: bool, filters: &[String]) -> Vec<Step> {
    let nextest = Invocation::new(root, "nextest --version").is_available();
    let runner = if nextest { Runner::Nextest } else { Runner::Plain };
    if filters.is_empty() { everything(root, runner, long) } else { test_steps(root, runner, long, filters) }
}

fn everything(root: &Path, runner: Runner, long: bool) -> Vec<Step> {
    let cargo = |words| Invocation::new(root, words);
    let doc = cargo("doc --workspace --no-deps --locked").env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        cargo_step("format", cargo("fmt --all --check")),
        cargo_step("lints", cargo("clippy --workspace --all-targets --locked -- -D warnings")),
        Step { repeat: "cargo xtask house".to_owned(), ..cargo_step("house rules", house(root)) },
        cargo_step("documentation", doc),
        cargo_step("build", cargo("build --workspace --locked")),
        tools_step(),
    ];
    steps.extend(test_steps(root, runner, long, &[]));
    steps.extend([
        cargo_step("doc tests", lengthened(cargo("test --doc --workspace --locked"), long)),
        fuzz_step(root),
    ]);
    steps
}

/// Returns the tests, behind what they start and the runner does not build.
fn test_steps(root: &Path, runner: Runner, long: bool, filters: &[String]) -> Vec<Step> {
    // With `--tests` no example is built.
    let dev = Invocation::new(root, "build -p rekindle --example rekindle-dev --locked");
    let dev = (runner == Runner::Plain).then(|| cargo_step("rekindle-dev", dev));
    let tests = tests(root, runner, long, filters);
    let report = slowest::report_path(root, if long { LONG } else { "default" });
    let action = {
        let tests = tests.clone();
        Box::new(move || {
            // The report of an earlier run would name its tests.
            let _ = fs::remove_file(&report);
            let outcome = tests.succeed();
            slowest::lines(&report).iter().for_each(|line| println!("{line}"));
            outcome
        })
    };
    dev.into_iter().chain([Step { name: "tests", repeat: tests.to_string(), action }]).collect()
}

fn tools_step() -> Step {
    let action = Box::new(|| tools::ALL.iter().try_for_each(tools::Tool::ensure));
    Step { name: "tools", repeat: tools::INSTALL.to_owned(), action }
}

fn fuzz_step(root: &Path) -> Step {
    let root = root.to_path_buf();
    let action = Box::new(move || fuzz::api(&root, fuzz::CI));
    Step { name: "fuzz", repeat: fuzz::repeat(fuzz::CI), action }
}

/// Returns the command for all tests but those in documentation.
fn tests(root: &Path, runner: Runner, long: bool, filters: &[String]) -> Invocation {
    let words = match runner {
        Runner::Nextest => "nextest run --workspace --locked --test-threads",
        Runner::Plain => "test --workspace --locked --tests --no-fail-fast",
    };
    let threads = (runner == Runner::Nextest).then(|| (TESTS_PER_CORE * cores()).to_string());
    let mut command = Invocation::new(root, words).args(threads);
    if long && runner == Runner::Nextest {
        command = command.args(["--profile", LONG]);
    }
    if !filters.is_empty() {
        // Only behind the separator does `cargo test` take more than one filter.
        let separator = (runner == Runner::Plain).then_some("--");
        command = command.args(separator).args(filters);
    }
    lengthened(command, long)
}

fn lengthened(command: Invocation, long: bool) -> Invocation {
    if long { command.env("REKINDLE_TEST_LONG", "1") } else { command }
}

/// Checks the house rules. They are a program of their own: whoever asks for another chore does not wait until it is built.
pub(crate) fn house(root: &Path) -> Invocation {
    Invocation::new(root, "run --quiet --locked -p rekindle-house")
}

fn cargo_step(name: &'static str, command: Invocation) -> Step {
    Step { name, repeat: command.to_string(), action: Box::new(move || command.succeed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(runner: Runner, long: bool, filters: &[&str]) -> String {
        let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
        tests(Path::new("."), runner, long, &filters).to_string()
    }

    #[test]
    fn all_steps_in_order() {
        let commands: Vec<_> =
            everything(Path::new("."), Runner::Nextest, false).into_iter().map(|step| step.repeat).collect();
        assert_eq!(
            commands,
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets --locked -- -D warnings",
                "cargo xtask house",
                "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked",
                "cargo build --workspace --locked",
                "apt-get install curl python3-venv postgresql",
                &format!("cargo nextest run --workspace --locked --test-threads {}", 2 * cores()),
                "cargo test --doc --workspace --locked",
                "cargo xtask fuzz api --seconds 60 --seed 1",
            ]
        );
    }

    #[test]
    fn long_and_filters_reach_either_runner() {
        assert_eq!(
            command(Runner::Nextest, true, &["torn", "wal"]),
            format!(
                "REKINDLE_TEST_LONG=1 cargo nextest run --workspace --locked --test-threads {} --profile long torn wal",
                2 * cores()
            )
        );
        assert_eq!(
            command(Runner::Plain, false, &["torn", "wal"]),
            "cargo test --workspace --locked --tests --no-fail-fast -- torn wal"
        );
    }

    #[test]
    fn a_filter_skips_the_other_steps() {
        let steps = |runner| {
            let steps = test_steps(Path::new("."), runner, false, &["torn".to_owned()]);
            steps.into_iter().map(|step| step.name).collect::<Vec<_>>()
        };
        assert_eq!(steps(Runner::Nextest), ["tests"]);
        assert_eq!(steps(Runner::Plain), ["rekindle-dev", "tests"]);
    }
}

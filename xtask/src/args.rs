//! The command line of the chores: what was asked for, and the help.

use std::ffi::OsString;

use lexopt::prelude::*;

use crate::dist::DistArgs;
use crate::failure::{Context as _, Failure, Result};
use crate::fuzz::{self, ApiArgs};

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Check everything that CI checks, or run some tests.
    Test {
        /// The randomised tests run many more cases.
        long: bool,
        /// Only tests whose name contains one of these, and no other step.
        filters: Vec<String>,
    },
    /// Run the benchmarks with these arguments.
    Bench(Vec<OsString>),
    /// Build, and run `rekindle demo` with these arguments.
    Demo(Vec<OsString>),
    /// Build, and run `rekindle chaos` with these arguments.
    Chaos(Vec<OsString>),
    /// Draw the picture in README.md.
    Picture,
    /// Make what others install.
    Dist(DistArgs),
    /// Fuzz the HTTP interface.
    FuzzApi(ApiArgs),
    /// Check the house rules.
    House,
    /// Say what can be asked for.
    Help(&'static str),
}

impl Command {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command> {
        let mut args = lexopt::Parser::from_args(args);
        let name = match args.next()? {
            Some(Value(name)) => name.string()?,
            Some(Short('h') | Long("help")) => return Ok(Command::Help(HELP)),
            Some(other) => return Err(unexpected(other, "")),
            None => return Err(Failure::new(format!("a command is missing\n\n{HELP}"))),
        };
        match name.as_str() {
            "test" => test(args),
            "bench" => passed_on(args, BENCH, Command::Bench),
            "demo" => passed_on(args, DEMO, Command::Demo),
            "chaos" => passed_on(args, CHAOS, Command::Chaos),
            "fuzz" => fuzz_api(args),
            "house" => alone(args, "house", HOUSE, Command::House),
            "picture" => alone(args, "picture", PICTURE, Command::Picture),
            "dist" => dist(args),
            "help" => Ok(Command::Help(HELP)),
            _ => Err(Failure::new(format!("there is no command `{name}`\n\n{HELP}"))),
        }
    }
}

fn test(mut args: lexopt::Parser) -> Result<Command> {
    let (mut long, mut filters) = (false, Vec::new());
    while let Some(arg) = args.next()? {
        match arg {
            Long("long") => long = true,
            Value(filter) => filters.push(filter.string()?),
            Short('h') | Long("help") => return Ok(Command::Help(TEST)),
            other => return Err(unexpected(other, "test")),
        }
    }
    Ok(Command::Test { long, filters })
}

/// Leaves all arguments to the program that is run; a request for help that comes first is for us.
fn passed_on(
    mut args: lexopt::Parser,
    help: &'static str,
    command: impl Fn(Vec<OsString>) -> Command,
) -> Result<Command> {
    let args: Vec<OsString> = args.raw_args()?.collect();
    let wants_help = args.first().is_some_and(|first| first == "-h" || first == "--help");
    Ok(if wants_help { Command::Help(help) } else { command(args) })
}

fn fuzz_api(mut args: lexopt::Parser) -> Result<Command> {
    let mut chosen = fuzz::CI;
    let mut target = false;
    while let Some(arg) = args.next()? {
        match arg {
            Value(name) if name == "api" && !target => target = true,
            Long("seconds") => chosen.seconds = number(&mut args, "--seconds", 1)?,
            Long("seed") => chosen.seed = number(&mut args, "--seed", 0)?,
            Short('h') | Long("help") => return Ok(Command::Help(FUZZ)),
            other => return Err(unexpected(other, "fuzz")),
        }
    }
    if target { Ok(Command::FuzzApi(chosen)) } else { Err(Failure::new(format!("fuzz what?\n\n{FUZZ}"))) }
}

fn dist(mut args: lexopt::Parser) -> Result<Command> {
    let mut chosen = DistArgs::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("target") => chosen.target = args.value()?.string()?,
            Long("out") => chosen.out = args.value()?.into(),
            Short('h') | Long("help") => return Ok(Command::Help(DIST)),
            other => return Err(unexpected(other, "dist")),
        }
    }
    Ok(Command::Dist(chosen))
}

fn number(args: &mut lexopt::Parser, name: &str, least: u32) -> Result<u32> {
    let number: u32 = args.value()?.parse().context(|| name)?;
    if number < least { Err(Failure::new(format!("{name}: at least {least}"))) } else { Ok(number) }
}

/// Reads the arguments of a command that has none.
fn alone(mut args: lexopt::Parser, name: &str, help: &'static str, command: Command) -> Result<Command> {
    match args.next()? {
        None => Ok(command),
        Some(Short('h') | Long("help")) => Ok(Command::Help(help)),
        Some(other) => Err(unexpected(other, name)),
    }
}

fn unexpected(arg: lexopt::Arg<'_>, command: &str) -> Failure {
    let help = ["cargo xtask", command, "--help"].into_iter().filter(|word| !word.is_empty());
    Failure::new(format!("{}; see `{}`", arg.unexpected(), help.collect::<Vec<_>>().join(" ")))
}

const HELP: &str = "\
Chores of the Rekindle workspace: checks, benchmarks, house rules.

Usage: cargo xtask COMMAND

Commands:
  test     check everything CI checks: format, lints, house rules, build, tests, documentation, fuzz
  bench    run the benchmarks in release mode
  demo     build both binaries and run `rekindle demo`
  chaos    build both binaries and run `rekindle chaos`
  fuzz     let made-up requests at the product, and look whether it stands
  house    check the house rules alone
  picture  draw docs/demo.svg, the picture in README.md, from a real run
  dist     make what others install: static binaries in an archive, and a Debian package
  help     say this; `cargo xtask COMMAND --help` says more

Examples:
  cargo xtask test                 everything CI checks
  cargo xtask test torn_tail       only the tests whose name contains `torn_tail`
  cargo xtask house                only the house rules
  cargo xtask picture              the picture in README.md, again
  cargo xtask dist                 packages for this processor, in target/packages
  cargo xtask fuzz api             only the fuzz of the HTTP interface
  cargo xtask demo                 build, and watch it work
  cargo xtask chaos                build, and have it test itself on this machine
  cargo xtask bench store          the benchmarks of the store";

const TEST: &str = "\
Check everything CI checks: format, lints, house rules, build, tests, documentation, fuzz. Stops at the first step that fails and
prints the command that repeats it alone.

Usage: cargo xtask test [--long] [FILTER]...

  FILTER    run only the tests whose name contains one of these; skips all other steps
  --long    let the randomised tests run many more cases (sets REKINDLE_TEST_LONG=1)

Examples:
  cargo xtask test                 all steps
  cargo xtask test --long          all steps, the crash tests with many more cases
  cargo xtask test torn_tail wal   only the tests named by the filters, no other step";

const BENCH: &str = "\
Run the benchmarks in release mode; all arguments go to the bench binary. Without a name all benchmarks run.
`cargo xtask bench NAME --help` shows what the bench binary takes.

Usage: cargo xtask bench [NAME] [ARGS]...

Examples:
  cargo xtask bench                all benchmarks
  cargo xtask bench store          one group
  cargo xtask bench holder start   one row of another
  cargo xtask bench daemon         the daemon as a whole
  cargo xtask bench workspace      directories, beside git and tar
  cargo xtask bench tasks          tasks, up to a million
  cargo xtask bench pipeline       steps of pipelines, their cache, ledgers of a million records
  cargo xtask bench store --quick  fewer repetitions, for a first look
  cargo xtask bench store --json   for programs";

const DEMO: &str = "\
Build both binaries and run `rekindle demo`; all arguments go there. Kills daemons and agents for a few seconds and checks that
nothing was lost.

Usage: cargo xtask demo [ARGS]...

Examples:
  cargo xtask demo                 watch it
  cargo xtask demo --keep          keep what it made, to look around in it
  cargo xtask demo --json          for programs";

const CHAOS: &str = "\
Build both binaries and run `rekindle chaos`; all arguments go there. Kills, stops, cuts and damages for half a minute and holds
every promise against what is there.

Usage: cargo xtask chaos [ARGS]...

Examples:
  cargo xtask chaos                      for half a minute
  cargo xtask chaos --seconds 600        for ten
  cargo xtask chaos --seed 7 --rounds 3  the first three rounds of a plan, again";

const FUZZ: &str = "\
Let made-up requests at the HTTP interface of a daemon, from its own OpenAPI document. Needs python3 with venv; what else it needs
is installed below the target directory. The daemon has a home of its own, no PATH, and the demo agent for every command.

Usage: cargo xtask fuzz api [--seconds N] [--seed N]

  --seconds N    how long it may take [default: 60]
  --seed N       where the made-up requests begin: the same seed makes the same ones [default: 1]

Examples:
  cargo xtask fuzz api                         what CI does
  cargo xtask fuzz api --seconds 600 --seed 7  ten minutes of other requests";

const HOUSE: &str = "\
Check the house rules alone: layers, file heads, file sizes, forbidden words, cited promises, dead links. Prints one line for each violation:
file, line, what is wrong, what to do.

Usage: cargo xtask house

Examples:
  cargo xtask house                exit code 0 if all rules hold, 1 if not";

const PICTURE: &str = "\
Draw docs/demo.svg, the picture in README.md: builds both binaries, runs `rekindle demo` at a terminal of its own, and draws what it
showed and when. Commit the result.

Usage: cargo xtask picture

Examples:
  cargo xtask picture              when what the demonstration says has changed";

const DIST: &str = "\
Make what others install: builds both binaries in the `dist` profile, linked statically, and packs them with man pages, completions,
the user unit and the licenses into an archive and a Debian package. Both are unpacked into an empty directory and run the
demonstration there before they are handed out. Needs the target (`rustup target add TRIPLE`) and a C compiler for it (musl-tools).

Usage: cargo xtask dist [--target TRIPLE] [--out DIR]

  --target TRIPLE  what to build for [default: musl on this processor]
  --out DIR        where the packages go [default: target/packages]

Examples:
  cargo xtask dist
  cargo xtask dist --out /tmp/packages";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Command> {
        Command::parse(words.split_whitespace().map(OsString::from))
    }

    fn refused(words: &str) -> String {
        parsed(words).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_is_run_gets_every_argument_but_a_request_for_help_that_comes_first() {
        let words = |words: &str| words.split(' ').map(OsString::from).collect::<Vec<_>>();
        let bench = parsed("bench store --quick --json -- x").expect("understood");
        assert_eq!(bench, Command::Bench(words("store --quick --json -- x")));
        assert_eq!(parsed("bench --quick").expect("understood"), Command::Bench(words("--quick")));
        assert_eq!(parsed("demo --json --keep").expect("understood"), Command::Demo(words("--json --keep")));
        assert_eq!(parsed("chaos --seed 7").expect("understood"), Command::Chaos(words("--seed 7")));
        assert_eq!(parsed("bench --help").expect("understood"), Command::Help(BENCH));
        assert_eq!(parsed("bench store --help").expect("understood"), Command::Bench(words("store --help")));
    }

    #[test]
    fn tests_are_filtered_and_lengthened() {
        let test = |long, filters: &[&str]| Command::Test {
            long,
            filters: filters.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(parsed("test").expect("understood"), test(false, &[]));
        assert_eq!(parsed("test torn --long wal").expect("understood"), test(true, &["torn", "wal"]));
        assert!(refused("test --lnog").contains("cargo xtask test --help"));
    }

    #[test]
    fn the_fuzz_has_the_defaults_that_ci_uses() {
        assert_eq!(parsed("fuzz api").expect("understood"), Command::FuzzApi(fuzz::CI));
        let args = ApiArgs { seconds: 600, seed: 7 };
        assert_eq!(parsed("fuzz api --seconds=600 --seed 7").expect("understood"), Command::FuzzApi(args));
        assert!(refused("fuzz").contains("Usage: cargo xtask fuzz api"));
        assert!(refused("fuzz api --seconds 0").contains("--seconds: at least 1"));
        assert!(refused("fuzz api --seed x").contains("--seed"));
        let defaults = [format!("[default: {}]", fuzz::CI.seconds), format!("[default: {}]", fuzz::CI.seed)];
        assert!(defaults.iter().all(|default| FUZZ.contains(default)), "{FUZZ}");
    }

    #[test]
    fn packages_are_for_this_processor_unless_something_else_is_asked_for() {
        let own = DistArgs::default();
        assert!(own.target.ends_with("-unknown-linux-musl") && own.out.ends_with("target/packages"));
        assert_eq!(parsed("dist").expect("understood"), Command::Dist(own));
        let other = DistArgs { target: "aarch64-unknown-linux-musl".into(), out: "/tmp/p".into() };
        let words = "dist --target aarch64-unknown-linux-musl --out /tmp/p";
        assert_eq!(parsed(words).expect("understood"), Command::Dist(other));
        assert!(refused("dist x").contains("cargo xtask dist --help"));
    }

    #[test]
    fn every_command_has_a_help_that_names_it() {
        for name in ["test", "bench", "demo", "chaos", "fuzz", "house", "picture", "dist"] {
            let Ok(Command::Help(help)) = parsed(&format!("{name} --help")) else {
                panic!("{name} has none")
            };
            assert!(help.contains(&format!("Usage: cargo xtask {name}")), "{help}");
            assert!(HELP.contains(&format!("\n  {name} ")), "{name}");
        }
        assert_eq!(parsed("--help").expect("understood"), Command::Help(HELP));
        assert!(
            refused("").contains("a command is missing") && refused("tset").contains("no command `tset`")
        );
        assert!(refused("house x").contains("cargo xtask house --help"));
    }
}

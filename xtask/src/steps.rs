//! Runs steps one after the other and tells the reader which, how long, and how it ended.
//! Knows nothing of what the steps do; see `plan.rs` for that.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::failure::Result;

/// One thing to check.
pub(crate) struct Step {
    /// What is checked, in a word or two.
    pub(crate) name: &'static str,
    /// The command that repeats this step alone.
    pub(crate) repeat: String,
    /// Does the work; the error says how it ended.
    pub(crate) action: Box<dyn FnOnce() -> Result<()>>,
}

/// Whether what we say ourselves is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// With colours, for a terminal.
    Coloured,
    /// Text alone, for files and pipes.
    Plain,
}

const BOLD: &str = "1";
const GREEN: &str = "32";
const RED: &str = "31";

impl Paint {
    /// Colours only on a terminal, and only if NO_COLOR is unset.
    pub(crate) fn for_stdout() -> Self {
        if io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none() {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}

/// Runs the steps in order up to the first that fails; returns whether all passed.
pub(crate) fn run_all(out: &mut impl Write, paint: Paint, steps: Vec<Step>) -> Result<bool> {
    let total = steps.len();
    let mut begun = 0;
    let mut summary = Vec::new();
    let mut failed = None;
    let start = Instant::now();
    let mut steps = steps.into_iter();

    for step in steps.by_ref() {
        begun += 1;
        let headline = format!("[{begun}/{total}] {}: {}", step.name, step.repeat);
        writeln!(out, "{}", paint.paint(BOLD, &headline))?;
        out.flush()?;

        let began = Instant::now();
        let outcome = (step.action)();
        let took = began.elapsed();
        match outcome {
            Ok(()) => {
                writeln!(
                    out,
                    "[{begun}/{total}] {} {} in {}\n",
                    step.name,
                    paint.paint(GREEN, "ok"),
                    seconds(took)
                )?;
                summary.push((step.name, paint.paint(GREEN, "ok    "), Some(took)));
            }
            Err(error) => {
                summary.push((step.name, paint.paint(RED, "failed"), Some(took)));
                failed = Some((begun, step.name, step.repeat, error, took));
                break;
            }
        }
    }
    summary.extend(steps.map(|step| (step.name, "not run".to_owned(), None)));

    if let Some((number, name, _, error, took)) = &failed {
        writeln!(
            out,
            "[{number}/{total}] {name} {} after {}: {error}\n",
            paint.paint(RED, "failed"),
            seconds(*took)
        )?;
    }
    writeln!(out, "{}", paint.paint(BOLD, "summary"))?;
    let width = summary.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let whole = start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
    for (number, (name, verdict, took)) in summary.iter().enumerate() {
        let share = |took: &Duration| 100.0 * took.as_secs_f64() / whole;
        let took =
            took.map(|took| format!("{:>9} {:>3.0} %", seconds(took), share(&took))).unwrap_or_default();
        writeln!(out, "  {}  {name:width$}  {verdict}{took}", number + 1)?;
    }

    match failed {
        None => {
            let steps = if total == 1 { "the only step".to_owned() } else { format!("all {total} steps") };
            let verdict = format!("{steps} passed in {}", seconds(start.elapsed()));
            writeln!(out, "{}", paint.paint(GREEN, &verdict))?;
            Ok(true)
        }
        Some((number, name, repeat, ..)) => {
            let verdict = format!("step {number} of {total} failed: {name}");
            writeln!(out, "{}\nto repeat it alone: {repeat}", paint.paint(RED, &verdict))?;
            Ok(false)
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn step(name: &'static str, outcome: std::result::Result<(), &'static str>) -> Step {
        let action = Box::new(move || outcome.map_err(Failure::new));
        Step { name, repeat: format!("repeat {name}"), action }
    }

    fn output_of(steps: Vec<Step>) -> (bool, String) {
        let mut out = Vec::new();
        let passed = run_all(&mut out, Paint::Plain, steps).expect("writing to memory succeeds");
        (passed, String::from_utf8(out).expect("the output is text"))
    }

    #[test]
    fn passing_steps_are_announced_and_summed_up() {
        let (passed, text) = output_of(vec![step("one", Ok(())), step("two", Ok(()))]);
        assert!(passed);
        assert!(text.contains("[1/2] one: repeat one\n[1/2] one ok in 0.0 s\n"), "{text}");
        assert!(text.contains("all 2 steps passed in 0.0 s"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn the_first_failure_stops_and_says_how_to_repeat_it() {
        let never =
            Step { name: "three", repeat: String::new(), action: Box::new(|| panic!("must not run")) };
        let (passed, text) =
            output_of(vec![step("one", Ok(())), step("two", Err("exit status: 101")), never]);
        assert!(!passed);
        assert!(text.contains("[2/3] two failed after 0.0 s: exit status: 101"), "{text}");
        assert!(text.contains("  3  three  not run\n"), "{text}");
        assert!(text.ends_with("step 2 of 3 failed: two\nto repeat it alone: repeat two\n"), "{text}");
    }

    #[test]
    fn colours_are_only_used_when_asked_for() {
        assert_eq!(Paint::Coloured.paint(RED, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Paint::Plain.paint(RED, "x"), "x");
    }
}

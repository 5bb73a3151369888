//! What is shown: a line that lives while it goes on, at a terminal only; then the matrix of promises, what struck, and how to
//! see a broken promise again.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rekindle_client::failure::Failure;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, GOOD, PLAIN, WARN, cut, plural, styled, wrap};
use serde_json::json;

use super::matrix::{Line, Matrix};

/// What came of it.
pub(super) struct Outcome {
    pub(super) matrix: Matrix,
    pub(super) seed: u64,
    pub(super) rounds: u64,
    pub(super) took: Duration,
    /// Where it was.
    pub(super) place: PathBuf,
}

/// The line that lives, on stderr.
pub(super) struct Progress {
    live: bool,
    began: Instant,
    most: Option<Duration>,
    seed: u64,
}

impl Progress {
    pub(super) fn new(json: bool, seed: u64, most: Option<Duration>) -> Progress {
        Progress { live: !json && io::stderr().is_terminal(), began: Instant::now(), most, seed }
    }

    /// Says what happens now.
    pub(super) fn tell(&mut self, round: u64, what: &str, checked: u64) {
        if !self.live {
            return;
        }
        let elapsed = self.began.elapsed().as_secs();
        let of = self.most.map(|most| format!(" of {}", most.as_secs())).unwrap_or_default();
        let line = format!(
            "seed {}, round {round}, {elapsed}{of} s, {} so far: {what}",
            self.seed,
            plural(checked, "check")
        );
        let width = output::stderr_width().unwrap_or(80).saturating_sub(1);
        anstream::eprint!("\r\x1b[2K{}", styled(DIM, cut(&line, width)));
        let _ = io::stderr().flush();
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.live {
            anstream::eprint!("\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}

/// Prints what came of it.
pub(super) fn print(json: bool, outcome: &Outcome, kept: Option<&Path>) -> Result<(), Failure> {
    let mut out = output::stdout();
    if json {
        let mut report = outcome.matrix.to_json();
        report["seed"] = json!(outcome.seed);
        report["rounds"] = json!(outcome.rounds);
        report["millis"] = json!(u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX));
        report["checked"] = json!(outcome.matrix.checked());
        report["dir"] = json!(outcome.place);
        report["kept"] = json!(kept);
        report["repeat"] = json!(repeat(outcome));
        writeln!(out, "{report}")?;
    } else {
        write!(out, "{}", text(outcome, kept, output::width()))?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the command that plays the same plan.
fn repeat(outcome: &Outcome) -> String {
    format!("rekindle chaos --seed {} --rounds {}", outcome.seed, outcome.rounds)
}

fn text(outcome: &Outcome, kept: Option<&Path>, width: usize) -> String {
    let matrix = &outcome.matrix;
    let head = format!("{:<4} {:>7} {:>7} {:>8}  promise", "", "checked", "held", "violated");
    let mut text = format!("{}\n", styled(BOLD, cut(&head, width)));
    for line in matrix.lines() {
        text += &row(&line, width);
    }
    text += &format!("\n{}\n", styled(BOLD, "what struck"));
    for (fault, times, skipped) in matrix.faults() {
        let why = match skipped {
            Some(why) => format!(" ({why})"),
            None if times == 0 => " (did not come up; more rounds will have it)".into(),
            None => String::new(),
        };
        let style = if times == 0 { DIM } else { PLAIN };
        let line = format!("{}{why}", fault.words());
        let head = format!("{times:>12}  ");
        text += &format!("{}\n", styled(style, wrap(&line, width, &head, &" ".repeat(head.len()))));
    }
    for violation in matrix.violations() {
        let line = format!(
            "I{} in round {}, {}: {}",
            violation.promise, violation.round, violation.place, violation.what
        );
        text += &format!("\n{}\n", styled(BAD, wrap(&line, width, "✗ ", "  ")));
    }
    let (took, rounds) = (outcome.took.as_secs_f64(), plural(outcome.rounds, "round"));
    let (checks, seed) = (plural(matrix.checked(), "check"), outcome.seed);
    let (style, verdict) = match matrix.holds() {
        true => (GOOD, "Every promise that was looked at held"),
        false => (BAD, "A promise was broken"),
    };
    let verdict = format!("{verdict}: {checks} in {rounds}, {took:.1} s, seed {seed}.");
    text += &format!("\n{}\n", styled(style, wrap(&verdict, width, "", "")));
    if !matrix.holds() {
        let again = "The same plan, again (its timing is the machine's):";
        text += &format!("{again}\n  {}\n", repeat(outcome));
    }
    if let Some(kept) = kept {
        text += &format!("kept: {}\n", kept.display());
    }
    text
}

fn row(line: &Line, width: usize) -> String {
    let style = match (line.violated, line.checked) {
        (0, 0) => DIM,
        (0, _) => PLAIN,
        _ => BAD,
    };
    let head = format!("{:<4} {:>7} {:>7} {:>8}  ", line.promise, line.checked, line.held, line.violated);
    let name = match line.not_exercised {
        Some(why) => format!("{} (not exercised: {why})", line.name),
        None => line.name.to_owned(),
    };
    let style = if line.promise == "I11" && line.checked == 0 { WARN } else { style };
    format!("{}\n", styled(style, wrap(&name, width, &head, &" ".repeat(head.len()))))
}

#[cfg(test)]
mod tests {
    use super::super::matrix::Check;
    use super::*;

    #[test]
    fn a_broken_promise_says_what_where_and_how_to_see_it_again() {
        let mut matrix = Matrix::default();
        matrix.take(3, "sess_1", vec![Check::that(5, false, || "the prompt r3s1m0 was given twice".into())]);
        let took = Duration::from_millis(1500);
        let outcome = Outcome { matrix, seed: 7, rounds: 3, took, place: "/x".into() };
        let text = text(&outcome, Some(Path::new("/x")), 80);
        let text = anstream::adapter::strip_str(&text).to_string();
        for words in [
            "✗ I5 in round 3, sess_1:",
            "rekindle chaos --seed 7 --rounds 3",
            "kept: /x",
            "A promise was broken",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(text.lines().all(|line| output::columns(line) <= 80), "{text}");
    }
}

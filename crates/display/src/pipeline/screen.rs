//! Where the lines of runs go: stdout, with a line below them at a terminal that says what goes on.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rekindle_client::Failure;
use rekindle_client::clock::SystemClock;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_terminal::output;

use super::words::took;

/// Where lines go: stdout, with a line below them at a terminal that says what goes on.
pub struct Screen {
    /// A program reads: records are printed as they stand.
    json: bool,
    out: Box<dyn Write>,
    bar: Option<ProgressBar>,
    /// Several runs are shown: a record does not say whose it is.
    several: bool,
}

impl Screen {
    /// Begins, for a program that reads (`json`) or for a person.
    pub fn new(json: bool, several: bool) -> Screen {
        let out: Box<dyn Write> =
            if json { Box::new(output::verbatim()) } else { Box::new(output::stdout()) };
        let shows = !json && std::io::stderr().is_terminal() && output::is_terminal();
        let bar = shows.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Screen { json, out, bar, several }
    }

    /// Draws what goes on: steps, and since when.
    pub fn draw(&self, going: impl Iterator<Item = (String, Timestamp)>) {
        let Some(bar) = &self.bar else { return };
        let now = SystemClock.now();
        let texts = going.map(|(step, since)| format!("{step} for {}", took(now.millis_since(since))));
        bar.set_message(texts.collect::<Vec<_>>().join(", "));
    }

    /// Prints a record: as it stands, or as the lines that it makes.
    pub fn show(&mut self, run_id: &str, record: &str, lines: &[String]) -> Result<(), Failure> {
        let (json, several, out) = (self.json, self.several, &mut self.out);
        let mut print = || -> std::io::Result<()> {
            match (json, several) {
                (true, true) => writeln!(out, r#"{{"run_id":"{run_id}","record":{record}}}"#)?,
                (true, false) => writeln!(out, "{record}")?,
                (false, _) => lines.iter().try_for_each(|line| writeln!(out, "{line}"))?,
            }
            out.flush()
        };
        match &self.bar {
            Some(bar) => bar.suspend(print)?,
            None => print()?,
        }
        Ok(())
    }

    /// Says something beside that.
    pub fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| anstream::eprintln!("{text}")),
            None => anstream::eprintln!("{text}"),
        }
    }

    /// Takes the line away that says what goes on.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

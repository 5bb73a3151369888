//! How far a check has come, for a person who waits.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rekindle_store::check::Progress;

/// How long a check may take before its progress is shown.
const QUIET_FOR: Duration = Duration::from_secs(1);

/// A progress bar that shows itself late, and only to a person.
pub(super) struct Bar {
    began: Instant,
    bar: Option<ProgressBar>,
    visible: bool,
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar { began: Instant::now(), bar: None, visible: std::io::stderr().is_terminal() }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if !self.visible || self.began.elapsed() < QUIET_FOR {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("checking {msg} {bar:30} {pos}/{len}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(progress.what);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

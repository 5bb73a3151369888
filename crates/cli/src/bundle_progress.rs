//! A bar for bundles: shown at a terminal once reading or writing one has taken a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rekindle_service::bundles::Progress;

/// Whatever is done by then needs no bar.
const AFTER: Duration = Duration::from_secs(1);

/// A bar that appears when it is worth it.
pub(crate) struct BundleProgress {
    begun: Instant,
    hidden: bool,
    bar: Option<ProgressBar>,
}

impl BundleProgress {
    /// Begins; `hidden` where a program reads.
    pub(crate) fn new(hidden: bool) -> BundleProgress {
        BundleProgress { begun: Instant::now(), hidden, bar: None }
    }

    /// Shows how far it has come.
    pub(crate) fn show(&mut self, progress: Progress) {
        if self.hidden || self.begun.elapsed() < AFTER {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(progress.doing);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }

    /// Takes it away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

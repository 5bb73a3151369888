//! The daemon's log: what is told of its doings goes to standard error, which is a file or a terminal, without anyone waiting for
//! whoever reads it. The environment and the configuration say how much is told, and in which form.

mod choice;
mod writer;

use tracing_subscriber::EnvFilter;

use self::choice::{Choice, Format};
pub(crate) use self::writer::Log;
use crate::config::LogConfig;

/// Begins to log; everything is written when the log is dropped.
pub(crate) fn init(config: &LogConfig) -> Log {
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let Choice { filter, format, warnings } = Choice::of(variable, config);
    let log = Log::start(std::io::stderr());
    let writer = log.writer();
    let subscriber = tracing_subscriber::fmt()
        // It would complain on the same stream, and a complaint that cannot be written is a panic.
        .log_internal_errors(false)
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(move || writer.clone())
        .with_ansi(false);
    let _ = match format {
        Format::Text => subscriber.with_target(false).try_init(),
        Format::Json => subscriber.json().flatten_event(true).with_span_list(false).try_init(),
    };
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    log
}

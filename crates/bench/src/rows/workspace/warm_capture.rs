//! The capture before an agent's turn, of a directory in which nothing has changed: what a person waits for at every prompt. All
//! but the record that names it.

use anyhow::Context as _;
use rekindle_workspace::CaptureOptions;

use super::{generated_files, workspaces};
use crate::context::Context;
use crate::measure::Latencies;
use crate::table::{Row, Target, Unit};

/// Files of the directory: those of a usual project.
const FILES: usize = 10_000;

/// What it may take, in microseconds.
const AT_MOST: f64 = 10_000.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let dir = context.directory()?;
    let (root, workspaces) = (dir.path().join("files"), workspaces(&dir.path().join("home"))?);
    generated_files::make(&root, FILES)?;
    let capture = || workspaces.capture_for_now(CaptureOptions::new(&root)).context("cannot capture");
    for _ in 0..3 {
        capture()?;
    }
    let mut latencies = Latencies::default();
    for _ in 0..context.pick(200, 50) {
        latencies.time(capture)?;
    }
    let what = format!("warm capture before a turn, {FILES} files");
    Ok(vec![
        Row::alone(format!("{what}, p50"), Unit::Micros, latencies.percentile(0.5), Target::AtMost(AT_MOST)),
        Row::alone("… p99", Unit::Micros, latencies.percentile(0.99), Target::None),
    ])
}

//! What happened to a task, who did it and why.

use std::io::Write;

use rekindle_client::failure::Failure;
use rekindle_terminal::output::{DIM, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::TransitionView;

use super::table::{status_word, style};

/// Writes a line for each change.
pub fn write_history(out: &mut dyn Write, transitions: &[TransitionView]) -> Result<(), Failure> {
    for line in transitions {
        let why = line.reason.as_deref().filter(|why| !why.is_empty());
        let why = why.map(|why| format!(": {}", sanitise::line(why))).unwrap_or_default();
        let (n, at, by) = (line.n, line.at, styled(DIM, format_args!("by {}", sanitise::line(&line.actor))));
        writeln!(
            out,
            "{n:>3}  {at}  {}  {by}{why}",
            styled(style(line.to), format_args!("{:<9}", status_word(line.to)))
        )?;
    }
    Ok(())
}

//! Waits for an answer: who asks, what, what may be answered, and with which command.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::Failure;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{BOLD, DIM, WARN, styled, when};
use rekindle_wire::view::{WaitState, WaitView};

use crate::live::{Ask, how_to_answer};
use crate::record_text::word;

/// Writes what each wait asks, and how it is answered.
pub fn write_waits(out: &mut dyn Write, waits: &[WaitView]) -> Result<(), Failure> {
    let now = SystemClock.now();
    if waits.is_empty() {
        writeln!(out, "no open questions")?;
    }
    for wait in waits {
        let ask = Ask::read(wait.wait_id.as_str(), &word(&wait.kind), &wait.asked());
        let is_void = wait.state == WaitState::Void;
        let void = if is_void { styled(WARN, "  void: its agent is gone") } else { String::new() };
        writeln!(out, "{}  {}{void}", styled(BOLD, wait.wait_id), styled(DIM, wait.session_id))?;
        let until = wait.deadline_at.map(|at| format!(", until {at}")).unwrap_or_default();
        writeln!(out, "  {}", styled(DIM, format_args!("asked {}{until}", when(wait.since, now))))?;
        for (style, line) in ask.lines.iter().chain(&ask.options()) {
            writeln!(out, "  {}", styled(*style, line))?;
        }
        let how = how_to_answer(&ask);
        let how = match how.strip_prefix("answer with: ").filter(|_| is_void) {
            Some(command) => format!("an answer starts a new run: {command}"),
            None => how,
        };
        writeln!(out, "  {}", styled(DIM, how))?;
    }
    Ok(())
}

//! Questions to a person at a terminal before something is done that is hard to undo.

use std::io::{BufRead, IsTerminal};

use rekindle_client::Failure;
use rekindle_terminal::output;

use crate::context::Context;

/// Tells whether there is somebody who can be asked.
pub(crate) fn can_ask(context: &Context) -> bool {
    !context.json && output::is_terminal() && std::io::stdin().is_terminal()
}

/// Asks; anything but a yes is a no.
pub(crate) fn confirmed(question: &str) -> Result<bool, Failure> {
    anstream::eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

//! The acknowledgement of a command: in the daemon's words for programs, in ours for people.

use rekindle_client::failure::{Exit, Failure};
use rekindle_terminal::output::{json_line, stdout};

/// Acknowledges what was asked: the daemon's words as JSON, or ours on stderr.
pub(crate) fn acknowledge(json: bool, body: &[u8], text: &str) -> Result<Exit, Failure> {
    if json {
        json_line(&mut stdout(), body)?;
    } else {
        anstream::eprintln!("{text}");
    }
    Ok(Exit::Ok)
}

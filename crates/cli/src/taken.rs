//! Saying that something was done: in the daemon's words for programs, in ours for people.

use crate::failure::{Exit, Failure};
use crate::output::{json_line, stdout};

/// Says that something was taken: the daemon's words as JSON, or ours on stderr.
pub(crate) fn taken(json: bool, body: &[u8], text: &str) -> Result<Exit, Failure> {
    if json {
        json_line(&mut stdout(), body)?;
    } else {
        anstream::eprintln!("{text}");
    }
    Ok(Exit::Ok)
}

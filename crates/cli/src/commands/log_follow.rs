//! `rekindle log -f`: a session's records as they are written, until someone has seen enough.

use std::io::Write;
use std::sync::mpsc;

use rekindle_client::Client;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::follow::{Follow, Heard};
use rekindle_domain::line::Line;
use rekindle_terminal::output;
use rekindle_wire::view::SessionView;

use super::Context;
use crate::record_text::Renderer;

/// Returns the record behind which to begin.
pub(super) fn after(client: &Client, session: &str, from: u64, last: Option<u64>) -> Result<u64, Failure> {
    let after = from.saturating_sub(1);
    let Some(last) = last else { return Ok(after) };
    let session: SessionView = client.get(&format!("/api/sessions/{session}"))?;
    Ok(after.max(session.last_seq.saturating_sub(last)))
}

/// Follows the log. Ctrl-C ends it as it ends any command.
pub(super) fn run(context: &Context, client: &Client, session: String, after: u64) -> Result<Exit, Failure> {
    let (tell, heard) = mpsc::channel();
    let follow = Follow { target: client.target().clone(), session, after };
    follow.begin(move |news| tell.send(news).is_ok());
    let mut renderer = Renderer::new(context.blobs());
    let mut out = output::stdout();
    for news in heard {
        match news {
            Heard::Record(line) if context.json => {
                output::json_line(&mut output::verbatim(), line.as_bytes())?
            }
            Heard::Record(line) => match Line::parse(line.as_bytes()) {
                Ok(line) => {
                    renderer.write(&line, &mut out)?;
                    out.flush()?;
                }
                Err(error) => anstream::eprintln!("note: a record cannot be read: {error}"),
            },
            Heard::Words(_) | Heard::Back { away: false } => {}
            Heard::Away => anstream::eprintln!("note: the daemon went away; waiting for the next one"),
            Heard::Back { away: true } => anstream::eprintln!("note: a daemon is there again"),
            Heard::Reset { last_seq } => {
                anstream::eprintln!(
                    "note: the end of the log was lost in a crash; it goes on behind record {last_seq}"
                );
            }
            Heard::Deleted => {
                anstream::eprintln!("note: the session was removed");
                return Ok(Exit::Ok);
            }
            Heard::Over(failure) => return Err(failure),
        }
    }
    Ok(Exit::Ok)
}

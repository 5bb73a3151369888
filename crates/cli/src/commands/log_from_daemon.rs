//! `rekindle log` of a daemon: a session's records as they are written, until someone has seen enough (`-f`), or those that are
//! there, page by page, where the daemon is elsewhere.

use std::sync::mpsc;

use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::{Client, Exit, Failure};
use rekindle_display::record_text::RecordPrinter;
use rekindle_terminal::sanitise;
use rekindle_wire::view::LogPage;

use super::Context;

/// Records fetched at a time.
const PAGE: u64 = 500;

/// Returns the record behind which to begin.
pub(super) fn after(client: &Client, session: &str, from: u64, last: Option<u64>) -> Result<u64, Failure> {
    let after = from.saturating_sub(1);
    let Some(last) = last else { return Ok(after) };
    Ok(after.max(client.session(session)?.last_seq.saturating_sub(last)))
}

/// Prints the records behind one.
pub(super) fn fetch(
    context: &Context,
    client: &Client,
    session: &str,
    mut after: u64,
) -> Result<Exit, Failure> {
    let mut printer = RecordPrinter::new(context.json, context.blobs());
    loop {
        let path = format!("/api/sessions/{session}/log?after={after}&limit={PAGE}");
        let page: LogPage = client.get(&path)?;
        if let Some(missing) = &page.history_missing {
            anstream::eprintln!(
                "note: what it was forked from cannot be read: {}",
                sanitise::line(&missing.detail)
            );
        }
        for record in &page.records {
            printer.print(record.get())?;
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => break,
        }
    }
    printer.flush()?;
    Ok(Exit::Ok)
}

/// Follows the log. Ctrl-C ends it as it ends any command.
pub(super) fn follow(
    context: &Context,
    client: &Client,
    session: String,
    after: u64,
) -> Result<Exit, Failure> {
    let (tell, heard) = mpsc::channel();
    let of = Followed::Session(session);
    let follow = Follow { target: client.target().clone(), of, after, attended: false };
    follow.begin(move |news| tell.send(news).is_ok());
    let mut printer = RecordPrinter::new(context.json, context.blobs());
    for news in heard {
        match news {
            Heard::Record(line) => {
                printer.print(&line)?;
                printer.flush()?;
            }
            Heard::Words(_) | Heard::Pending(_) | Heard::Back { away: false } => {}
            Heard::Away => anstream::eprintln!("note: the daemon went away; waiting for the next one"),
            Heard::Back { away: true } => anstream::eprintln!("note: a daemon is running again"),
            Heard::Reset { last_seq } => {
                anstream::eprintln!(
                    "note: the end of the log was lost in a crash; it continues after record {last_seq}"
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

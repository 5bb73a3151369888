//! `rekindle log` of a daemon elsewhere: records are fetched page by page.

use std::io::Write;

use rekindle_client::Client;
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::line::Line;
use rekindle_terminal::output;
use rekindle_wire::view::LogPage;

use super::Context;
use crate::record_text::Renderer;

/// Records fetched at a time.
const PAGE: u64 = 500;

/// Prints the records behind one.
pub(super) fn run(
    context: &Context,
    client: &Client,
    session: &str,
    mut after: u64,
) -> Result<Exit, Failure> {
    let mut plain = output::verbatim();
    let mut styled = output::stdout();
    let mut renderer = Renderer::new(context.blobs());
    loop {
        let path = format!("/api/sessions/{session}/log?after={after}&limit={PAGE}");
        let page: LogPage = client.get(&path)?;
        for record in &page.records {
            if context.json {
                // Verbatim: not even through what takes colours out.
                writeln!(plain, "{record}")?;
                continue;
            }
            match Line::parse(record.get().as_bytes()) {
                Ok(line) => renderer.write(&line, &mut styled)?,
                Err(error) => anstream::eprintln!("note: a record cannot be read: {error}"),
            }
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => break,
        }
    }
    plain.flush()?;
    styled.flush()?;
    Ok(Exit::Ok)
}

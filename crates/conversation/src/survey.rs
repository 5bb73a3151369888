//! What is to be known of a session from before the record where its showing begins: messages that still wait for their turn, and what
//! the agent offers. The log is read from its end back.

use std::collections::HashSet;

use rekindle_client::payloads::Payloads;
use rekindle_client::{Client, Failure};
use rekindle_domain::event::Event;
use rekindle_domain::line::Line;
use rekindle_wire::view::LogPage;

use crate::core::Fact;
use crate::feed::facts;

/// Records that are looked through at a time, and how often: what was said further back than this is not worth a wait.
const PAGE: u64 = 256;
const MAX_PAGES: usize = 40;

/// Looks through what is before a record, and after it as far as messages are taken from the queue there.
pub(crate) fn survey(client: &Client, id: &str, before: u64, blobs: &Payloads) -> Result<Vec<Fact>, Failure> {
    let mut earlier = Earlier::default();
    let mut end = before;
    for _ in 0..MAX_PAGES {
        if end == 0 || earlier.is_complete() {
            break;
        }
        let after = end.saturating_sub(PAGE);
        let limit = end - after;
        let page: LogPage = client.get(&format!("/api/sessions/{id}/log?after={after}&limit={limit}"))?;
        for raw in page.records.iter().rev() {
            earlier.look_back(raw.get(), blobs);
        }
        end = after;
    }
    Ok(earlier.found())
}

/// What was found, from the newest record back.
#[derive(Default)]
struct Earlier {
    commands: Option<Fact>,
    offers: Option<Fact>,
    queued: Vec<Fact>,
    /// Messages that wait no more.
    over: HashSet<String>,
    cleared: bool,
}

impl Earlier {
    fn is_complete(&self) -> bool {
        self.commands.is_some() && self.offers.is_some()
    }

    fn look_back(&mut self, line: &str, blobs: &Payloads) {
        if let Ok(record) = Line::parse(line.as_bytes())
            && let Ok(Event::RunCancelRequested(request)) = record.event()
        {
            self.over.extend(request.dropped.iter().map(ToString::to_string));
        }
        for fact in facts(line, blobs) {
            match fact {
                Fact::Commands(_) => drop(self.commands.get_or_insert(fact)),
                Fact::Offers { .. } => drop(self.offers.get_or_insert(fact)),
                Fact::QueueCleared | Fact::QueueLeft => self.cleared = true,
                Fact::Begun { message, .. } => self.over.extend(message),
                Fact::Queued { ref id, .. } if !self.cleared && !self.over.contains(id) => {
                    self.queued.push(fact);
                }
                Fact::Queued { .. } | Fact::Starting(_) | Fact::Mode(_) | Fact::Changed => {}
            }
        }
    }

    fn found(self) -> Vec<Fact> {
        let offered = self.commands.into_iter().chain(self.offers);
        self.queued.into_iter().rev().chain(offered).collect()
    }
}

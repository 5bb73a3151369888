//! Answer links are made: a token for each option, all in one append with the end of those they replace. The secrets are in what is
//! returned and nowhere else.

use std::time::Duration;

use rekindle_domain::compose::answer_links::{NewLinks, mint};
use rekindle_domain::id::{SessionId, TokenId, WaitId};
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::Presented;
use rekindle_notify::{AnswerLink, BaseUrl};
use rekindle_store::AppendError;
use rekindle_store::commit::{Append, Current, Expect};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use super::linkable::{label, linkable, options_of};
use crate::drive::provider::profile;
use crate::error::{Result, ServiceError};
use crate::ids::{millis, random, random_bytes};
use crate::records::Records;
use crate::show::request_of;
use crate::test_knobs::crash_point;

/// Tries of an append that something else came before.
const TRIES: usize = 16;

/// Who makes answer links: for the address of this daemon that people elsewhere know.
pub(crate) struct AnswerLinks {
    records: Records,
    base_url: BaseUrl,
    lifetime: Duration,
}

/// Links that were made.
#[derive(Debug)]
pub(crate) struct MintedLinks {
    /// One for each option that may be chosen by a link; none if no option may.
    pub(crate) links: Vec<AnswerLink>,
    /// Until when they are good.
    pub(crate) expires_at: Option<Timestamp>,
}

impl AnswerLinks {
    pub(crate) fn new(records: Records, base_url: BaseUrl, lifetime: Duration) -> AnswerLinks {
        AnswerLinks { records, base_url, lifetime }
    }

    /// Makes the links of an open wait `for_whom`: one sink of notifications, or one caller. Those made for the same one before
    /// are good for nothing once this returns; whoever dies in between has made none.
    pub(crate) fn mint(&self, session: SessionId, wait: WaitId, for_whom: &str) -> Result<MintedLinks> {
        for _ in 1..TRIES {
            match self.try_mint(session, wait, for_whom) {
                Err(error) if error.code == Code::Moved => {}
                outcome => return outcome,
            }
        }
        self.try_mint(session, wait, for_whom)
    }

    fn try_mint(&self, session: SessionId, wait: WaitId, for_whom: &str) -> Result<MintedLinks> {
        let store = &self.records.store;
        let Current { state, tokens, .. } = store.open_session(session)?;
        let closed = || ServiceError::wait_closed(wait);
        let kind = state.open_run().and_then(|run| run.wait(wait)).ok_or_else(closed)?.kind;
        let request = request_of(&**store, &state, wait);
        let request = request.as_ref().map_or("null", |request| request.as_json());
        let options = linkable(kind, &options_of(&*profile(&state.provider)?, kind.is_outside(), request));
        if options.is_empty() {
            return Ok(MintedLinks { links: Vec::new(), expires_at: None });
        }
        let now = self.records.time().steady;
        let (mut wanted, mut links) = (Vec::new(), Vec::new());
        for option in options {
            let id = TokenId::mint(millis(now), random()?);
            let (token, presented) = Presented::mint(id, random_bytes()?);
            links.push(AnswerLink { label: label(&option), url: link(&self.base_url, wait, &token) });
            wanted.push((option.option_id, presented));
        }
        let lifetime = i64::try_from(self.lifetime.as_millis()).unwrap_or(i64::MAX);
        let new =
            NewLinks { wait_id: wait, by: for_whom, tokens: &wanted, expires_at: now.plus_millis(lifetime) };
        let (records, expires_at) = mint(&state, &tokens, &new).ok_or_else(closed)?;
        // Nobody may have answered meanwhile: what ends with the wait must not be minted behind its end.
        let expect = Expect::LastSeq(state.last_seq);
        crash_point("mint_links.before");
        store.append(Append { expect, ..Append::durable(session, records) }).map_err(
            |error| match error {
                AppendError::Moved { .. } => ServiceError::moved().hint(Hint::TryAgain),
                error => error.into(),
            },
        )?;
        crash_point("mint_links.after");
        Ok(MintedLinks { links, expires_at: Some(expires_at) })
    }
}

/// Returns the link to the page that answers. Wait and token are in the fragment, which no browser sends: neither logs of servers
/// nor whoever looks at links in messages gets to see them.
fn link(base_url: &BaseUrl, wait: WaitId, token: &str) -> String {
    format!("{}/answer#{wait}.{token}", base_url.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_its_secret_in_the_fragment() {
        let base: BaseUrl = "https://box.example/rekindle/".parse().expect("an address");
        let link = link(&base, "wait_1".parse().expect("an id"), "rt_1.0707");
        assert_eq!(link, "https://box.example/rekindle/answer#wait_1.rt_1.0707");
        let minted =
            MintedLinks { links: vec![AnswerLink { label: "Yes".into(), url: link }], expires_at: None };
        let shown = format!("{minted:?}");
        assert!(shown.contains("Yes") && !shown.contains("0707"), "{shown}");
    }
}

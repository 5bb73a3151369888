//! Lists: sessions, waits, records, holders. Each has an order that nothing changes, and goes on behind a place in it: callers
//! are told that place as a cursor, and the list goes on there whatever came, changed or went meanwhile.

use std::collections::HashSet;
use std::path::Path;

use rekindle_domain::id::{SessionId, WaitId};
use rekindle_domain::projector::SessionStatus;
use rekindle_domain::session::Wait;
use rekindle_holder::client::{Inspection, LockState, inspect_each, list};
use rekindle_holder::dir::HolderDir;
use rekindle_wire::code::Code;
use rekindle_wire::filter::{Filter, HolderFilter, WaitFilter};
use rekindle_wire::hint::Hint;
use rekindle_wire::view::{HolderList, HolderState, HolderView, SessionList, WaitList};

use super::Views;
use super::directory::SessionEntry;
use super::page_key::{PageKey, refused};
use crate::error::{Result, ServiceError};

/// Sessions on a page, unless the caller wants fewer or more.
const PAGE: usize = 50;

/// Most on a page of any list, and what there is of waits and holders unless the caller wants fewer.
const MOST: usize = 500;

/// Sessions that are looked at at a time: some microseconds during which nobody else looks.
const BATCH: usize = 256;

/// The states of a holder's directory, as `GET /api/holders` has them.
pub(crate) const DIRECTORIES: [HolderState; 4] =
    [HolderState::Lives, HolderState::Dead, HolderState::Copied, HolderState::Unreadable];

impl Views {
    /// Lists sessions by when they were made, which never changes: none that is there throughout is missed or listed twice,
    /// whatever happens between two pages.
    pub(crate) fn list_sessions(&self, filter: &Filter) -> Result<SessionList> {
        let limit = page_size(filter.limit, PAGE, MOST)?;
        let mut place: Option<PageKey<SessionId>> = PageKey::from_cursor(filter.cursor.as_deref())?;
        if let Some(unknown) = filter.status.as_deref().and_then(unknown_status) {
            let message = format!("there is no status {unknown:?}");
            let statuses = SessionStatus::ALL.map(|status| status.as_str().to_owned()).to_vec();
            return Err(ServiceError::new(Code::InvalidQuery, message).hint(Hint::ChooseStatus { statuses }));
        }
        let wanted = |status: SessionStatus| {
            filter.status.as_ref().is_none_or(|wanted| wanted.split(',').any(|one| one == status.as_str()))
        };
        let title = filter.q.as_ref().map(|words| words.to_lowercase());
        self.directory.refresh_all(self.store());
        let (mut sessions, mut last) = (Vec::new(), None);
        loop {
            let batch = self.directory.made_before(place, BATCH);
            if batch.is_empty() {
                return Ok(SessionList { sessions, next: None });
            }
            for entry in &batch {
                place = Some(entry.place());
                // The cheapest first. The status is derived from memory; what else is shown is read from logs. One that is not
                // read may have any.
                let unread = entry.is_unread();
                let has_status = || unread || wanted(self.status(&entry.state, &entry.tokens).status);
                if !fits(entry, filter, title.as_deref()) || !has_status() {
                    continue;
                }
                if sessions.len() == limit {
                    return Ok(SessionList { sessions, next: last });
                }
                let view = self.session(entry);
                if unread || wanted(view.status) {
                    sessions.push(view);
                    last = place.map(|place| place.to_cursor());
                }
            }
        }
    }

    /// Lists waits by how long they wait.
    pub(crate) fn list_waits(&self, filter: &WaitFilter) -> Result<WaitList> {
        let limit = page_size(filter.limit, MOST, MOST)?;
        let after: Option<PageKey<WaitId>> = PageKey::from_cursor(filter.cursor.as_deref())?;
        if let Some(session) = filter.session {
            // Whoever asks for one waits for that one.
            let _ = self.directory.get(self.store(), session);
        }
        let entries = self.directory.find_all(self.store(), |entry| {
            let named = filter.session.is_none_or(|session| session == entry.state.id);
            named && !entry.state.deleted && entry.state.has_waits()
        });
        let waits_of =
            |entry: &SessionEntry| entry.state.run.as_ref().map(|run| run.waits.clone()).unwrap_or_default();
        let place_of = |wait: &Wait| PageKey { at: wait.since, id: wait.wait_id };
        let mut found: Vec<(PageKey<WaitId>, &SessionEntry)> = entries
            .iter()
            .flat_map(|entry| waits_of(entry).into_iter().map(move |wait| (place_of(&wait), entry)))
            .filter(|(place, _)| after.is_none_or(|after| *place > after))
            .collect();
        found.sort_unstable_by_key(|(place, _)| *place);
        let next = (found.len() > limit).then(|| found[limit - 1].0.to_cursor());
        found.truncate(limit);
        let waits = found.iter().filter_map(|(place, entry)| self.wait_of(entry, place.id)).collect();
        Ok(WaitList { waits, next })
    }

    /// Lists holders by their ids; only those on the page are looked at.
    pub(crate) fn list_holders(&self, filter: &HolderFilter) -> Result<HolderList> {
        let limit = page_size(filter.limit, MOST, MOST)?;
        let after = filter.cursor.as_deref();
        // Whatever a directory of a holder may be called is a place.
        if after.is_some_and(|after| !after.starts_with("h_")) {
            return Err(refused());
        }
        let mut dirs = list(&self.workers.agents.places.holders).map_err(ServiceError::internal)?;
        dirs.retain(|dir| after.is_none_or(|after| dir.name().as_str() > after));
        let more = dirs.len() > limit;
        dirs.truncate(limit);
        let next = dirs.last().filter(|_| more).map(HolderDir::name);
        let may_have = |entry: &SessionEntry| entry.state.agent.is_some() || entry.is_unread();
        let entries = self.directory.find_all(self.store(), may_have);
        let agents = entries.iter().filter_map(|entry| entry.state.agent.as_ref());
        let known: HashSet<String> = agents.map(|agent| agent.holder_id.to_string()).collect();
        // Those of a session that is still to be read are not known to be nobody's.
        let unread = entries.iter().filter(|entry| entry.is_unread()).map(|entry| entry.state.id.to_string());
        let unread: HashSet<String> = unread.collect();
        let is_unknown = |one: &Inspection| {
            let is_unread = one.launch.there().is_some_and(|launch| unread.contains(&launch.session_id));
            !known.contains(&one.holder_id) && !is_unread
        };
        let holders = inspect_each(&dirs).iter().map(|one| holder(one, is_unknown(one))).collect();
        Ok(HolderList { holders, next })
    }
}

fn unknown_status(wanted: &str) -> Option<&str> {
    wanted.split(',').find(|one| SessionStatus::ALL.iter().all(|status| status.as_str() != *one))
}

/// Tells whether a session is one that a filter asks for, but for its status; `title` has the words of its title in lower case.
pub(crate) fn fits(entry: &SessionEntry, filter: &Filter, title: Option<&str>) -> bool {
    let state = &entry.state;
    let below = |cwd: &String| {
        [&*state.working_dir, state.origin()].iter().any(|place| Path::new(place).starts_with(cwd))
    };
    let titled = |words: &str| state.title.to_lowercase().contains(words);
    !state.deleted
        && filter.agent.as_ref().is_none_or(|agent| *agent == state.provider.name())
        && filter.cwd.as_ref().is_none_or(below)
        && title.is_none_or(titled)
}

fn holder(one: &Inspection, unknown: bool) -> HolderView {
    let status = one.status.there();
    HolderView {
        id: one.holder_id.clone(),
        session_id: one.launch.there().map(|launch| launch.session_id.clone()),
        state: directory_state(&one.lock),
        unknown,
        pid: status.map(|status| status.holder.pid),
        agent_pid: status.and_then(|status| status.agent.as_ref()).map(|agent| agent.pid),
        phase: status.and_then(|status| serde_json::to_value(status.phase).ok()?.as_str().map(str::to_owned)),
        epoch: one.epoch.there().map(|note| note.epoch),
        versions: status.map(|status| status.versions),
        detached_since: status.and_then(|status| status.detached_since.clone()),
        trouble: status.and_then(|status| status.trouble.clone()),
    }
}

/// Says in a word what a directory's lock tells.
pub(crate) fn directory_state(lock: &LockState) -> HolderState {
    match lock {
        LockState::Held { .. } => HolderState::Lives,
        LockState::Free { .. } | LockState::Missing => HolderState::Dead,
        LockState::Copied { .. } => HolderState::Copied,
        LockState::Unreadable(_) => HolderState::Unreadable,
    }
}

/// Returns how many are to be on a page: what was asked for, within what is possible.
pub(crate) fn page_size(asked: Option<usize>, usual: usize, most: usize) -> Result<usize> {
    match asked {
        Some(0) => Err(ServiceError::new(Code::InvalidQuery, "a limit of 0 returns nothing")
            .hint(Hint::ChooseLimit { most })),
        asked => Ok(asked.unwrap_or(usual).min(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_a_size_within_limits() {
        assert_eq!(page_size(None, 50, 500), Ok(50));
        assert_eq!(page_size(Some(3), 50, 500), Ok(3));
        assert_eq!(page_size(Some(usize::MAX), 50, 500), Ok(500));
        assert_eq!(page_size(Some(0), 50, 500).map_err(|error| error.code), Err(Code::InvalidQuery));
    }
}

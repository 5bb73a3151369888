//! Lists: sessions, records, holders.

use std::collections::HashSet;
use std::path::Path;

use rekindle_domain::id::SessionId;
use rekindle_domain::projector::SessionStatus;
use rekindle_holder::client::{Inspection, inspect_all};

use crate::core::Core;
use crate::directory::Entry;
use crate::error::ServiceError;
use crate::feed::{LogLine, LogPage};
use crate::follow::{log_line, reader};
use crate::metrics::directory_state;
use crate::request::Filter;
use crate::shape;
use crate::view::{HolderView, SessionList};

/// Sessions on a page, unless the caller wants fewer or more.
const PAGE: usize = 50;
const MOST: usize = 500;

pub(super) fn sessions(core: &Core, filter: &Filter) -> Result<SessionList, ServiceError> {
    let after: Option<SessionId> = match &filter.cursor {
        Some(cursor) => Some(cursor.parse().map_err(|_| {
            ServiceError::invalid("invalid_cursor", "the cursor is none that a list gave out")
        })?),
        None => None,
    };
    if filter.limit == Some(0) {
        return Err(ServiceError::invalid("invalid_query", format_args!("limit is 1 to {MOST}")));
    }
    if let Some(unknown) = filter.status.as_deref().and_then(unknown_status) {
        let message = format!("there is no status {unknown:?}");
        return Err(ServiceError::invalid("invalid_query", message)
            .hint(SessionStatus::ALL.map(|status| status.as_str()).join(", ")));
    }
    let limit = filter.limit.unwrap_or(PAGE).min(MOST);
    let all = core.directory.all(&core.store);
    let from = match after {
        Some(after) => all.iter().position(|entry| entry.state.id == after).map_or(all.len(), |at| at + 1),
        None => 0,
    };
    let (mut sessions, mut next) = (Vec::new(), None);
    for entry in all[from..].iter().filter(|entry| fits(entry, filter)) {
        let view = shape::session(core, entry);
        let wanted = filter
            .status
            .as_ref()
            .is_none_or(|wanted| wanted.split(',').any(|one| one == view.status.as_str()));
        if !wanted {
            continue;
        }
        if sessions.len() == limit {
            next = sessions.last().map(|last: &crate::view::SessionView| last.id.to_string());
            break;
        }
        sessions.push(view);
    }
    Ok(SessionList { sessions, next })
}

fn unknown_status(wanted: &str) -> Option<&str> {
    wanted.split(',').find(|one| SessionStatus::ALL.iter().all(|status| status.as_str() != *one))
}

fn fits(entry: &Entry, filter: &Filter) -> bool {
    let state = &entry.state;
    let below = |cwd: &String| Path::new(&state.working_dir).starts_with(cwd);
    let titled = |words: &String| state.title.to_lowercase().contains(&words.to_lowercase());
    !state.deleted
        && filter.agent.as_ref().is_none_or(|agent| *agent == shape::agent_name(state))
        && filter.cwd.as_ref().is_none_or(below)
        && filter.q.as_ref().is_none_or(titled)
}

/// Reads records, up to where the log is damaged.
pub(super) fn log(core: &Core, entry: &Entry, after: u64, limit: usize) -> Result<LogPage, ServiceError> {
    let failed = |error: std::io::Error| ServiceError::internal(&error);
    let reader = reader(core, entry.state.id)?;
    let whole = entry.damage.as_ref().map_or(u64::MAX, |damage| damage.offset);
    let Some(offset) = reader.offset_of(after + 1).map_err(failed)? else {
        return Ok(LogPage { records: Vec::new(), next: None, damage: entry.damage.clone() });
    };
    let mut lines = reader.forward(offset);
    let mut records: Vec<LogLine> = Vec::new();
    while records.len() <= limit {
        let Some(raw) = lines.next().map_err(failed)?.filter(|raw| raw.start < whole) else { break };
        match log_line(raw.bytes) {
            Some(line) => records.push(line),
            // What cannot be read is not told; doctor says what it is.
            None => break,
        }
    }
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().map(|last| last.seq).filter(|_| more);
    let damage = entry.damage.clone().filter(|_| next.is_none());
    Ok(LogPage { records, next, damage })
}

pub(super) fn holders(core: &Core) -> Result<Vec<HolderView>, ServiceError> {
    let all = inspect_all(&core.places.holders).map_err(|error| ServiceError::internal(&error))?;
    let entries = core.directory.all(&core.store);
    let agents = entries.iter().filter_map(|entry| entry.state.agent.as_ref());
    let known: HashSet<String> = agents.map(|agent| agent.holder_id.to_string()).collect();
    Ok(all.iter().map(|one| holder(one, &known)).collect())
}

fn holder(one: &Inspection, known: &HashSet<String>) -> HolderView {
    let status = one.status.there();
    HolderView {
        id: one.holder_id.clone(),
        session_id: one.launch.there().map(|launch| launch.session_id.clone()),
        state: directory_state(&one.lock),
        unknown: !known.contains(&one.holder_id),
        pid: status.map(|status| status.holder.pid),
        agent_pid: status.and_then(|status| status.agent.as_ref()).map(|agent| agent.pid),
        phase: status.and_then(|status| serde_json::to_value(status.phase).ok()?.as_str().map(str::to_owned)),
        epoch: one.epoch.there().map(|note| note.epoch),
        versions: status.map(|status| status.versions),
        detached_since: status.and_then(|status| status.detached_since.clone()),
        trouble: status.and_then(|status| status.trouble.clone()),
    }
}

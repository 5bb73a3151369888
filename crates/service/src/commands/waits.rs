//! Waits that programs open on a run that goes on, and one wait as it is shown, over or not.

use std::time::Duration;

use rekindle_domain::event::{Raw, WaitKind};
use rekindle_domain::id::{SessionId, WaitId};
use rekindle_wire::code::Code;
use rekindle_wire::request::{NewWait, NewWaitKind, whole_json};
use rekindle_wire::view::WaitView;

use crate::commands::answers::entry_with;
use crate::drive::worker::{Command, Opening};
use crate::error::{Result, ServiceError};
use crate::idempotency::Key;
use crate::show::{Views, ended_wait};

/// Opens a wait on the run of a session that goes on.
pub(crate) fn open(
    views: &Views,
    session: SessionId,
    new: &NewWait,
    key: Option<Key>,
    by: &str,
) -> Result<WaitView> {
    let invalid = |error| ServiceError::new(Code::InvalidContent, error);
    whole_json(&new.request).map_err(invalid)?;
    let request = Raw::from_value(&new.request).map_err(invalid)?;
    let kind = match new.kind {
        NewWaitKind::ToolResult => WaitKind::ToolResult,
        NewWaitKind::External => WaitKind::External,
    };
    let timeout = new.timeout_s.map(Duration::from_secs);
    let opened = views.workers.ask(session, |reply| {
        Command::OpenWait(Box::new(Opening { kind, request, timeout, key, by: by.to_owned(), reply }))
    });
    show(views, opened?)
}

/// Shows a wait: open, void, or over, with its answer.
pub(crate) fn show(views: &Views, wait: WaitId) -> Result<WaitView> {
    let entry = entry_with(views, wait)?;
    let shown = views.wait_of(&entry, wait).or_else(|| ended_wait(views.store(), entry.state.id, wait));
    shown.ok_or_else(|| ServiceError::no_wait(wait))
}

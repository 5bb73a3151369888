//! The stream of tasks: its whole log, record by record, beside the cache that was made from it.

use rekindle_domain::id::StreamId;
use rekindle_domain::task::TasksState;

use super::HomeView;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::wal::{self, RESTORE};
use crate::cache::{self, Cached};
use crate::fold::Fold;
use crate::load_stream::load_stream;

/// Checks the stream of tasks, if the home has one.
pub(super) fn check(view: &HomeView, findings: &mut Findings) {
    let path = view.home.stream_log(StreamId::tasks());
    // Read before the log: that only grows, so that whatever the cache says must be in it.
    let cached = match cache::read::<TasksState>(&*view.home.disk, &view.home.tasks_state()) {
        Ok(Cached::Good(state)) => Some(state),
        Ok(Cached::Missing | Cached::Unreadable) | Err(_) => None,
    };
    let loaded = match load_stream(&view.home, TasksState::default(), None) {
        Ok(loaded) => loaded,
        Err(error) => {
            let what = format!("The task log cannot be read: {error}.");
            let remedy = format!("Make it readable: chmod 600 {}", path.display());
            return findings.add(Finding::new(Code::LogUnreadable, path, what, remedy));
        }
    };
    let last = loaded.fold.position().last_seq;
    if let Some(damage) = &loaded.damage {
        let what = format!("The task log is damaged after record {last}: {}.", damage.detail);
        return findings.add(Finding::new(Code::LogDamaged, path, what, RESTORE).byte(damage.offset));
    }
    if let Some(torn) = loaded.torn {
        findings.add(wal::torn(path.clone(), torn.offset, torn.len, torn.half_list));
    }
    let reaches = cached.map_or(0, |cached| Fold::position(&cached).last_seq);
    if reaches > last {
        let what = format!("The task log ends at record {last}, but its cache reaches record {reaches}.");
        findings.add(Finding::new(Code::LogDamaged, path, what, RESTORE));
    }
}

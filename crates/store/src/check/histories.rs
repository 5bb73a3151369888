//! The histories of forks: what each goes on from is there, and whole. A parent's log is read once, as its own; again only where
//! something is wrong with it.

use std::collections::{BTreeMap, HashSet};
use std::io;

use rekindle_domain::event::ForkedFrom;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;

use super::HomeView;
use super::blobs::{BlobUsage, references};
use super::code::{Code, Severity};
use super::finding::{Finding, Findings};
use super::session::Checked;
use crate::crash_report::at_work;
use crate::disk::if_exists;
use crate::history;
use crate::log::{Cursor, LogReader};

/// The forks among the sessions that were checked.
#[derive(Default)]
pub(super) struct ForkedSessions {
    forks: BTreeMap<SessionId, ForkedFrom>,
    /// Sessions in which something is lost.
    damaged: HashSet<SessionId>,
}

impl ForkedSessions {
    /// Takes in what was found of a session.
    pub(super) fn note(&mut self, session: SessionId, checked: &Checked) {
        if let Some(from) = checked.forked_from {
            self.forks.insert(session, from);
        }
        if checked.findings.iter().any(|finding| finding.severity == Severity::Error) {
            self.damaged.insert(session);
        }
    }

    /// Looks at the history of every fork.
    pub(super) fn check(&self, view: &HomeView, blob_usage: &BlobUsage, findings: &mut Findings) {
        for (session, from) in &self.forks {
            let _at_work = at_work(*session, "check");
            findings.add_all(self.problem(view, *session, from).map(|found| found.of(*session)));
            // Of a base file that cannot be read it was just told.
            let _ = mark_referenced(view, blob_usage, *session);
        }
    }

    fn problem(&self, view: &HomeView, session: SessionId, from: &ForkedFrom) -> Option<Finding> {
        // What cannot be opened at all was told of its log.
        let history = history::open(&view.home, session).ok()?;
        let kept = view.home.base(session);
        let has_base = view.home.disk.stat(&kept).is_ok();
        let path = if has_base { kept } else { view.home.log(from.session_id) };
        let remedy = format!(
            "The session works without it. Restore {} from a backup to see it again.",
            path.display()
        );
        if let Some(why) = &history.missing {
            let what = format!("What this session was forked from is missing: {why}.");
            return Some(Finding::new(Code::HistoryMissing, path, what, remedy).seq(from.seq));
        }
        if !has_base && !self.goes_on_from_damaged(from) {
            return None;
        }
        let (byte, detail) = match history.broken_base() {
            Ok(None) => return None,
            Ok(Some(damage)) => (Some(damage.offset), damage.detail),
            Err(error) => (None, error.to_string()),
        };
        let what = format!("What this session was forked from is damaged: {detail}.");
        let found = Finding::new(Code::HistoryDamaged, path, what, remedy);
        Some(match byte {
            Some(byte) => found.byte(byte),
            None => found,
        })
    }

    /// Tells whether something is lost in a session that a history is read through.
    fn goes_on_from_damaged(&self, from: &ForkedFrom) -> bool {
        let parents = std::iter::successors(Some(from), |from| self.forks.get(&from.session_id));
        parents.take(history::MOST_LOGS).any(|from| self.damaged.contains(&from.session_id))
    }
}

/// Notes the blobs that a base file names: nobody else may name them any more.
fn mark_referenced(view: &HomeView, blob_usage: &BlobUsage, session: SessionId) -> io::Result<()> {
    let base = LogReader::open(&*view.home.disk, &view.home.base(session), view.home.codec());
    let Some(base) = if_exists(base)? else { return Ok(()) };
    let mut lines = base.forward(Cursor::START);
    while let Some(raw) = lines.next()? {
        if let Ok(line) = Line::parse(raw.bytes) {
            for blob in references(line.text) {
                blob_usage.mark_referenced(view, &blob);
            }
        }
    }
    Ok(())
}

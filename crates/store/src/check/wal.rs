//! The write-ahead log: damaged and kept segments, and what its tail means for each session.

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Line;

use super::HomeView;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::home::{list, unknown};
use crate::layout::{DAMAGED_SUFFIX, Layout, segment_number};
use crate::log::{Cursor, LogReader};
use crate::offline::Offline;
use crate::redo::Completion;
use crate::wal::scan::ScanError;

/// Checks the write-ahead log's directory and what reading it found.
pub(super) fn check(view: &HomeView, offline: &Offline, findings: &mut Findings) {
    check_names(view, findings);
    for damage in &offline.wal_damage {
        let what =
            format!("Segment {} of the write-ahead log is damaged: {}.", damage.segment, damage.detail);
        let remedy = "The next start keeps the segment beside the log and recovers what it can; the findings about sessions say what is lost.";
        let path = view.home.segment(damage.segment);
        findings.add(Finding::new(Code::WalDamaged, path, what, remedy).byte(damage.offset));
    }
    // A segment that is being written to always seems torn.
    if let Some(torn) = offline.wal_torn.as_ref().filter(|_| !view.owned) {
        let path = view.home.segment(torn.segment);
        let what = format!("The write-ahead log ends in the middle of a write: {}.", torn.detail);
        let remedy = "Nothing to do: a crash was survived, and the incomplete write was never acknowledged.";
        findings.add(Finding::new(Code::WalTorn, path, what, remedy).byte(torn.offset));
    }
}

/// Says that the write-ahead log could not be read at all.
pub(super) fn unreadable(layout: &Layout, error: &ScanError) -> Finding {
    let (path, cause) = match error {
        ScanError::Read(error) => (error.path.clone(), error.source.to_string()),
        ScanError::Newer { .. } | ScanError::Unknown { .. } => (layout.wal(), error.to_string()),
    };
    let what =
        format!("The write-ahead log cannot be read, so logs may look shorter than they are: {cause}.");
    let remedy = format!("Make it readable, then check again: chmod 600 {}", path.display());
    Finding::new(Code::WalUnreadable, path, what, remedy)
}

fn check_names(view: &HomeView, findings: &mut Findings) {
    let directory = view.home.wal();
    for entry in list(&*view.raw, &directory, findings) {
        let kept = entry.name.strip_suffix(DAMAGED_SUFFIX);
        if kept.is_some_and(|name| segment_number(name).is_some()) {
            let what = "This segment, or a session in it, was damaged when the home was opened earlier; it was kept.";
            let remedy = "Keep it until the damaged sessions are restored, then remove it.";
            findings.add(Finding::new(Code::WalKept, directory.join(&entry.name), what, remedy));
        } else if segment_number(&entry.name).is_none() && entry.name != "reserve" {
            findings.add(unknown(&directory, &entry));
        }
    }
}

/// Says what the next start is going to do to a session's log.
pub(super) fn pending(view: &HomeView, session: SessionId) -> Option<Finding> {
    pending_of(view, session.into(), view.pending.get(&session)?).map(|found| found.of(session))
}

/// Says what the next start is going to do to a stream's log.
pub(super) fn pending_of(view: &HomeView, stream: StreamId, completion: &Completion) -> Option<Finding> {
    let path = view.home.stream_log(stream);
    let found = match completion {
        Completion::Whole | Completion::Removed | Completion::SetAside => return None,
        // Whoever writes the log right now is only half-way through.
        Completion::Refilled { .. } | Completion::Repaired { .. } if view.owned => return None,
        Completion::Refilled { bytes } => {
            let what =
                format!("A crash was survived: {bytes} bytes of records are only in the write-ahead log.");
            Finding::new(Code::LogRefill, path, what, "Nothing to do: the next start completes the log.")
        }
        Completion::Repaired { offset, cut_bytes, refilled, healed: true } => {
            let what = format!(
                "{cut_bytes} bytes of the log are damaged, and the write-ahead log still has the {refilled} records."
            );
            let remedy = "Nothing to do, but check the disk: the next start repairs the log.";
            Finding::new(Code::LogHeal, path, what, remedy).byte(*offset)
        }
        Completion::Repaired { offset, cut_bytes, refilled: 0, healed: false } => {
            torn(path, *offset, *cut_bytes, begins_with_record(view, stream, *offset))
        }
        Completion::Repaired { offset, cut_bytes, refilled, healed: false } => {
            let what = format!(
                "A crash was survived: the last {cut_bytes} bytes are torn, and the write-ahead log has the {refilled} records."
            );
            let remedy = "Nothing to do: the next start completes the log.";
            Finding::new(Code::LogRefill, path, what, remedy).byte(*offset)
        }
        Completion::Damaged(damage) => {
            let what = format!(
                "The log lacks records that the write-ahead log says were written: {}.",
                damage.detail
            );
            Finding::new(Code::LogDamaged, path, what, RESTORE).byte(damage.offset)
        }
    };
    Some(found)
}

/// What to do about records that are gone.
pub(super) const RESTORE: &str = "Restore the file from a backup; until then the records before it can be read and none can be added. To give up what is lost, set the session aside.";

/// Says that a log ends in something that never counted.
pub(super) fn torn(path: std::path::PathBuf, offset: u64, len: u64, half_list: bool) -> Finding {
    let (code, what) = if half_list {
        (
            Code::LogHalfList,
            format!("A crash was survived: the last {len} bytes are records of an incomplete write."),
        )
    } else {
        (Code::LogTorn, format!("A crash was survived: the last {len} bytes never became a record."))
    };
    let remedy = "Nothing to do: they were never answered, and the next use of the session removes them.";
    Finding::new(code, path, what, remedy).byte(offset)
}

fn begins_with_record(view: &HomeView, stream: StreamId, offset: u64) -> bool {
    let reader = LogReader::open(&*view.raw, &view.home.stream_log(stream), view.home.codec());
    reader.is_ok_and(|reader| {
        let mut lines = reader.forward(Cursor::at(offset));
        matches!(lines.next(), Ok(Some(raw)) if raw.whole && Line::parse(raw.bytes).is_ok_and(|line| line.more))
    })
}

//! Session logs that fall behind and catch up: what could not be written is kept in memory, and written when that can be done,
//! without a restart and without anybody asking for it.

use std::io;
use std::sync::Arc;

use rekindle_domain::id::SessionId;

use super::super::live::Live;
use super::super::rewrite;
use super::Core;
use crate::disk::{DiskFile, is_shortage};
use crate::lagging::{Behind, Cause, Lag};
use crate::wal::scan;

/// Ticks after which a log that needs the whole write-ahead log read is tried again, at most.
const MOST_PATIENCE: u32 = 8;

/// A log falls behind at a place: from there on what belongs to it is kept in memory.
pub(super) fn fall_behind(behind: &Behind, live: &mut Live, keep: u64, cause: Cause, error: &io::Error) {
    live.fall_behind();
    let (file, lines, why) = (live.log(), Arc::default(), error.to_string());
    behind.fall(live.id(), Lag { keep, lines, file, cause, why });
}

impl Core {
    /// Brings the logs that are behind up to date, as far as that can be done. Those that need the whole write-ahead log read
    /// are tried less and less often, unless it is `due`.
    pub(super) fn catch_up(&mut self, due: bool) {
        let mut rest = Vec::new();
        for session in self.behind.sessions() {
            let Some(lag) = self.behind.get(session) else { continue };
            if lag.cause != Cause::Write {
                rest.push((session, lag));
                continue;
            }
            match rewrite::in_place(&self.disk, &self.layout, session, &lag) {
                Ok(log) => self.caught_up(session, Some(log)),
                Err(error) => {
                    self.behind.blame(session, &error);
                    // A new file would need more of what is lacking.
                    if !is_shortage(&error) {
                        rest.push((session, lag));
                    }
                }
            }
        }
        if rest.is_empty() {
            return;
        }
        if self.patience.0 > 0 && !due {
            self.patience.0 -= 1;
            return;
        }
        if self.catch_up_from_wal(rest) {
            self.patience = (0, 1);
        } else {
            let longer = (self.patience.1 * 2).min(MOST_PATIENCE);
            self.patience = (longer, longer);
        }
    }

    /// Brings logs up to date with the help of the write-ahead log; tells whether all are.
    fn catch_up_from_wal(&mut self, rest: Vec<(SessionId, Lag)>) -> bool {
        // What is read back must be what is on disk.
        let scanned = self.sync().map_err(io::Error::other);
        let scanned = scanned.and_then(|()| scan::scan(&*self.disk, &self.layout).map_err(io::Error::other));
        let scan = match scanned {
            Ok(scan) => scan,
            Err(error) => {
                rest.iter().for_each(|(session, _)| self.behind.blame(*session, &error));
                return false;
            }
        };
        let mut all = true;
        for (session, lag) in rest {
            let done = match lag.cause {
                Cause::Recovery => {
                    rewrite::complete_late(&self.disk, &self.layout, session, &scan).map(|()| None)
                }
                Cause::Write | Cause::Sync => {
                    rewrite::rewrite(&self.disk, &self.layout, session, &lag, &scan).map(Some)
                }
            };
            match done {
                Ok(log) => self.caught_up(session, log),
                Err(error) => {
                    self.behind.blame(session, &error);
                    all = false;
                }
            }
        }
        all
    }

    fn caught_up(&mut self, session: SessionId, log: Option<Arc<dyn DiskFile>>) {
        if let Some(live) = self.lives.get_mut(session) {
            live.caught_up(log);
        }
        // Last: whoever reads finds everything in the file, or here.
        self.behind.forget(session);
    }
}

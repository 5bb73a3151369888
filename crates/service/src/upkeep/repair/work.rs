//! A repair's steps, one by one, under the home's lock: what fails is told, and stops nothing else.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::id::{RunName, SessionId};
use rekindle_domain::time::Clock;
use rekindle_holder::client::{DirLock, LockError};
use rekindle_holder::dir::HolderDir;
use rekindle_store::aside::set_aside;
use rekindle_store::check::{Finding, Report};
use rekindle_store::disk::SharedDisk;
use rekindle_store::home::{self, HomeError, HomeLock};
use rekindle_store::layout::Layout;
use rekindle_store::offline::Offline;
use rekindle_store::repairs::{Reason, Repairs};
use rekindle_store::{OpenError, Store};

use super::set_aside::SetAside;
use super::{Done, RepairAction, RepairOptions, orphan};
use crate::error::chain;
use crate::test_knobs::crash_point;
use crate::upkeep::doctor::PLACE;
use crate::upkeep::task_row_findings::write_task_rows;

/// A repair that goes on.
pub(super) struct Repair<'a> {
    pub(super) disk: &'a SharedDisk,
    pub(super) home: &'a Path,
    pub(super) layout: &'a Layout,
    pub(super) asked: &'a RepairOptions,
    pub(super) clock: &'a Arc<dyn Clock>,
    /// None only while the store has it.
    pub(super) lock: Option<HomeLock>,
    pub(super) kept: Repairs,
    pub(super) done: Vec<Done>,
}

impl Repair<'_> {
    /// Does it all; what fails is told, and stops nothing else.
    pub(super) fn carry_out(&mut self, mends: &[(RepairAction, &Finding)]) -> Result<(), HomeError> {
        let starts = |mend: &RepairAction| matches!(mend, RepairAction::Recover | RepairAction::Cut);
        for (mend, finding) in mends.iter().filter(|(mend, _)| !starts(mend)) {
            let outcome = self.apply(*mend, finding);
            self.add_outcome(Done::of(*mend, finding), outcome);
        }
        let started: Vec<(RepairAction, &Finding)> =
            mends.iter().filter(|(mend, _)| starts(mend)).copied().collect();
        if started.is_empty() { Ok(()) } else { self.start(&started) }
    }

    fn add_outcome(&mut self, done: Done, outcome: io::Result<Option<PathBuf>>) {
        let (kept, error) = match outcome {
            Ok(kept) => (kept.map(|path| path.display().to_string()), None),
            Err(error) => (None, Some(chain(&error))),
        };
        self.done.push(Done { kept, error, ..done });
    }

    fn add_failures(&mut self, mends: &[(RepairAction, &Finding)], why: &str) {
        for (mend, finding) in mends {
            self.add_outcome(Done::of(*mend, finding), Err(io::Error::other(why.to_owned())));
        }
    }

    fn apply(&mut self, mend: RepairAction, finding: &Finding) -> io::Result<Option<PathBuf>> {
        let (path, why) = (&finding.path, reason(finding));
        match mend {
            RepairAction::Permissions => self.kept.restrict_permissions(path, why).map(|()| None),
            RepairAction::TakeAway => {
                if *path == self.home.join(PLACE) {
                    remove_stale_socket(path);
                }
                self.kept.move_away(path, why).map(Some)
            }
            RepairAction::TakeAwayHolder => {
                // Nobody begins while we have its lock, and one that began meanwhile has it.
                let _lock = DirLock::take(&HolderDir::new(path)).map_err(|error| match error {
                    LockError::Io(error) => error.source,
                    other => io::Error::other(other),
                })?;
                self.kept.move_away(path, why).map(Some)
            }
            RepairAction::FinishAside => match finding.session {
                Some(session) => {
                    self.kept.announce("set_aside", path, why)?;
                    set_aside(&**self.disk, self.layout, session).map(Some)
                }
                None => Ok(None),
            },
            RepairAction::WriteTaskRows => {
                let Some(rows) = &self.asked.task_rows else { return Ok(None) };
                self.kept.announce("rewritten", path, why)?;
                crash_point("repair.before_rows");
                let offline = Offline::open(self.disk.clone(), self.home).map_err(io::Error::other)?;
                write_task_rows(&offline, &rows.choice).map_err(io::Error::other)?;
                crash_point("repair.rows_written");
                Ok(None)
            }
            RepairAction::EndOrphan => {
                self.kept.announce("ended", path, why)?;
                orphan::end(self.home, &**self.disk, path).map(|()| None)
            }
            // Done together, below.
            RepairAction::Recover | RepairAction::Cut => Ok(None),
        }
    }

    /// Does what every start of a daemon does to the logs, having kept what that may cut off.
    fn start(&mut self, mends: &[(RepairAction, &Finding)]) -> Result<(), HomeError> {
        let mut kept = Vec::new();
        for (_, finding) in mends {
            let is_stream = finding.session.is_some() || run_of(finding).is_some();
            let byte = finding.at.and_then(|place| place.byte).filter(|_| is_stream);
            kept.push(match byte {
                Some(byte) => self.kept.copy_tail(&finding.path, byte, reason(finding)).map(Some),
                None => self.kept.announce("recovered", &finding.path, reason(finding)).map(|()| None),
            });
        }
        if let Some(error) = kept.iter().find_map(|kept| kept.as_ref().err()) {
            let why = format!("nothing was recovered, because a copy could not be made: {error}");
            self.add_failures(mends, &why);
            return Ok(());
        }
        crash_point("repair.before_start");
        let store = match self.open()? {
            Ok(store) => store,
            Err(error) => {
                self.add_failures(mends, &chain(&error));
                return Ok(());
            }
        };
        crash_point("repair.started");
        for ((mend, finding), kept) in mends.iter().zip(kept) {
            let cut = match (mend, finding.session) {
                (RepairAction::Cut, Some(session)) => {
                    store.open_session(session).map(drop).map_err(|error| io::Error::other(chain(&error)))
                }
                (RepairAction::Cut, None) => match run_of(finding) {
                    Some(run) => store
                        .open_pipeline(run.pipeline_id())
                        .map(drop)
                        .map_err(|error| io::Error::other(chain(&error))),
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            crash_point("repair.cut");
            self.add_outcome(Done::of(*mend, finding), cut.and(kept));
        }
        self.lock = Some(store.into_lock());
        Ok(())
    }

    /// Opens the home under our lock; after a failure the lock is ours again.
    fn open(&mut self) -> Result<Result<Store<rekindle_store::commit::Inline>, OpenError>, HomeError> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => home::lock_for_upkeep(&**self.disk, self.layout, std::process::id())?,
        };
        let opened = Store::open_held(self.disk.clone(), self.home, lock, self.clock.clone());
        if opened.is_err() {
            self.lock = Some(home::lock_for_upkeep(&**self.disk, self.layout, std::process::id())?);
        }
        Ok(opened)
    }

    /// Sets a session aside, and makes the good beginning of its log its log again if that is wanted.
    pub(super) fn set_aside(
        &mut self,
        session: SessionId,
        sessions: &SetAside<'_>,
        report: &Report,
    ) -> Result<(), HomeError> {
        let Some(done) = sessions.plan(session, report) else { return Ok(()) };
        if done.error.is_some() {
            self.done.push(done);
            return Ok(());
        }
        let why = done.what.clone();
        let reason = Reason { code: done.code, session: Some(session), what: &why };
        let moved =
            self.kept.announce("set_aside", &done.path, reason).and_then(|()| sessions.move_away(session));
        let failed = moved.is_err();
        self.add_outcome(done.clone(), moved.map(Some));
        if failed || !sessions.keep_prefix {
            return Ok(());
        }
        crash_point("repair.set_aside");
        // The write-ahead log may name the session at the length it had: a fresh segment does not.
        let kept = match self.open()? {
            Ok(store) => {
                self.lock = Some(store.into_lock());
                crash_point("repair.before_prefix");
                sessions.keep_prefix(session, self.clock.now())
            }
            Err(error) => Err(io::Error::other(chain(&error))),
        };
        crash_point("repair.prefix_kept");
        let done = Done { action: "prefix_kept", ..done };
        match kept {
            Ok((log, what)) => self.add_outcome(Done { path: log, what, ..done }, Ok(None)),
            Err(error) => self.add_outcome(done, Err(error)),
        }
        Ok(())
    }
}

/// Returns the run of a pipeline whose directory a finding is about.
fn run_of(finding: &Finding) -> Option<RunName> {
    finding.path.parent()?.file_name()?.to_str()?.parse().ok()
}

fn reason(finding: &Finding) -> Reason<'_> {
    Reason { code: finding.code.as_str(), session: finding.session, what: &finding.what }
}

/// Removes the socket that a dead daemon's description names, if it is one and nobody listens there.
fn remove_stale_socket(place: &Path) {
    let read = std::fs::read(place).ok();
    let place = read.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let Some(socket) = place.as_ref().and_then(|place| place["socket"].as_str()).map(Path::new) else {
        return;
    };
    let is_socket = std::fs::symlink_metadata(socket).is_ok_and(|there| there.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(socket).is_err_and(refused) {
        // One that stays is an empty name in a directory that is cleaned at logout.
        let _ = std::fs::remove_file(socket);
    }
}

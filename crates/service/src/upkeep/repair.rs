//! Putting a home right: what is provably safe is done, what it takes away is kept, and then everything is looked at again.
//! Each step follows from what is found at that moment, so a repair that was cut short is finished by the next one, and
//! one of a home that is whole does nothing.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::time::Clock;
use rekindle_holder::client::{DirLock, LockError};
use rekindle_holder::dir::HolderDir;
use rekindle_store::aside::set_aside;
use rekindle_store::check::{Finding, Holding, Report, Watcher};
use rekindle_store::disk::SharedDisk;
use rekindle_store::home::{self, HomeError, HomeLock};
use rekindle_store::layout::Layout;
use rekindle_store::offline::OfflineError;
use rekindle_store::repairs::{Reason, Repairs};
use rekindle_store::{OpenError, Store};
use serde::{Serialize, Serializer};

use super::doctor::{PLACE, examine};
use super::orphan;
use super::plan::{Mend, mend, suspects};
use super::set_aside::SetAside;
use crate::crash::crash_point;
use crate::error::chain;

/// What one repair uncovers the next one mends; more rounds than this mend nothing.
const ROUNDS: usize = 4;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Damaged sessions to be set aside.
    pub set_aside: Vec<SessionId>,
    /// The good beginning of their logs is to be their log again.
    pub keep_prefix: bool,
    /// A person said that agents which no session knows may be ended.
    pub end_orphans: bool,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The home cannot be looked at.
    #[error(transparent)]
    Offline(#[from] OfflineError),
    /// It is in use, or cannot be locked.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// Something that was done, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct Done {
    /// What: `permissions`, `moved`, `recovered`, `cut`, `set_aside`, `prefix_kept` or `ended`.
    pub action: &'static str,
    /// For which finding.
    pub code: &'static str,
    /// Of which session.
    pub session: Option<SessionId>,
    /// To what.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What was the matter.
    pub what: String,
    /// Where it is now, or a copy of what was changed.
    pub kept: Option<String>,
    /// Why it did not succeed.
    pub error: Option<String>,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What became of a home.
#[derive(Debug)]
pub struct Repaired {
    /// How it was.
    pub before: Report,
    /// How it is; none if nothing was to be changed.
    pub after: Option<Report>,
    /// What was done, or would be.
    pub done: Vec<Done>,
    /// Where things are kept that were taken away or changed.
    pub kept_in: Option<PathBuf>,
}

impl Repaired {
    /// Returns how the home is now.
    pub fn now(&self) -> &Report {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Tells whether nothing is lost or unusable, and everything that was tried succeeded.
    pub fn is_whole(&self) -> bool {
        self.now().is_healthy() && self.done.iter().all(|done| done.error.is_none())
    }
}

/// Puts a home right as far as that is provably safe.
pub fn repair(
    disk: &SharedDisk,
    home: &Path,
    asked: &Asked,
    clock: &Arc<dyn Clock>,
    watcher: Watcher<'_>,
) -> Result<Repaired, RepairError> {
    let layout = Layout::new(home);
    if let Some(owner) = home::owner(&**disk, &layout).filter(|_| !asked.dry_run) {
        return Err(HomeError::Locked { path: home.to_owned(), owner }.into());
    }
    let before = examine(disk, home, Holding::Nothing, watcher)?;
    let planned = plan(&before, asked, &HashSet::new());
    let sessions = SetAside { disk, layout: &layout, keep_prefix: asked.keep_prefix };
    let set_aside: Vec<Done> =
        asked.set_aside.iter().filter_map(|session| sessions.plan(*session, &before)).collect();
    if asked.dry_run || planned.is_empty() && set_aside.is_empty() {
        let done = planned.iter().map(|(mend, finding)| Done::of(*mend, finding)).chain(set_aside).collect();
        return Ok(Repaired { before, after: None, done, kept_in: None });
    }
    let lock = home::hold(&**disk, &layout, std::process::id())?;
    let kept = Repairs::new(disk.clone(), layout.clone(), clock.now(), crash_point);
    let mut work = Work { disk, home, layout: &layout, clock, lock: Some(lock), kept, done: Vec::new() };
    crash_point("repair.locked");
    let mut tried = HashSet::new();
    for _ in 0..ROUNDS {
        let report = examine(disk, home, Holding::Lock, watcher)?;
        let mends = plan(&report, asked, &tried);
        if mends.is_empty() {
            break;
        }
        tried.extend(mends.iter().map(|(mend, finding)| (*mend, finding.path.clone())));
        work.carry_out(&mends)?;
    }
    if !asked.set_aside.is_empty() {
        let report = examine(disk, home, Holding::Lock, watcher)?;
        for session in &asked.set_aside {
            work.set_aside(*session, &sessions, &report)?;
        }
    }
    let after = examine(disk, home, Holding::Lock, watcher)?;
    let kept_in = work.kept.dir().map(Path::to_owned);
    Ok(Repaired { before, after: Some(after), done: work.done, kept_in })
}

/// Returns what is to be done, in order, each thing once.
fn plan<'a>(report: &'a Report, asked: &Asked, tried: &HashSet<(Mend, PathBuf)>) -> Vec<(Mend, &'a Finding)> {
    let suspects = suspects(&report.findings);
    let mut seen = HashSet::new();
    let mends = report.findings.iter().filter_map(|finding| Some((mend(finding, &suspects)?, finding)));
    let mut mends: Vec<(Mend, &Finding)> = mends
        .filter(|(mend, _)| *mend != Mend::EndOrphan || asked.end_orphans || asked.dry_run)
        .filter(|(mend, finding)| {
            let key = (*mend, finding.path.clone());
            !tried.contains(&key) && seen.insert(key)
        })
        .collect();
    mends.sort_by_key(|(mend, _)| *mend);
    mends
}

impl Done {
    pub(super) fn of(mend: Mend, finding: &Finding) -> Done {
        let action = match mend {
            Mend::Permissions => "permissions",
            Mend::TakeAway | Mend::TakeAwayHolder => "moved",
            Mend::FinishAside => "set_aside",
            Mend::Recover => "recovered",
            Mend::Cut => "cut",
            Mend::EndOrphan => "ended",
        };
        let Finding { code, session, path, what, .. } = finding.clone();
        Done { action, code: code.as_str(), session, path, what, kept: None, error: None }
    }
}

/// A repair that goes on.
struct Work<'a> {
    disk: &'a SharedDisk,
    home: &'a Path,
    layout: &'a Layout,
    clock: &'a Arc<dyn Clock>,
    /// None only while the store has it.
    lock: Option<HomeLock>,
    kept: Repairs,
    done: Vec<Done>,
}

impl Work<'_> {
    /// Does it all; what fails is told, and stops nothing else.
    fn carry_out(&mut self, mends: &[(Mend, &Finding)]) -> Result<(), HomeError> {
        let starts = |mend: &Mend| matches!(mend, Mend::Recover | Mend::Cut);
        for (mend, finding) in mends.iter().filter(|(mend, _)| !starts(mend)) {
            let outcome = self.one(*mend, finding);
            self.tell(Done::of(*mend, finding), outcome);
        }
        let started: Vec<(Mend, &Finding)> = mends.iter().filter(|(mend, _)| starts(mend)).copied().collect();
        if started.is_empty() { Ok(()) } else { self.start(&started) }
    }

    fn tell(&mut self, done: Done, outcome: io::Result<Option<PathBuf>>) {
        let (kept, error) = match outcome {
            Ok(kept) => (kept.map(|path| path.display().to_string()), None),
            Err(error) => (None, Some(chain(&error))),
        };
        self.done.push(Done { kept, error, ..done });
    }

    fn one(&mut self, mend: Mend, finding: &Finding) -> io::Result<Option<PathBuf>> {
        let (path, why) = (&finding.path, reason(finding));
        match mend {
            Mend::Permissions => self.kept.close_to_others(path, why).map(|()| None),
            Mend::TakeAway => {
                if *path == self.home.join(PLACE) {
                    remove_stale_socket(path);
                }
                self.kept.take_away(path, why).map(Some)
            }
            Mend::TakeAwayHolder => {
                // Nobody begins while we have its lock, and one that began meanwhile has it.
                let _lock = DirLock::take(&HolderDir::new(path)).map_err(|error| match error {
                    LockError::Io { source, .. } => source,
                    other => io::Error::other(other),
                })?;
                self.kept.take_away(path, why).map(Some)
            }
            Mend::FinishAside => match finding.session {
                Some(session) => {
                    self.kept.announce("set_aside", path, why)?;
                    set_aside(&**self.disk, self.layout, session).map(Some)
                }
                None => Ok(None),
            },
            Mend::EndOrphan => {
                self.kept.announce("ended", path, why)?;
                orphan::end(self.home, &**self.disk, path).map(|()| None)
            }
            // Done together, below.
            Mend::Recover | Mend::Cut => Ok(None),
        }
    }

    /// Does what every start of a daemon does to the logs, having kept what that may cut off.
    fn start(&mut self, mends: &[(Mend, &Finding)]) -> Result<(), HomeError> {
        let mut kept = Vec::new();
        for (_, finding) in mends {
            let byte = finding.at.and_then(|place| place.byte).filter(|_| finding.session.is_some());
            kept.push(match byte {
                Some(byte) => self.kept.keep_tail(&finding.path, byte, reason(finding)).map(Some),
                None => self.kept.announce("recovered", &finding.path, reason(finding)).map(|()| None),
            });
        }
        if let Some(error) = kept.iter().find_map(|kept| kept.as_ref().err()) {
            let why = format!("nothing was recovered, because a copy could not be made: {error}");
            for (mend, finding) in mends {
                self.tell(Done::of(*mend, finding), Err(io::Error::other(why.clone())));
            }
            return Ok(());
        }
        crash_point("repair.before_start");
        let store = match self.open()? {
            Ok(store) => store,
            Err(error) => {
                let why = chain(&error);
                for (mend, finding) in mends {
                    self.tell(Done::of(*mend, finding), Err(io::Error::other(why.clone())));
                }
                return Ok(());
            }
        };
        crash_point("repair.started");
        for ((mend, finding), kept) in mends.iter().zip(kept) {
            let cut = match (mend, finding.session) {
                (Mend::Cut, Some(session)) => {
                    store.open_session(session).map(drop).map_err(|error| io::Error::other(chain(&error)))
                }
                _ => Ok(()),
            };
            crash_point("repair.cut");
            self.tell(Done::of(*mend, finding), cut.and(kept));
        }
        self.lock = Some(store.into_lock());
        Ok(())
    }

    /// Opens the home under our lock; after a failure the lock is ours again.
    fn open(&mut self) -> Result<Result<Store<rekindle_store::commit::Inline>, OpenError>, HomeError> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => home::hold(&**self.disk, self.layout, std::process::id())?,
        };
        let opened = Store::open_held(self.disk.clone(), self.home, lock, self.clock.clone());
        if opened.is_err() {
            self.lock = Some(home::hold(&**self.disk, self.layout, std::process::id())?);
        }
        Ok(opened)
    }

    /// Sets a session aside, and makes the good beginning of its log its log again if that is wanted.
    fn set_aside(
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
        self.tell(done.clone(), moved.map(Some));
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
            Ok((log, what)) => self.tell(Done { path: log, what, ..done }, Ok(None)),
            Err(error) => self.tell(done, Err(error)),
        }
        Ok(())
    }
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

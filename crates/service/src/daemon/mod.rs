//! The daemon's services behind one door. The door contains no persistence and no rules: it finds the session and
//! hands the request to the service that knows what to do.

mod lists;
mod open;

pub use crate::follow::Following;
pub use open::OpenDaemonError;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::CancelReason;
use rekindle_domain::id::{RunId, SessionId, WaitId};

use rekindle_store::commit::Commits;

use crate::core::Core;
use crate::directory::Entry;
use crate::error::ServiceError;
use crate::feed::{Anywhere, LogLine};
use crate::key::Key;
use crate::request::{Change, Content, Filter, NewAnswer, NewMessage, NewSession, Resume};
use crate::tokens::{self, OwnAnswer};
use crate::view::{
    About, AnswerTaken, HolderView, MessageTaken, Resumed, SessionList, SessionView, TokenShown, WaitView,
};
use crate::worker::{Answering, Command};
use crate::{follow, messages, sessions, shape, sweep};

/// How long agents get to end when everything is to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(15);

/// How long to wait before sessions that cannot be listed are listed again: descriptors come back, disks too.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long workers get to leave.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// Records of a log that are told at once.
const MOST_RECORDS: usize = 1000;

/// What a daemon is made of.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its home.
    pub home: PathBuf,
    /// The holder's executable, as installed beside ours.
    pub holder: PathBuf,
    /// Where sockets live.
    pub runtime: PathBuf,
    /// The daemon's own environment, from which an agent's is built.
    pub env: BTreeMap<String, String>,
}

/// Where following a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Behind a record; 0 for the beginning.
    After(u64),
    /// Behind a record that has this hash, or not at all.
    Point(u64, ChainHash),
}

/// The daemon.
pub struct Daemon {
    core: Arc<Core>,
}

impl Daemon {
    /// Begins to look at the sessions and to recover what was going on; returns at once.
    pub fn recover(&self) {
        let core = self.core.clone();
        let recovering = std::thread::Builder::new().name("recovery".into());
        let begun = recovering.spawn(move || {
            while let Err(error) = core.directory.survey(&core.store) {
                tracing::error!("cannot list the sessions: {error}");
                std::thread::sleep(LOOK_AGAIN);
            }
            for entry in core.directory.all(&core.store) {
                if entry.damage.is_none() && entry.state.is_unfinished() {
                    let _ = core.workers.tell(&core, entry.state.id, Command::Look);
                }
            }
            core.recovered.store(true, Ordering::Relaxed);
            let weak = Arc::downgrade(&core);
            drop(core);
            sweep::keep_sweeping(&weak);
        });
        if let Err(error) = begun {
            tracing::error!("cannot begin to recover: {error}");
        }
    }

    /// Says who it is.
    pub fn about(&self) -> About {
        About {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            boot_id: self.core.supervisor.boot_id.to_string(),
            epoch: self.core.supervisor.epoch,
            home: self.core.home.display().to_string(),
            listed: self.core.directory.is_surveyed(),
            recovered: self.core.recovered.load(Ordering::Relaxed),
        }
    }

    /// Tells whether another daemon has taken over.
    pub fn is_superseded(&self) -> bool {
        self.core.superseded.load(Ordering::Relaxed)
    }

    /// Makes a session, and begins its first run if there is a prompt.
    pub fn create(&self, new: NewSession, key: Option<&Key>) -> Result<SessionView, ServiceError> {
        let session = sessions::create(&self.core, new, key)?;
        self.session(session)
    }

    /// Gives a session a message.
    pub fn message(
        &self,
        id: SessionId,
        new: NewMessage,
        key: Option<&Key>,
    ) -> Result<MessageTaken, ServiceError> {
        self.entry(id)?;
        messages::message(&self.core, id, new, key, None)
    }

    /// Gives a session a message without blocking, if that is possible: none if it is not. An answer of nothing says
    /// that it has to be given in the other way.
    pub fn message_soon(
        &self,
        id: SessionId,
        new: &NewMessage,
        key: Option<&Key>,
    ) -> Option<impl Future<Output = Result<Option<MessageTaken>, ServiceError>> + Send + 'static> {
        messages::message_soon(&self.core, id, new, key)
    }

    /// Changes a session.
    pub fn change(&self, id: SessionId, change: Change) -> Result<SessionView, ServiceError> {
        sessions::change(&self.core, id, change)?;
        self.session(id)
    }

    /// Changes a session without blocking, if that is possible.
    pub fn change_soon(
        self: &Arc<Daemon>,
        id: SessionId,
        change: Change,
    ) -> Option<impl Future<Output = Result<SessionView, ServiceError>> + Send + 'static> {
        let changed = sessions::change_soon(&self.core, id, change)?;
        let daemon = self.clone();
        Some(async move {
            changed.await?;
            daemon.session(id)
        })
    }

    /// Cancels what a session is doing, is about to do and has queued.
    pub fn cancel(&self, id: SessionId, by: &str) -> Result<Option<RunId>, ServiceError> {
        self.entry(id)?;
        sessions::cancel(&self.core, id, CancelReason::User, by)
    }

    /// Continues an interrupted session, or answers a wait by its token.
    pub fn resume(&self, id: SessionId, resume: Resume, by: &str) -> Result<Resumed, ServiceError> {
        let entry = self.entry(id)?;
        let Some(token) = resume.token.clone() else {
            return sessions::resume(&self.core, id, resume);
        };
        let Some(mut answer) = resume.answer else {
            return Err(ServiceError::invalid("invalid_answer", "a token comes with the answer to its wait"));
        };
        let shown =
            token.parse::<rekindle_domain::token::Presented>().map_err(|error| tokens::rejected(&error))?;
        let scope = entry.tokens.tokens.get(&shown.id).map(|token| token.scope.wait_id);
        let wait = scope.ok_or_else(|| tokens::rejected(&rekindle_domain::token::Rejection::Unknown))?;
        answer.token = Some(token);
        let taken = self.answer(wait, answer, by)?;
        let attempt = entry.state.run.as_ref().map_or(1, |run| run.attempt);
        Ok(Resumed { run_id: taken.run_id, method: "answer", attempt })
    }

    /// Ends a session: its agent goes, its log stays.
    pub fn close(&self, id: SessionId, by: &str) -> Result<(), ServiceError> {
        self.entry(id)?;
        sessions::close(&self.core, id, by)
    }

    /// Removes a session; one whose run has not ended only if forced.
    pub fn delete(&self, id: SessionId, force: bool, by: &str) -> Result<(), ServiceError> {
        self.entry(id)?;
        sessions::delete(&self.core, id, force, by)
    }

    /// Shows a session.
    pub fn session(&self, id: SessionId) -> Result<SessionView, ServiceError> {
        Ok(shape::session(&self.core, &self.entry(id)?))
    }

    /// Lists sessions.
    pub fn sessions(&self, filter: &Filter) -> Result<SessionList, ServiceError> {
        lists::sessions(&self.core, filter)
    }

    /// Reads records of a session's log, and tells where the next page begins (`after` of the next call).
    pub fn log(
        &self,
        id: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<LogLine>, Option<u64>), ServiceError> {
        self.entry(id)?;
        lists::log(&self.core, id, after, limit.min(MOST_RECORDS))
    }

    /// Follows a session's log and what its agent says.
    pub fn follow(&self, id: SessionId, since: Since) -> Result<Following, ServiceError> {
        self.entry(id)?;
        follow::Following::new(&self.core, id, since)
    }

    /// Follows everything: who is told looks at the session.
    pub fn follow_all(&self) -> tokio::sync::broadcast::Receiver<Anywhere> {
        self.core.feed.follow_all()
    }

    /// Lists open and void waits, oldest first.
    pub fn waits(&self) -> Result<Vec<WaitView>, ServiceError> {
        let all = self.core.directory.all(&self.core.store);
        let mut waits: Vec<WaitView> = all
            .iter()
            .filter(|entry| entry.state.has_waits())
            .flat_map(|entry| shape::waits(&self.core, entry))
            .collect();
        waits.sort_by_key(|wait| wait.since);
        Ok(waits)
    }

    /// Makes a further token for a wait.
    pub fn mint(&self, wait: WaitId, by: &str) -> Result<TokenShown, ServiceError> {
        tokens::mint(&self.core, &self.entry_with(wait)?, wait, by)
    }

    /// Answers a wait. A caller on our own socket is known; any other brings a token. The answer to a wait whose agent
    /// is gone becomes, once, the message of a new run.
    pub fn answer(&self, wait: WaitId, answer: NewAnswer, by: &str) -> Result<AnswerTaken, ServiceError> {
        let entry = self.entry_with(wait)?;
        let own = OwnAnswer::from_request(&answer)?;
        let token = match &answer.token {
            Some(text) => Some(tokens::show(&entry, wait, text, &own.hash(), self.core.time())?),
            None => None,
        };
        let session = entry.state.id;
        let void = entry.state.run.as_ref().filter(|run| run.end.is_some() && run.wait(wait).is_some());
        if void.is_some() && token.is_none() {
            let text =
                serde_json::value::to_raw_value(&format!("The answer to your question: {}", own.words()));
            let text = text.map_err(|error| ServiceError::internal(&error))?;
            let new = NewMessage { content: Content(text), env: BTreeMap::new() };
            let taken = messages::message(&self.core, session, new, None, Some(wait))?;
            let run_id = taken.run_id.ok_or_else(|| tokens::closed(wait))?;
            return Ok(AnswerTaken { run_id, resume_token_id: None });
        }
        let (reply, answered) = sync_channel(1);
        let asked = Answering { wait, answer: own, by: by.to_owned(), token, reply };
        self.core.workers.tell(&self.core, session, Command::Answer(Box::new(asked)))?;
        answered.recv().unwrap_or_else(|_| Err(sessions::gone()))
    }

    /// Lists holders.
    pub fn holders(&self) -> Result<Vec<HolderView>, ServiceError> {
        lists::holders(&self.core)
    }

    /// Cancels everything and ends every agent; returns how many are left after the time agents get.
    pub fn stop_all(&self, by: &str) -> usize {
        for entry in self.core.directory.all(&self.core.store) {
            let state = &entry.state;
            if state.open_run().is_some() || state.recovery.interruption.is_some() || !state.queue.is_empty()
            {
                let _ = sessions::cancel(&self.core, state.id, CancelReason::StopAll, by);
            }
        }
        self.core.workers.tell_all(|| Command::Stop { why: "everything is to stop", by: by.to_owned() });
        let begin = std::time::Instant::now();
        loop {
            let all = self.core.directory.all(&self.core.store);
            let lives = |entry: &&Entry| entry.state.agent.as_ref().is_some_and(|agent| !agent.exited);
            let left = all.iter().filter(lives).count();
            if left == 0 || begin.elapsed() >= STOPPED_WITHIN {
                return left;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Leaves: agents work on, everything that is known is on disk.
    pub fn leave(&self) {
        self.core.workers.tell_all(|| Command::Leave);
        let left = self.core.workers.await_all(LEFT_WITHIN);
        if left > 0 {
            tracing::warn!(left, "some sessions are still busy");
        }
        let all = self.core.directory.all_if_surveyed(&self.core.store);
        for entry in all.iter().flatten() {
            if entry.state.is_unfinished() {
                let _ = self.core.store.snapshot(entry.state.id);
            }
        }
        if let Err(error) = self.core.store.committer().checkpoint() {
            tracing::warn!("no checkpoint: {error}");
        }
        if let Some(all) = all
            && let Err(error) = self.core.store.write_index(all.iter().map(|entry| &*entry.state))
        {
            tracing::warn!("the list of sessions was not written: {error}");
        }
    }

    fn entry(&self, id: SessionId) -> Result<Entry, ServiceError> {
        self.core.directory.get(&self.core.store, id).filter(|entry| !entry.state.deleted).ok_or_else(|| {
            ServiceError::not_found("session_unknown", format!("there is no session {id} here"))
                .hint("rekindle ps -a")
        })
    }

    fn entry_with(&self, wait: WaitId) -> Result<Entry, ServiceError> {
        self.core.directory.with_wait(&self.core.store, wait).ok_or_else(|| {
            ServiceError::not_found("wait_unknown", format!("there is no wait {wait} here"))
                .hint("rekindle waits")
        })
    }
}

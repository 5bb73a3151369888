//! The feed of live news: who follows a session is told of every record and of words that are in no record yet. Records are
//! read from the log, so that a follower who comes late or falls behind misses none; only words are kept in memory.

mod attendance;
mod await_outcome;
mod encoded_once;
mod follow;
mod follow_task;
mod recent;
mod stream;

pub(crate) use attendance::{Attendance, Attending};
pub(crate) use await_outcome::await_outcome;
pub use encoded_once::EncodedOnce;
pub use follow::{Following, Since};
pub use follow_task::{FollowTask, TaskFollowing, TaskPoint, TaskTold};
pub use stream::{Stream, Subscription};

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rekindle_agent::connection;
use rekindle_agent::said::Voice;
use rekindle_domain::id::SessionId;
use rekindle_domain::projector::Derived;
use rekindle_wire::event::{Delta, DeltaKind};
use rekindle_wire::view::HistoryMissing;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};

use crate::lock::locked;
use crate::show::log::{Damage, LogLine};
use recent::{Read, Recent};

/// News that a follower may be behind before it is sent away to begin again.
const BUFFER: usize = 1024;

/// Reads of logs for followers at the same time, whatever sessions they follow: few beside the threads that requests may
/// block, so that a disk that hangs takes none of those.
const READS: usize = 64;

/// Returns words of an agent as followers are told them.
pub(crate) fn delta(said: &connection::Delta) -> Delta {
    Delta {
        run_id: said.run_id.map(|run| run.to_string()),
        message_id: said.message_id.to_string(),
        kind: if said.voice == Voice::Thought { DeltaKind::Thought } else { DeltaKind::Message },
        at: said.at,
        text: said.text.clone(),
    }
}

/// Something new in a session.
#[derive(Debug, Clone)]
pub enum News {
    /// Its log has grown to this record.
    Appended(u64),
    /// Its agent said something.
    Said(Arc<EncodedOnce<Delta>>),
}

/// Something new anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anywhere {
    /// Where.
    pub session: SessionId,
    /// Its newest record.
    pub last_seq: u64,
}

/// What a follower gets.
#[derive(Debug, Clone)]
pub enum Told {
    /// A record.
    Record(Arc<EncodedOnce<LogLine>>),
    /// Words.
    Words(Arc<EncodedOnce<Delta>>),
    /// The status is another one than before.
    Status(Box<Derived>),
    /// The log is not what the follower thinks: begin again, it ends here.
    Reset {
        /// Its newest record.
        last_seq: u64,
    },
    /// The follower is too slow: it is to come again with the last record it has.
    TooSlow,
    /// What comes before the session's own log, which it was forked from, cannot be read: it goes on behind that.
    HistoryMissing(HistoryMissing),
    /// The log is damaged here: what follows cannot be told, and nothing will be added.
    Damaged(Arc<Damage>),
    /// The session is gone.
    Deleted,
}

/// A session that is followed.
#[derive(Debug)]
struct Followed {
    news: broadcast::Sender<News>,
    recent: Recent,
    /// Held by whoever reads its log: one at a time, because the others have from it what was read, and because one log that
    /// hangs must not take the threads of all.
    reading: Arc<Semaphore>,
}

impl Followed {
    fn new() -> Followed {
        let (news, recent) = (broadcast::channel(BUFFER).0, Recent::default());
        Followed { news, recent, reading: Arc::new(Semaphore::new(1)) }
    }

    /// Tells whether nobody needs it any more: whoever reads its log may have nobody to tell it.
    fn is_over(&self) -> bool {
        self.news.receiver_count() == 0 && self.reading.available_permits() > 0
    }
}

/// Where news come together.
#[derive(Debug)]
pub struct Feed {
    sessions: Mutex<HashMap<SessionId, Followed>>,
    all: broadcast::Sender<Anywhere>,
    /// The newest record of the stream of tasks.
    tasks: watch::Sender<u64>,
    /// Held by everybody who reads a log for a follower.
    reading: Arc<Semaphore>,
    /// Who looks at what they follow.
    pub(crate) attendance: Arc<Attendance>,
    /// Those who follow one session, and those who follow every.
    pub(crate) one: Arc<Stream>,
    pub(crate) every: Arc<Stream>,
}

impl Default for Feed {
    fn default() -> Feed {
        let (one, every, attendance) = Default::default();
        let (all, reading) = (broadcast::channel(BUFFER).0, Arc::new(Semaphore::new(READS)));
        Feed {
            sessions: Mutex::default(),
            all,
            tasks: watch::Sender::new(0),
            reading,
            attendance,
            one,
            every,
        }
    }
}

impl Feed {
    /// Tells those who follow a session; nobody may.
    pub fn publish(&self, session: SessionId, news: News) {
        if let News::Appended(last_seq) = news {
            let _ = self.all.send(Anywhere { session, last_seq });
        }
        if let Some(followed) = locked(&self.sessions).get(&session) {
            let _ = followed.news.send(news);
        }
    }

    /// Tells those who follow tasks that their stream has grown.
    pub fn publish_tasks(&self, last_seq: u64) {
        self.tasks.send_replace(last_seq);
    }

    /// Follows the stream of tasks from now on.
    pub(crate) fn follow_tasks(&self) -> watch::Receiver<u64> {
        self.tasks.subscribe()
    }

    /// Tells whether anyone follows a session.
    pub fn is_followed(&self, session: SessionId) -> bool {
        locked(&self.sessions).contains_key(&session)
    }

    /// Follows a session from now on.
    pub fn follow(&self, session: SessionId) -> Subscription<News> {
        let mut sessions = locked(&self.sessions);
        // Those whom nobody follows any more are forgotten when somebody comes.
        sessions.retain(|_, followed| !followed.is_over());
        let followed = sessions.entry(session).or_insert_with(Followed::new);
        Subscription::new(followed.news.subscribe(), self.one.clone())
    }

    /// Returns cached records that another follower has read: from one number through another.
    pub(crate) fn recent(&self, session: SessionId, from: u64, through: u64) -> Vec<Read> {
        let sessions = locked(&self.sessions);
        let recent = sessions.get(&session).map(|followed| followed.recent.from(from));
        recent.into_iter().flatten().take_while(|read| read.line.seq <= through).cloned().collect()
    }

    /// Waits until a follower may read the log of its session, without keeping a thread. What is returned is kept until that is
    /// done, also if the follower goes away meanwhile.
    pub(crate) async fn reading(&self, session: SessionId) -> Option<[OwnedSemaphorePermit; 2]> {
        let one = locked(&self.sessions).get(&session)?.reading.clone();
        // In this order: whoever waits for its session keeps none of those that all share.
        let one = one.acquire_owned().await.ok()?;
        Some([one, self.reading.clone().acquire_owned().await.ok()?])
    }

    /// Caches a record that a follower has read from the log, if there are others.
    pub(crate) fn cache(&self, session: SessionId, read: &Read) {
        if let Some(followed) = locked(&self.sessions).get_mut(&session)
            && followed.news.receiver_count() > 1
        {
            followed.recent.push(read);
        }
    }

    /// Follows everything from now on.
    pub fn follow_all(&self) -> Subscription<Anywhere> {
        Subscription::new(self.all.subscribe(), self.every.clone())
    }
}

//! Notifications: people elsewhere are told what becomes of sessions, tasks and pipeline runs. A thread looks at what is recorded and writes what there
//! is to tell into the outbox, together with how far it has read; a thread for each sink delivers from there, so that one that hangs
//! keeps nobody waiting but itself. What is told is decided in `rekindle_notify`, purely; whoever appends is never kept waiting.

mod catch_up;
mod counts;
mod deliver;
mod hub;
mod inbox;
mod log_readers;
mod observe;
mod outbox_file;
mod read_pipeline;
mod read_session;
mod read_tasks;
mod release;
mod standing;
mod target;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rekindle_domain::time::Clock;
use rekindle_notify::Message;
use rekindle_store::disk::SharedDisk;
use rekindle_store::{Observer, Store};
use rekindle_wire::view::SinkTested;

pub(crate) use self::counts::SinkCounts;
use self::deliver::Deliverer;
use self::hub::Hub;
use self::inbox::Inbox;
use self::log_readers::LogReaders;
use self::observe::NewsObserver;
pub use self::outbox_file::{OutboxError, read_outbox};
pub(crate) use self::standing::HolderLook;
use self::standing::Surroundings;
pub use self::target::Target;
pub(crate) use self::target::{LinkMint, NoLinks};
use crate::feed::Attendance;
use crate::lock::locked;
use crate::show::{Directory, LogDetails};

/// How long threads get to leave. One that waits for a target that hangs is left behind: what it has not delivered is in the outbox.
const LEFT_WITHIN: Duration = Duration::from_secs(1);

/// How people elsewhere are told, as the daemon is configured.
#[derive(Debug, Clone, Default)]
pub struct NotificationSettings {
    /// Who is told. Nothing is done without any.
    pub targets: Vec<Arc<dyn Target>>,
    /// How long is waited whether something settles by itself.
    pub settle: Duration,
    /// How often progress is told.
    pub progress_every: Duration,
    /// After how long a run is told to be stalled whose agent says nothing; as usual without it.
    pub stall_after: Option<Duration>,
}

/// What notifications are made from.
pub(crate) struct Sources {
    pub(crate) disk: SharedDisk,
    pub(crate) store: Arc<Store>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) log_details: Arc<LogDetails>,
    pub(crate) attendance: Arc<Attendance>,
    pub(crate) holder: Box<HolderLook>,
    pub(crate) links: Arc<dyn LinkMint>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The notifications of a daemon.
pub(crate) struct Notifications {
    inbox: Arc<Inbox>,
    hub: Arc<Hub>,
    targets: Vec<Arc<dyn Target>>,
    clock: Arc<dyn Clock>,
    waiting: Mutex<Option<Waiting>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the threads take over when they begin.
struct Waiting {
    settings: NotificationSettings,
    surroundings: Arc<Surroundings>,
    links: Arc<dyn LinkMint>,
}

impl Notifications {
    /// Makes ready to tell; none if nobody is to be told. Everything that is recorded from now on is noted.
    pub(crate) fn new(settings: NotificationSettings, sources: Sources) -> Option<Notifications> {
        if settings.targets.is_empty() {
            return None;
        }
        let inbox = Arc::new(Inbox::default());
        sources.store.observe(inbox.clone() as Arc<dyn Observer>);
        let names = settings.targets.iter().map(|target| target.name().to_owned());
        let path = sources.store.layout().outbox();
        let hub = Arc::new(Hub::new(sources.disk, path, sources.clock.clone(), names));
        let (targets, clock) = (settings.targets.clone(), sources.clock.clone());
        let surroundings = Arc::new(Surroundings {
            store: sources.store,
            directory: sources.directory,
            log_details: sources.log_details,
            attendance: sources.attendance,
            holder: sources.holder,
            clock: sources.clock,
        });
        let waiting = Waiting { settings, surroundings, links: sources.links };
        let (waiting, threads) = (Mutex::new(Some(waiting)), Mutex::default());
        Some(Notifications { inbox, hub, targets, clock, waiting, threads })
    }

    /// Begins to tell; returns at once.
    pub(crate) fn begin_threads(&self) -> std::io::Result<()> {
        let Some(Waiting { settings, surroundings, links }) = locked(&self.waiting).take() else {
            return Ok(());
        };
        let (hub, inbox) = (&self.hub, &self.inbox);
        let mut threads = Vec::new();
        for target in &settings.targets {
            let name = format!("notify-{}", target.name());
            let (hub, target, links) = (hub.clone(), target.clone(), links.clone());
            let deliverer = Deliverer::new(hub, target, links, surroundings.clone());
            threads.push(std::thread::Builder::new().name(name).spawn(move || deliverer.run())?);
        }
        let readers = LogReaders::default();
        let observer = NewsObserver::new(settings, hub.clone(), inbox.clone(), readers, surroundings.clone());
        threads.push(std::thread::Builder::new().name("notify".into()).spawn(move || observer.run())?);
        *locked(&self.threads) = threads;
        Ok(())
    }

    /// Sends a message through a sink that says that it is a test, and says what came of it; none if there is no such sink. Waits for its
    /// target.
    pub(crate) fn test(&self, sink: &str) -> Option<SinkTested> {
        let target = self.targets.iter().find(|target| target.name() == sink)?;
        let (begin, now) = (Instant::now(), self.clock.now());
        let why = target.deliver(&Message::test(now), &[], now).into_why();
        let took_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(SinkTested { sink: sink.to_owned(), delivered: why.is_none(), why, took_ms })
    }

    /// Returns what is counted of each sink.
    pub(crate) fn counts(&self) -> Vec<SinkCounts> {
        self.hub.counts()
    }

    /// Has the threads leave; those that hang are left behind.
    pub(crate) fn leave(&self) {
        self.inbox.close();
        self.hub.close();
        let begin = Instant::now();
        let mut threads = std::mem::take(&mut *locked(&self.threads));
        while !threads.is_empty() && begin.elapsed() < LEFT_WITHIN {
            threads.retain(|thread| !thread.is_finished());
            std::thread::sleep(Duration::from_millis(2));
        }
        self.hub.flush();
    }
}

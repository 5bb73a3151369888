//! A home in memory with one session, and a daemon of it whose worker is had work by hand.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_agent::connection::Delta;
use rekindle_domain::event::{
    CancelReason, OnUncertain, Options, Provider, ResumePolicy, SessionCreated, Worktree,
};
use rekindle_domain::id::{BootId, RunId, SessionId, WaitId};
use rekindle_domain::line::Line;
use rekindle_domain::projector::{HolderProof, Observed, project};
use rekindle_domain::session::SessionState;
use rekindle_holder::client::Executable;
use rekindle_store::layout::Layout;
use rekindle_store::log::Cursor;
use rekindle_store::{Observer, Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::GatedDisk;
use rekindle_testkit::sim::{Fault, FaultKind};
use rekindle_wire::request::{NewFork, NewMessage};
use rekindle_wire::view::{ForkVerdict, MessageTaken, SessionView};

use super::captures::CaptureScript;
use super::contention::{Arrivals, Contended};
use super::holder::Scripted;
use super::port::Port;
use super::record_summary::summary;
use super::rewinds::ScriptedFiles;
use crate::boottime::BootClock;
use crate::budget_check::BudgetCheck;
use crate::commands::{Locks, fork, messages, resume_session, sessions, waits};
use crate::drive::agents::Agents;
use crate::drive::environment::{Env, Environment};
use crate::drive::holders::HolderPaths;
use crate::drive::live::Supervisor;
use crate::drive::worker::{Cancelling, Command, IdleAgentPolicy, Seat, Watcher, Worker, Workers};
use crate::error::ServiceError;
use crate::records::Records;
use crate::show::Views;
use crate::ticks::manual_clock;
use crate::worker_pool::Work;

/// Far more turns than any situation takes.
const MOST_TURNS: usize = 10_000;

/// How a session is set up.
pub(super) struct Setup {
    pub(super) options: Options,
    pub(super) provider: Provider,
    pub(super) working_dir: &'static str,
    pub(super) env_names: Vec<String>,
    pub(super) worktree: Option<Worktree>,
}

impl Default for Setup {
    fn default() -> Setup {
        let command = Some(vec!["agent".to_owned()]);
        Setup {
            options: Options::default(),
            provider: Provider { profile: "acp".into(), command, ..Provider::default() },
            working_dir: "/",
            env_names: Vec::new(),
            worktree: None,
        }
    }
}

impl Setup {
    pub(super) fn policy(resume: ResumePolicy, on_uncertain: OnUncertain) -> Setup {
        Setup { options: Options { resume, on_uncertain, ..Options::default() }, ..Setup::default() }
    }

    /// A command that reads its prompt and ends.
    pub(super) fn command() -> Setup {
        let command = Some(vec!["cat".to_owned()]);
        let provider = Provider { profile: "exec".into(), command, ..Provider::default() };
        Setup { provider, ..Setup::default() }
    }
}

pub(super) struct Home {
    pub(super) disk: GatedDisk,
    clock: Arc<SimClock>,
    steady: BootClock,
    daemons: u64,
    env: Env,
    daemon: Option<Daemon>,
    pub(super) scripted: Arc<Scripted>,
    pub(super) session: SessionId,
    /// What was done to files, and what happens to those who ask for that.
    pub(super) files: Arc<ScriptedFiles>,
    /// Who comes before the next messages.
    pub(super) before_us: Arc<AtomicU32>,
    pub(super) arrivals: Arc<Arrivals>,
    /// Whether and how directories are captured: not at all, unless a test says so.
    pub(super) captures: Arc<CaptureScript>,
    /// What becomes of idle agents: they stay, unless a test says so.
    idle_policy: IdleAgentPolicy,
    /// Records that were seen already.
    seen: usize,
}

struct Daemon {
    // Dropped first: it keeps the store open.
    worker: Worker,
    seat: Arc<Seat>,
    workers: Arc<Workers>,
    store: Arc<Store>,
}

struct Nobody;

impl Watcher for Nobody {
    fn said(&self, _: SessionId, _: &Delta) {}
    fn changed(&self, _: SessionId) {}
    fn removed(&self, _: SessionId) {}
}

impl Home {
    /// Makes a home whose agents live like this, one after the other.
    pub(super) fn new(lives: &[&'static str]) -> Home {
        Home::with(Setup::default(), lives)
    }

    pub(super) fn with(setup: Setup, lives: &[&'static str]) -> Home {
        manual_clock::stop();
        let clock = Arc::new(SimClock::default());
        let steady = BootClock::compare(SimClock::default_start());
        let session = SessionId::mint(1, 1);
        let (disk, scripted) = (GatedDisk::new(1), Scripted::new(lives));
        let env = Env::new();
        let mut home = Home {
            disk,
            clock,
            steady,
            daemons: 0,
            env,
            daemon: None,
            scripted,
            session,
            files: Arc::default(),
            before_us: Arc::default(),
            arrivals: Arc::default(),
            captures: Arc::default(),
            idle_policy: IdleAgentPolicy::KEEP_ALL,
            seen: 0,
        };
        home.open();
        let created = SessionCreated {
            parent: None,
            title: "t".into(),
            working_dir: setup.working_dir.into(),
            provider: setup.provider,
            options: setup.options,
            env_names: setup.env_names,
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: setup.worktree.map(Box::new),
        };
        let workers = home.workers().clone();
        workers.records.store.create(session).expect("made");
        workers.records.append(session, vec![created.into()]).expect("appended");
        home
    }

    /// Opens the home as a daemon that nobody has seen.
    fn open(&mut self) {
        self.daemons += 1;
        let boot_id = self.boot_id();
        let opener = Opener { pid: 1, boot_id };
        let disk = Arc::new(self.disk.clone());
        let store = Arc::new(Store::open(disk, "/home", opener, self.clock.clone()).expect("a home"));
        let executable = Executable { path: "/bin/holder".into(), sha256: String::new() };
        let agents = Agents {
            supervisor: Supervisor { boot_id, epoch: self.daemons, steady: self.steady, wait_timeout: None },
            holders: Arc::new(Port(self.scripted.clone())),
            places: HolderPaths {
                holders: "/home/holders".into(),
                runtime: "/run".into(),
                executable,
                scopes: None,
            },
            environment: Environment::new(self.env.clone(), 0o022, std::collections::BTreeMap::new()),
            captures: self.captures.of(&store, Arc::new(self.disk.clone())),
        };
        let (before_us, arrivals) = (self.before_us.clone(), self.arrivals.clone());
        let contended = Contended { store: store.clone(), before_us, arrivals };
        let records = Records::new(Arc::new(contended), self.clock.clone(), self.steady);
        let (budgets, files) = (BudgetCheck::default(), self.files.clone());
        let workers = Workers::new(records, agents, budgets, files, Arc::new(Nobody));
        let workers = Arc::new(workers.with_idle_policy(self.idle_policy));
        let (seat, worker) = workers.hire_by_hand(self.session);
        self.daemon = Some(Daemon { worker, seat, workers, store });
    }

    fn boot_id(&self) -> BootId {
        BootId::mint(self.daemons, u128::from(self.daemons))
    }

    pub(super) fn daemon_ends(&mut self) {
        self.await_committer();
        self.daemon = None;
    }

    /// The daemon is killed, and another takes its place.
    pub(super) fn restart(&mut self) -> &mut Home {
        self.daemon_ends();
        self.open();
        self.tell(Command::Look);
        self.settle()
    }

    /// Restarts with a variable in the daemon's environment.
    pub(super) fn restart_with(&mut self, name: &str, value: &str) -> &mut Home {
        self.env.insert(name.to_owned(), value.to_owned());
        self.restart()
    }

    pub(super) fn workers(&self) -> &Arc<Workers> {
        &self.daemon.as_ref().expect("a daemon").workers
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.daemon.as_ref().expect("a daemon").store
    }

    pub(super) fn tell(&mut self, command: Command) {
        self.workers().send(self.session, command).expect("told");
    }

    /// Has the worker work until there is nothing to do before time passes; returns how long that is.
    fn work(&mut self) -> Duration {
        self.await_committer();
        for _ in 0..MOST_TURNS {
            self.scripted.has_news();
            let daemon = self.daemon.as_mut().expect("a daemon");
            let Some(most) = daemon.worker.work() else { return Duration::MAX };
            if !most.is_zero() && !self.scripted.has_news() && daemon.seat.inbox.is_empty() {
                return most;
            }
        }
        panic!("it does not come to rest: {}", self.course());
    }

    pub(super) fn settle(&mut self) -> &mut Home {
        self.work();
        self
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) -> &mut Home {
        let mut left = time;
        loop {
            let most = self.work().min(left);
            manual_clock::advance(most);
            self.clock.advance(i64::try_from(most.as_millis()).expect("not so long"));
            left -= most;
            if left.is_zero() {
                return self.settle();
            }
        }
    }

    /// Lets a time pass in which whatever is to be tried again is.
    pub(super) fn wait_long(&mut self) -> &mut Home {
        self.pass(Duration::from_secs(120))
    }

    /// Lets the time pass after which what was cut for the first time goes on.
    pub(super) fn wait_long_enough_to_continue(&mut self) -> &mut Home {
        self.pass(Duration::from_millis(250))
    }

    /// Has agents that are idle ended by this policy.
    pub(super) fn end_idle_agents(&mut self, policy: IdleAgentPolicy) {
        self.idle_policy = policy;
        self.restart();
    }

    /// Has somebody told of every append from now on.
    pub(super) fn observe(&mut self, observer: Arc<dyn Observer>) {
        self.daemon.as_ref().expect("a daemon").store.observe(observer);
    }

    /// Sends a message and lets the worker work.
    pub(super) fn send(&mut self) -> &mut Home {
        self.message().expect("taken");
        self.settle()
    }

    pub(super) fn message(&mut self) -> Result<MessageTaken, ServiceError> {
        self.give(do_it())
    }

    fn give(&mut self, new: NewMessage) -> Result<MessageTaken, ServiceError> {
        let session = self.session;
        self.ask(move |workers| messages::message(workers, session, &new, None, None))
    }

    /// Sends a message with these words and lets the worker work; returns the run that began with it.
    pub(super) fn say(&mut self, words: &str) -> RunId {
        let text = serde_json::json!({ "content": words }).to_string();
        let taken = self.give(serde_json::from_str(&text).expect("a message")).expect("taken");
        self.settle();
        taken.run_id.expect("nothing else goes on")
    }

    /// Forks the session, and goes on with the fork in the daemon that comes next.
    pub(super) fn fork(&mut self, new: NewFork) -> Result<ForkVerdict, ServiceError> {
        let fork = fork::fork(&self.views(), &Locks::default(), self.session, new, None)?;
        let verdict = {
            let views = self.views();
            let entry = views.directory.get(views.store(), fork).expect("there");
            fork::forked(views.store(), views.session(&entry))?.verdict
        };
        self.go_on_with(fork);
        Ok(verdict)
    }

    /// Has the next daemon's worker be that of another session.
    pub(super) fn go_on_with(&mut self, session: SessionId) -> &mut Home {
        (self.session, self.seen) = (session, 0);
        self.restart()
    }

    /// Returns the prompt that the newest agent was given last, whole.
    pub(super) fn prompted(&self) -> String {
        let world = self.scripted.world();
        let mut prompts =
            world.memory.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
        prompts
            .next_back()
            .and_then(|update| update["content"]["text"].as_str())
            .expect("a prompt")
            .to_owned()
    }

    /// Waits until the committer has done what follows from the appends it has answered.
    fn await_committer(&self) {
        if let Some(daemon) = &self.daemon {
            // It answers one after the other, and nobody else knows this session.
            let _ = daemon.store.current(SessionId::mint(2, 2));
        }
    }

    /// Sends a message, and leaves the worker alone: the daemon may die before it has looked.
    pub(super) fn send_only(&mut self) -> &mut Home {
        let (workers, session) = (self.workers().clone(), self.session);
        messages::message(&workers, session, &do_it(), None, None).expect("taken");
        self.await_committer();
        self
    }

    /// Asks for something that the worker answers when it has heard of it.
    fn ask<T: Send>(&mut self, what: impl FnOnce(&Arc<Workers>) -> T + Send) -> T {
        self.ask_while(what, |daemon| {
            if !daemon.seat.inbox.is_empty() {
                daemon.worker.work();
            }
        })
    }

    /// Asks for something, and has the daemon do this until it is answered.
    fn ask_while<T: Send>(
        &mut self,
        what: impl FnOnce(&Arc<Workers>) -> T + Send,
        mut work: impl FnMut(&mut Daemon),
    ) -> T {
        let workers = self.workers().clone();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| what(&workers));
            while !asked.is_finished() {
                let daemon = self.daemon.as_mut().expect("a daemon");
                daemon.seat.inbox.wait(None, Some(Duration::from_millis(1)));
                work(daemon);
            }
            asked.join().expect("no panic")
        })
    }

    pub(super) fn cancel(&mut self) -> Result<Option<RunId>, ServiceError> {
        let (reply, cancelled) = sync_channel(1);
        let (why, by, behind) = (CancelReason::User, "test".to_owned(), Vec::new());
        let cancelling = Cancelling { why, by, behind, after: None, reply };
        self.tell(Command::Cancel(Box::new(cancelling)));
        self.settle();
        cancelled.recv().expect("an answer").map(|cancelled| cancelled.run_id)
    }

    /// Has the daemon write nothing more after so many writes.
    pub(super) fn stop_writing_after(&mut self, writes: u64) {
        self.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, writes));
    }

    /// The daemon is killed after its last write, and another takes its place.
    pub(super) fn restart_after_last_write(&mut self) -> &mut Home {
        self.daemon_ends();
        self.disk.disk.clear_faults();
        self.restart()
    }

    /// Returns how often the disk was written to.
    pub(super) fn writes(&self) -> u64 {
        self.disk.disk.ops()
    }

    /// Returns how many records of a kind there are.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.records().iter().filter(|record| record.split(' ').next() == Some(kind)).count()
    }

    /// Leaves no room on the disk, or all there is.
    pub(super) fn fill_disk(&mut self, full: bool) {
        self.disk.disk.clear_faults();
        if full {
            self.disk.disk.inject(Fault::sticky(FaultKind::NoSpace, 0));
        }
    }

    /// Removes the session, with whatever it does.
    pub(super) fn delete(&mut self) -> Result<(), ServiceError> {
        let session = self.session;
        let delete = move |workers: &Arc<Workers>| sessions::delete(workers, session, true, "test");
        // Its agent's end takes several turns, with rests between them, for which nobody writes into the inbox.
        self.ask_while(delete, |daemon| {
            if let Some(rest) = daemon.worker.work() {
                manual_clock::advance(rest.min(Duration::from_millis(10)));
            }
        })
    }

    /// Tells whether anything is left of the session.
    pub(super) fn is_there(&self) -> bool {
        self.workers().records.store.open_session(self.session).is_ok()
    }

    /// From here on nothing begins.
    pub(super) fn stop_beginning(&mut self) {
        self.workers().begin_to_stop();
    }

    /// Answers the first wait by the kind of an option.
    pub(super) fn answer(&mut self, option: &str) -> Result<(), ServiceError> {
        let wait = self.wait_id();
        self.answer_to(wait, option)
    }

    pub(super) fn answer_to(&mut self, wait: WaitId, option: &str) -> Result<(), ServiceError> {
        let text = format!(r#"{{"option":"{option}"}}"#);
        let views = self.views();
        let answered = self.ask(move |_| {
            let answer = serde_json::from_str(&text).expect("an answer");
            waits::answer(&views, wait, &answer, "test").map(drop)
        });
        self.settle();
        answered
    }

    pub(super) fn wait_id(&self) -> WaitId {
        self.state().run.as_ref().and_then(|run| run.waits.first()).expect("a wait").wait_id
    }

    /// Resumes the session because a person says so.
    pub(super) fn resume(&mut self, env: &[(&str, &str)]) -> Result<(), ServiceError> {
        let env: Env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = serde_json::json!({ "env": env }).to_string();
        let asked = serde_json::from_str(&text).expect("a request");
        let session = self.session;
        let resumed =
            self.ask(move |workers| resume_session::resume(workers, &Locks::default(), session, &asked));
        self.settle();
        resumed.map(drop)
    }

    pub(super) fn close(&mut self) {
        let session = self.session;
        self.ask(move |workers| sessions::close(workers, session, "test")).expect("closed");
        self.settle();
    }

    pub(super) fn state(&self) -> Arc<SessionState> {
        self.workers().records.store.open_session(self.session).expect("there").state
    }

    /// Why nothing happens, as it is shown.
    pub(super) fn held(&self) -> String {
        let seat = &self.daemon.as_ref().expect("a daemon").seat;
        seat.sighting().held.unwrap_or_default()
    }

    /// Returns what shows the sessions, as after a start.
    pub(super) fn views(&self) -> Views {
        let views = self.unlisted_views();
        views.directory.survey(views.store()).expect("listed");
        views
    }

    /// Returns what shows the sessions, as at a start: none is known yet.
    pub(super) fn unlisted_views(&self) -> Views {
        let daemon = self.daemon.as_ref().expect("a daemon");
        let (workers, catalog) = (daemon.workers.clone(), daemon.store.clone());
        let worktrees = std::path::PathBuf::from("/nowhere");
        Views { workers, catalog, directory: Arc::default(), log_details: Arc::default(), worktrees }
    }

    /// The session as it is shown after a start.
    pub(super) fn shown(&self) -> SessionView {
        let views = self.views();
        views.session(&views.directory.get(views.store(), self.session).expect("there"))
    }

    /// Flips a byte of the log, which nobody has open: in the record behind the first of a kind, or in the first of all.
    pub(super) fn rot(&mut self, behind: Option<&str>) {
        assert!(self.daemon.is_none(), "a daemon has the log open");
        let log = Layout::new("/home").log(self.session);
        let text = String::from_utf8(self.disk.disk.read_file(&log).expect("a log")).expect("text");
        let found =
            behind.map_or(0, |kind| text.find(&format!(r#""kind":"{kind}""#)).expect("such a record"));
        let begin = if found == 0 { 0 } else { found + text[found..].find('\n').expect("a whole line") };
        assert!(self.disk.disk.flip_byte(&log, begin as u64 + 60));
    }

    /// Opens the home, and has nobody look at the session.
    pub(super) fn start(&mut self) -> &mut Home {
        self.open();
        self
    }

    /// The status, as it is shown.
    pub(super) fn status(&self) -> &'static str {
        let daemon = self.daemon.as_ref().expect("a daemon");
        let current = daemon.workers.records.store.open_session(self.session).expect("there");
        let holder = daemon.seat.sighting().holder.unwrap_or(HolderProof::Pending);
        let observed = Observed { boot: Some(self.boot_id()), holder, now: daemon.workers.records.time() };
        project(&current.state, &current.tokens, &observed).status.as_str()
    }

    /// What is known of the agent's holder.
    pub(super) fn proof(&self) -> String {
        format!("{:?}", self.daemon.as_ref().expect("a daemon").seat.sighting().holder)
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.workers().is_superseded()
    }

    /// The course of the session: its records in short, without those of every beginning.
    pub(super) fn course(&self) -> String {
        self.records().join("; ")
    }

    /// What has come since this was last asked.
    pub(super) fn news(&mut self) -> String {
        let records = self.records();
        let seen = std::mem::replace(&mut self.seen, records.len());
        records[seen..].join("; ")
    }

    fn records(&self) -> Vec<String> {
        let reader = self.workers().records.store.reader(self.session).expect("a log");
        let (mut lines, mut records) = (reader.forward(Cursor::START), Vec::new());
        while let Some(raw) = lines.next().expect("a log") {
            let line = Line::parse(raw.bytes).expect("a record");
            records.extend(summary(line.kind, &serde_json::from_str(line.text).expect("JSON")));
        }
        records
    }
}

fn do_it() -> NewMessage {
    serde_json::from_str(r#"{"content":"do it"}"#).expect("a message")
}

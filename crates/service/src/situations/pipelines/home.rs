//! A home in memory with runs of pipelines: the real workers of runs and of sessions, on a simulated disk, with scripted holders and a
//! directory in memory; all of them had work by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_domain::event::{CancelReason, OnCut, OnDrift, Options, Permissions, ProjectConfig};
use rekindle_domain::id::{BootId, PipelineId, SessionId, StreamId};
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::session::SessionState;
use rekindle_holder::client::Executable;
use rekindle_store::blobs::BlobId;
use rekindle_store::commit::Receipt;
use rekindle_store::log::Cursor;
use rekindle_store::{Observer, Opener, Store};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::gated::GatedDisk;
use serde_json::Value;

use super::super::captures::CaptureScript;
use super::super::holder::Scripted;
use super::super::port::Port;
use super::super::rewinds::ScriptedFiles;
use super::trees::MemoryTrees;
use crate::boottime::BootClock;
use crate::budget_check::BudgetCheck;
use crate::drive::agents::Agents;
use crate::drive::environment::{Env, Environment};
use crate::drive::holders::HolderPaths;
use crate::drive::live::Supervisor;
use crate::drive::worker::{
    Cancelling, Command as SessionCommand, Seat as SessionSeat, Watcher, Worker as SessionWorker, Workers,
};
use crate::error::{Result, ServiceError};
use crate::lock::locked;
use crate::pipelines::{Command, NewRun, Pipelines, ResumeRun, Seat, Worker};
use crate::records::Records;
use crate::show::{Directory, Views};
use crate::ticks::manual_clock;
use crate::worker_pool::{Seat as _, Work};

/// Far more turns than any situation takes.
const MOST_TURNS: usize = 10_000;

/// Two rounds of three stages: work, a look at it, and a check.
pub(super) const CONFIG: &str = r#"{"version":1,
    "agents":{"builder":{"command":["builder"],"profile":"acp","env":[]},"reviewer":{"command":["reviewer"],"profile":"acp"}},
    "tasks":[{"id":"T-1","goal":"Make it so","inputs":{"spec":{"file":"spec"}}}],
    "pipelines":{"default":{"max_rounds":2,"stages":[
        {"name":"implement","agent":"builder","prompt":"{{task.goal}} {{inputs.spec}} {{review.findings}}"},
        {"name":"review","agent":"reviewer","prompt":"look at {{implement.diff}}","writes":false,
         "outcomes":{"approved":"next","changes_requested":"implement"}},
        {"name":"verify","check":["true"],"on_fail":"implement"}]}}}"#;

pub(super) struct Home {
    pub(super) disk: GatedDisk,
    pub(super) clock: Arc<SimClock>,
    steady: BootClock,
    daemons: u64,
    pub(super) env: Env,
    daemon: Option<Daemon>,
    pub(super) scripted: Arc<Scripted>,
    pub(super) trees: Arc<MemoryTrees>,
    pub(super) run: PipelineId,
    seen: usize,
}

struct Daemon {
    // Dropped first: they keep the store open.
    runs: Vec<(Arc<Seat>, Worker)>,
    sessions: Vec<(Arc<SessionSeat>, SessionWorker)>,
    pipelines: Arc<Pipelines>,
    workers: Arc<Workers>,
    store: Arc<Store>,
}

struct Nobody;

impl Watcher for Nobody {
    fn said(&self, _: SessionId, _: &rekindle_agent::connection::Delta) {}
    fn changed(&self, _: SessionId) {}
    fn removed(&self, _: SessionId) {}
}

/// Whoever a daemon tells of appends.
struct Watch {
    directory: Arc<Directory>,
    pipelines: std::sync::Weak<Pipelines>,
}

impl Observer for Watch {
    fn committed(&self, stream: StreamId, _: &Receipt) {
        if let Some(session) = stream.session() {
            self.directory.mark_stale(session);
        }
    }

    fn answered(&self, stream: StreamId, _: &Receipt) {
        if let Some(pipelines) = self.pipelines.upgrade() {
            pipelines.grown(stream);
        }
    }
}

impl Home {
    /// Makes a home whose agents live like this, one after the other.
    pub(super) fn new(lives: &[&'static str]) -> Home {
        manual_clock::stop();
        let clock = Arc::new(SimClock::default());
        let trees = MemoryTrees::new(&[("code", "0"), ("spec", "as it is written")]);
        let scripted = Scripted::new(lives);
        scripted.world().files = Some(trees.files.clone());
        let mut home = Home {
            disk: GatedDisk::new(1),
            clock,
            steady: BootClock::compare(SimClock::default_start()),
            daemons: 0,
            env: Env::new(),
            daemon: None,
            scripted,
            trees,
            run: PipelineId::from_ulid(0),
            seen: 0,
        };
        home.open();
        home
    }

    /// Makes a home and starts a run there.
    pub(super) fn with_run(lives: &[&'static str]) -> Home {
        let mut home = Home::new(lives);
        home.start(new_run(CONFIG)).expect("started");
        home.settle();
        home
    }

    /// Opens the home as a daemon that nobody has seen.
    pub(super) fn open(&mut self) {
        self.daemons += 1;
        let boot_id = BootId::mint(self.daemons, u128::from(self.daemons));
        let disk = Arc::new(self.disk.clone());
        let opener = Opener { pid: 1, boot_id };
        let store = Arc::new(Store::open(disk.clone(), "/home", opener, self.clock.clone()).expect("a home"));
        let executable = Executable { path: "/bin/holder".into(), sha256: String::new() };
        let captures = Arc::new(CaptureScript::default());
        let agents = Agents {
            supervisor: Supervisor { boot_id, epoch: self.daemons, steady: self.steady, wait_timeout: None },
            holders: Arc::new(Port(self.scripted.clone())),
            places: HolderPaths {
                holders: "/home/holders".into(),
                runtime: "/run".into(),
                executable,
                scopes: None,
            },
            environment: Environment::new(self.env.clone(), 0o022, BTreeMap::new()),
            captures: captures.of(&store, disk.clone()),
        };
        let records = Records::new(store.clone(), self.clock.clone(), self.steady);
        let files = Arc::new(ScriptedFiles::default());
        let workers =
            Arc::new(Workers::new(records, agents, BudgetCheck::default(), files, Arc::new(Nobody)));
        *locked(&workers.by_hand) = Some(Vec::new());
        let directory: Arc<Directory> = Arc::default();
        let views = Arc::new(Views {
            workers: workers.clone(),
            catalog: store.clone(),
            directory: directory.clone(),
            log_details: Arc::default(),
            worktrees: PathBuf::from("/nowhere"),
        });
        views.directory.survey(views.store()).expect("listed");
        let pipelines = Arc::new(Pipelines::new(store.clone(), disk, views, self.trees.clone()));
        *locked(&pipelines.by_hand) = Some(Vec::new());
        store.observe(Arc::new(Watch { directory, pipelines: Arc::downgrade(&pipelines) }));
        self.daemon = Some(Daemon { runs: Vec::new(), sessions: Vec::new(), pipelines, workers, store });
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("a daemon")
    }

    pub(super) fn pipelines(&self) -> Arc<Pipelines> {
        self.daemon().pipelines.clone()
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.daemon().store
    }

    pub(super) fn workers(&self) -> &Arc<Workers> {
        &self.daemon().workers
    }

    pub(super) fn daemon_ends(&mut self) {
        self.await_committer();
        self.daemon = None;
    }

    /// The daemon is killed, and another takes its place and goes on with the runs.
    pub(super) fn restart(&mut self) -> &mut Home {
        self.daemon_ends();
        self.open();
        self.recover()
    }

    /// Has the worker of the run work, and those of sessions do nothing.
    pub(super) fn run_only(&mut self) -> &mut Home {
        self.await_committer();
        let daemon = self.daemon.as_mut().expect("a daemon");
        let hired = locked(&daemon.pipelines.by_hand)
            .iter_mut()
            .flat_map(|hired| hired.drain(..))
            .collect::<Vec<_>>();
        daemon.runs.extend(hired);
        for (_, worker) in &mut daemon.runs {
            let _ = worker.work();
        }
        self
    }

    pub(super) fn recover(&mut self) -> &mut Home {
        self.pipelines().recover();
        self.settle()
    }

    /// Starts a run.
    pub(super) fn start(&mut self, new: NewRun) -> Result<PipelineId> {
        let id = self.pipelines().create(new, None, "user:ada")?;
        (self.run, self.seen) = (id, 0);
        Ok(id)
    }

    fn await_committer(&self) {
        if let Some(daemon) = &self.daemon {
            // It answers one after the other, and nobody else knows this session.
            let _ = daemon.store.current(SessionId::mint(2, 2));
        }
    }

    /// Has all workers work until there is nothing to do before time passes; returns how long that is.
    fn work(&mut self) -> Duration {
        for _ in 0..MOST_TURNS {
            self.await_committer();
            let scripted = self.scripted.clone();
            let daemon = self.daemon.as_mut().expect("a daemon");
            daemon
                .sessions
                .extend(locked(&daemon.workers.by_hand).iter_mut().flat_map(|hired| hired.drain(..)));
            daemon
                .runs
                .extend(locked(&daemon.pipelines.by_hand).iter_mut().flat_map(|hired| hired.drain(..)));
            scripted.has_news();
            let mut least = Duration::MAX;
            let mut busy = false;
            daemon.sessions.retain_mut(|(_, worker)| match worker.work() {
                Some(most) => {
                    least = least.min(most);
                    true
                }
                None => false,
            });
            busy |= scripted.has_news();
            let store = daemon.store.clone();
            let _ = store.current(SessionId::mint(2, 2));
            daemon.runs.retain_mut(|(_, worker)| match worker.work() {
                Some(most) => {
                    least = least.min(most);
                    true
                }
                None => false,
            });
            let _ = store.current(SessionId::mint(2, 2));
            busy |= least.is_zero() || scripted.has_news();
            busy |= daemon.sessions.iter().any(|(seat, _)| !seat.inbox.is_empty());
            busy |= daemon.runs.iter().any(|(seat, _)| !seat.inbox().is_empty());
            busy |= locked(&daemon.workers.by_hand).as_ref().is_some_and(|hired| !hired.is_empty());
            if !busy {
                return least;
            }
        }
        panic!("it does not come to rest: {}", self.course());
    }

    pub(super) fn settle(&mut self) -> &mut Home {
        self.pass(Duration::from_millis(100))
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
                self.work();
                return self;
            }
        }
    }

    /// Lets the time pass after which whatever was cut is tried again.
    pub(super) fn wait_long(&mut self) -> &mut Home {
        self.pass(Duration::from_secs(120))
    }

    pub(super) fn resume(&mut self, asked: ResumeRun) -> Result<(), ServiceError> {
        let (reply, answer) = sync_channel(1);
        let asked = Box::new(ResumeRun { by: "user:ada".into(), ..asked });
        self.tell(Command::Resume { asked, reply });
        self.settle();
        answer.recv().expect("an answer").map(drop)
    }

    pub(super) fn resume_with(&mut self, on_drift: OnDrift) -> Result<(), ServiceError> {
        self.resume(ResumeRun { on_drift: Some(on_drift), ..ResumeRun::default() })
    }

    /// Two people resume the run at once, each with a word about its files; returns what each is answered.
    pub(super) fn resume_twice(&mut self, words: [OnDrift; 2]) -> [Result<(), ServiceError>; 2] {
        let answers = words.map(|word| {
            let (reply, answer) = sync_channel(1);
            let asked = ResumeRun { on_drift: Some(word), by: "user:ada".into(), ..ResumeRun::default() };
            self.tell(Command::Resume { asked: Box::new(asked), reply });
            answer
        });
        self.settle();
        answers.map(|answer| answer.recv().expect("an answer").map(drop))
    }

    pub(super) fn abort(&mut self) -> Result<(), ServiceError> {
        let (reply, answer) = sync_channel(1);
        self.tell(Command::Abort { reason: Some("no more".into()), by: "user:ada".into(), reply });
        self.settle();
        answer.recv().expect("an answer")
    }

    fn tell(&self, command: Command) {
        self.pipelines().send(self.run, command).expect("told");
    }

    /// Cancels what goes on in the session of the step.
    pub(super) fn cancel_session(&mut self) -> &mut Home {
        let (reply, _) = sync_channel(1);
        let (why, by) = (CancelReason::User, "test".to_owned());
        let cancelling = Cancelling { why, by, behind: Vec::new(), after: None, reply };
        let session = self.session().id;
        self.workers().send(session, SessionCommand::Cancel(Box::new(cancelling))).expect("told");
        self.settle()
    }

    pub(super) fn state(&self) -> PipelineState {
        self.state_of(self.run)
    }

    pub(super) fn state_of(&self, run: PipelineId) -> PipelineState {
        self.store().open_pipeline(run).expect("readable").expect("there").fold
    }

    /// The session of the latest attempt.
    pub(super) fn session(&self) -> Arc<SessionState> {
        let state = self.state();
        let attempt = state.last_step().and_then(|step| step.attempt).expect("an attempt");
        self.store().open_session(attempt.session_id).expect("there").state
    }

    /// Why nothing happens, as it is shown.
    pub(super) fn held(&self) -> String {
        let standing = self.daemon().pipelines.standing(self.run);
        standing.held.unwrap_or_default()
    }

    /// A person changes a file.
    pub(super) fn edit(&mut self, path: &str, text: Option<&str>) {
        let at = rekindle_domain::time::Clock::now(&*self.clock).plus_millis(1);
        self.trees.change(path, text, at);
    }

    /// Returns the prompt that the newest agent was given last, whole.
    pub(super) fn prompted(&self) -> String {
        let world = self.scripted.world();
        let mut prompts =
            world.memory.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
        let last = prompts.next_back().and_then(|update| update["content"]["text"].as_str());
        last.expect("a prompt").to_owned()
    }

    /// The course of the run: its records in short.
    pub(super) fn course(&self) -> String {
        self.records().join("; ")
    }

    /// What has come since this was last asked.
    pub(super) fn news(&mut self) -> String {
        let records = self.records();
        let seen = std::mem::replace(&mut self.seen, records.len());
        records[seen..].join("; ")
    }

    pub(super) fn records(&self) -> Vec<String> {
        let reader = self.store().ledger_reader(self.run).expect("a ledger");
        let (mut lines, mut records) = (reader.forward(Cursor::START), Vec::new());
        while let Some(raw) = lines.next().expect("a ledger") {
            let line = Line::parse(raw.bytes).expect("a record");
            records.push(summary(line.kind, &serde_json::from_str(line.text).expect("JSON")));
        }
        records
    }
}

/// Returns the summary of a record.
fn summary(kind: &str, record: &Value) -> String {
    let word = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
    let step = word("step_id");
    match kind {
        "step.intended" => format!("intend {step}"),
        "step.began" if record["reminder"] == true => format!("remind {step}"),
        "step.began" => match record["attempt"].as_u64() {
            Some(1) | None => format!("begin {step}"),
            Some(attempt) => format!("begin {step} #{attempt}"),
        },
        "step.finished" => format!("finish {step} {}", word("outcome")),
        "step.interrupted" => format!("cut {step} {}", word("reason")),
        "pipeline.drift" => format!("drift {}", word("decision")),
        kind => kind.trim_start_matches("pipeline.").to_owned(),
    }
}

/// Returns a run of the task of a configuration.
pub(super) fn new_run(config: &str) -> NewRun {
    let config: ProjectConfig = serde_json::from_str(config).expect("a configuration");
    NewRun {
        config_hash: BlobId::of(b"config"),
        task: "T-1".into(),
        pipeline: None,
        working_dir: "/".into(),
        origin: None,
        on_cut: None,
        on_drift: None,
        no_cache: false,
        options: Options { permissions: Permissions::Ask, ..Options::default() },
        budget: None,
        env: Env::new(),
        config,
    }
}

/// Returns the same with what becomes of a cut.
pub(super) fn new_run_on_cut(on_cut: OnCut) -> NewRun {
    NewRun { on_cut: Some(on_cut), ..new_run(CONFIG) }
}

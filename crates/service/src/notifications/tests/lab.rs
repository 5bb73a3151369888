//! A home in memory with sessions, somebody who observes it, and targets that do as they are told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rekindle_domain::event::{
    BudgetNotice, BudgetPart, BudgetScope, Event, InterruptReason, MessageAgent, PipelineBudget, Provider,
    Raw, ResumeHow, RunCompleted, RunInterrupted, RunResumed, RunStarted, RunWaiting, SessionCreated,
    WaitKind,
};
use rekindle_domain::id::{BootId, MessageId, PipelineId, RunId, SessionId, StreamId, TokenId, WaitId};
use rekindle_domain::line::Draft;
use rekindle_domain::projector::HolderProof;
use rekindle_domain::time::Timestamp;
use rekindle_notify::outbox::Outbox;
use rekindle_notify::{AnswerLink, Delivery, Message, Notice, NoticeKind, RateLimit, Wanted};
use rekindle_store::commit::{Append, Receipt};
use rekindle_store::disk::SharedDisk;
use rekindle_store::{Observer, Opener, Store};
use rekindle_testkit::clock::SimClock;

use super::super::deliver::Deliverer;
use super::super::hub::Hub;
use super::super::inbox::Inbox;
use super::super::log_readers::LogReaders;
use super::super::observe::NewsObserver;
use super::super::standing::Surroundings;
use super::super::target::{LinkMint, Target};
use super::super::{NotificationSettings, read_outbox};
use crate::feed::Attendance;
use crate::lock::locked;
use crate::show::Directory;

/// How long anything may take that another thread does.
const PATIENCE: Duration = Duration::from_secs(20);

/// A target that keeps what it gets, unless it is told to do something else.
#[derive(Debug)]
pub(super) struct Scripted {
    pub(super) name: &'static str,
    pub(super) always: bool,
    pub(super) per_hour: u32,
    /// What becomes of the next deliveries; after them all are taken.
    pub(super) outcomes: Mutex<VecDeque<Delivery>>,
    pub(super) got: Mutex<Vec<(Message, Vec<String>)>>,
}

impl Scripted {
    pub(super) fn new(name: &'static str) -> Scripted {
        let (outcomes, got) = Default::default();
        Scripted { name, always: false, per_hour: 0, outcomes, got }
    }

    /// Returns what it got: kinds and events, or what a summary counts.
    pub(super) fn got(&self) -> Vec<String> {
        let text = |(message, _): &(Message, Vec<String>)| match message {
            Message::Notice(notice) => format!("{} {}", notice.kind.name(), seq(&notice.event_id)),
            Message::Summary(summary) => {
                let counts = summary.counts.iter().map(|(kind, count)| format!("{count} {}", kind.name()));
                format!("summary of {}", counts.collect::<Vec<_>>().join(", "))
            }
        };
        locked(&self.got).iter().map(text).collect()
    }
}

fn seq(event_id: &str) -> &str {
    event_id.rsplit('.').next().unwrap_or(event_id)
}

impl Target for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn wants(&self, notice: &Notice, attended: bool, _: Timestamp) -> Wanted {
        let is_told = notice.kind != NoticeKind::Progress && (self.always || !attended);
        if is_told { Wanted::Now } else { Wanted::No }
    }

    fn rate_limit(&self) -> RateLimit {
        RateLimit::new(std::num::NonZeroU32::new(self.per_hour))
    }

    fn carries_links(&self) -> bool {
        true
    }

    fn deliver(&self, message: &Message, links: &[AnswerLink], _: Timestamp) -> Delivery {
        let outcome = locked(&self.outcomes).pop_front().unwrap_or(Delivery::Delivered);
        if outcome == Delivery::Delivered {
            let links = links.iter().map(|link| link.url.clone()).collect();
            locked(&self.got).push((message.clone(), links));
        }
        outcome
    }
}

/// Makes links that name what they are for.
struct Links;

impl LinkMint for Links {
    fn mint(&self, session: SessionId, wait: WaitId, target: &str) -> Vec<AnswerLink> {
        vec![AnswerLink {
            label: "Yes".into(),
            url: format!("https://box/answer#{session}.{wait}.{target}.secret"),
        }]
    }
}

/// What sees to it that lists are not old.
struct Stale(Arc<Directory>);

impl Observer for Stale {
    fn committed(&self, stream: StreamId, _: &Receipt) {
        stream.session().into_iter().for_each(|session| self.0.mark_stale(session));
    }

    fn answered(&self, _: StreamId, _: &Receipt) {}
}

/// A daemon's life, as far as it is about notifications.
pub(super) struct Lab {
    pub(super) clock: Arc<SimClock>,
    pub(super) store: Arc<Store>,
    pub(super) hub: Arc<Hub>,
    pub(super) attendance: Arc<Attendance>,
    pub(super) targets: Vec<Arc<Scripted>>,
    observer: NewsObserver,
    inbox: Arc<Inbox>,
    around: Arc<Surroundings>,
    limits: Vec<RateLimit>,
}

/// The session that most tests are about.
pub(super) fn session() -> SessionId {
    SessionId::mint(1, 1)
}

pub(super) fn run(n: u128) -> RunId {
    RunId::mint(1, n)
}

pub(super) fn wait(n: u128) -> WaitId {
    WaitId::mint(1, n)
}

impl Lab {
    /// Opens a home with a target that is told what nobody looks at.
    pub(super) fn open(disk: SharedDisk, clock: &Arc<SimClock>) -> Lab {
        Lab::with(disk, clock, vec![Scripted::new("phone")])
    }

    pub(super) fn with(disk: SharedDisk, clock: &Arc<SimClock>, targets: Vec<Scripted>) -> Lab {
        let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
        let store = Arc::new(Store::open(disk.clone(), "/home", opener, clock.clone()).expect("a home"));
        let (directory, inbox) = (Arc::<Directory>::default(), Arc::<Inbox>::default());
        store.observe(Arc::new(Stale(directory.clone())));
        store.observe(inbox.clone());
        directory.survey(&*store).expect("sessions");
        let attendance = Arc::<Attendance>::default();
        let around = Arc::new(Surroundings {
            store: store.clone(),
            directory,
            log_details: Arc::default(),
            attendance: attendance.clone(),
            holder: Box::new(|_| HolderProof::Lock),
            clock: clock.clone(),
        });
        let targets: Vec<Arc<Scripted>> = targets.into_iter().map(Arc::new).collect();
        let names = targets.iter().map(|target| target.name().to_owned());
        let hub = Arc::new(Hub::new(disk, store.layout().outbox(), clock.clone(), names));
        let settings = NotificationSettings {
            targets: targets.iter().map(|target| target.clone() as Arc<dyn Target>).collect(),
            settle: Duration::from_secs(2),
            progress_every: Duration::from_secs(900),
            stall_after: None,
        };
        let limits = targets.iter().map(|target| target.rate_limit()).collect();
        let mut observer =
            NewsObserver::new(settings, hub.clone(), inbox.clone(), LogReaders::default(), around.clone());
        assert!(observer.open(), "its outbox can be read");
        let mut lab =
            Lab { clock: clock.clone(), store, hub, attendance, targets, observer, inbox, around, limits };
        lab.work();
        lab
    }

    /// Has the observer do what is due, logs read included.
    pub(super) fn observe(&mut self) {
        let begin = Instant::now();
        self.observer.turn(self.inbox.wait(Duration::ZERO, None));
        while self.observer.is_behind() {
            assert!(begin.elapsed() < PATIENCE, "it reads for ever");
            self.observer.turn(self.inbox.wait(Duration::from_millis(5), None));
        }
    }

    /// Has the observer work until something is so, whatever it waits for.
    pub(super) fn observe_until(&mut self, is_so: impl Fn(&Lab) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "it does not come");
            self.observer.turn(self.inbox.wait(Duration::from_millis(5), None));
        }
    }

    /// Has everything delivered that is due.
    pub(super) fn deliver(&mut self) {
        (0..self.targets.len()).for_each(|at| self.deliver_to(at));
    }

    /// Has everything delivered that is due, to one target.
    pub(super) fn deliver_to(&mut self, at: usize) {
        self.deliverer(at).deliver_due(&mut self.limits[at]);
    }

    /// Returns who delivers to a target, for a thread of its own.
    pub(super) fn deliverer(&self, at: usize) -> Deliverer {
        Deliverer::new(self.hub.clone(), self.targets[at].clone(), Arc::new(Links), self.around.clone())
    }

    /// Has the observer leave in order.
    pub(super) fn leave(&mut self) {
        self.observer.write_ahead();
    }

    pub(super) fn work(&mut self) {
        self.observe();
        self.deliver();
    }

    /// Lets time pass, and everything be done that is due then.
    pub(super) fn pass(&mut self, millis: i64) {
        self.work();
        self.clock.advance(millis);
        self.work();
    }

    pub(super) fn got(&self) -> Vec<String> {
        self.targets[0].got()
    }

    /// Returns the outbox as it is on disk.
    pub(super) fn on_disk(&self, disk: &SharedDisk) -> Outbox {
        read_outbox(&**disk, &self.store.layout().outbox()).expect("an outbox")
    }

    pub(super) fn append(&self, session: SessionId, records: Vec<Draft>) {
        self.store.open_session(session).expect("a session");
        self.store.append(Append::as_needed(session, records)).expect("recorded");
    }

    pub(super) fn append_to_pipeline(&self, run: PipelineId, records: Vec<Draft>) {
        self.store.open_pipeline(run).expect("readable").expect("a run");
        self.store.append(Append::as_needed(run, records)).expect("recorded");
    }

    /// Makes a pipeline run whose first step is about to begin.
    pub(super) fn begin_pipeline(&self) -> PipelineId {
        let id = PipelineId::from_ulid(7);
        let record = |kind: &'static str, fields: String| {
            Draft::from(Event::read(kind, fields.leak()).expect("a record"))
        };
        let hash = "01".repeat(32);
        let stages = r#"{"default":{"stages":[{"name":"implement","agent":"a","prompt":"do it"}]}}"#;
        let config = format!(r#"{{"version":1,"agents":{{"a":{{"agent":"claude"}}}},"pipelines":{stages}}}"#);
        let started = format!(
            r#"{{"pipeline":"default","config":{config},"config_hash":"{hash}","task":{{"id":"T-1","goal":"g"}},
            "snapshot_id":"snap-010101010101","tree":"{hash}","working_dir":"/w","origin":"/w","by":"user:ada"}}"#
        );
        let intended = format!(
            r#"{{"step_id":"implement-1","stage":"implement","round":1,"action":"implement","key":"ik:{hash}","from":"{hash}",
            "inputs_hash":"{hash}"}}"#
        );
        self.store.create_pipeline(id).expect("a run");
        let records = vec![record("pipeline.started", started), record("step.intended", intended)];
        self.store.append(Append::as_needed(id, records)).expect("recorded");
        id
    }

    /// Makes a session with a run.
    pub(super) fn begin(&self, session: SessionId) {
        let created = SessionCreated {
            parent: None,
            title: "tidy up".into(),
            working_dir: "/w".into(),
            provider: Provider { profile: "acp".into(), ..Provider::default() },
            options: Default::default(),
            env_names: Vec::new(),
            key: None,
            imported_from: None,
            idempotency_key: None,
            created_at: None,
            forked_from: None,
            restoring: None,
            worktree: None,
        };
        self.store.create(session).expect("a session");
        self.append(session, vec![created.into(), started(run(1), None)]);
    }
}

pub(super) fn started(run_id: RunId, continues: Option<RunId>) -> Draft {
    let started = RunStarted {
        run_id,
        boot_id: BootId::mint(0, 1),
        machine_boot: None,
        message_id: None,
        attempt: 1,
        continues,
        origin_run_id: None,
        task_id: None,
    };
    started.into()
}

pub(super) fn completed(run_id: RunId) -> Draft {
    RunCompleted { run_id, stop_reason: None, usage: None }.into()
}

pub(super) fn interrupted(run_id: RunId) -> Draft {
    let reason = InterruptReason::AgentExit;
    RunInterrupted { run_id, reason, uncertain: Vec::new(), uncertain_turn: false, detail: None }.into()
}

pub(super) fn asks(run_id: RunId, wait_id: WaitId) -> Draft {
    let waiting = RunWaiting {
        run_id,
        wait_id,
        wait_kind: WaitKind::Question,
        resume_token_id: TokenId::mint(1, 1),
        deadline_at: None,
        tool_call_id: None,
        request: Some(Raw::from_value(&serde_json::json!({"params": {"message": "May I?"}})).expect("JSON")),
        by: None,
        idempotency_key: None,
    };
    waiting.into()
}

pub(super) fn answered(run_id: RunId, wait_id: WaitId) -> Draft {
    RunResumed { run_id, wait_id, answer: None, by: None, how: ResumeHow::Answered, granted: None }.into()
}

/// Returns something that an agent said, which survives no power cut.
pub(super) fn said(text: &str) -> Draft {
    let (run_id, message_id) = (Some(run(1)), MessageId::mint(1, 1));
    MessageAgent { run_id, message_id, content: Raw::text(text), partial: false }.into()
}

/// Most of the budget of a pipeline run is used.
pub(super) fn most_of_the_budget() -> Draft {
    let (scope, part) = (BudgetScope::Run, BudgetPart::Tokens);
    PipelineBudget { notice: BudgetNotice { scope, part, used: 8.0, limit: 10.0, exceeded: false } }.into()
}

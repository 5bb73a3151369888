//! Ledgers for tests as short text, a record a word or two: `start`, `intend review-1`, `began`, `remind`, `finish approved`,
//! `finish completed to=7`, `cached completed`, `interrupt agent_gone`, `drift accept found=9`, `complete`, `fail`, `abort`,
//! `reopen`, `import`, `budget`.

use std::borrow::Cow;

use crate::blob_id::BlobId;
use crate::event::{
    AgentIdentity, BudgetNotice, BudgetPart, BudgetScope, ChangedFiles, Event, OnCut, OnDrift, Options,
    PathList, PipelineAborted, PipelineBudget, PipelineCompleted, PipelineDrift, PipelineFailed,
    PipelineImported, PipelineReopened, PipelineStarted, ProjectConfig, ResumePolicy, StepBegan, StepCounts,
    StepCut, StepFinished, StepInterrupted, Usage,
};
use crate::id::{PipelineId, RunId, RunName, SessionId, StepId, StepKey};
use crate::pipeline::compose::{self, Intention};
use crate::pipeline::{PipelineState, StepState};
use crate::time::Timestamp;

/// A pipeline in which every kind of stage is: its outcomes lead on, back and ahead.
pub(in crate::pipeline) const CONFIG: &str = r#"{"version":1,
    "agents":{"builder":{"agent":"claude"},"reviewer":{"agent":"codex"}},
    "tasks":[{"id":"T-1","goal":"Make it so"}],
    "pipelines":{"default":{"max_rounds":3,"stages":[
        {"name":"implement","agent":"builder","prompt":"{{task.goal}}"},
        {"name":"review","agent":"reviewer","prompt":"look","writes":false,
         "outcomes":{"approved":"next","changes_requested":"implement","trivial":"document","hopeless":"fail"}},
        {"name":"verify","check":["cargo","test"],"on_fail":"implement"},
        {"name":"document","agent":"builder","prompt":"document it","on_fail":"document"}]}}}"#;

pub(super) fn pipeline_id() -> PipelineId {
    RunName::mint(1_760_969_298_000, 7).pipeline_id()
}

pub(super) fn tree(n: u8) -> BlobId {
    BlobId::from_bytes([n; 32])
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(1_760_969_298_000 + second * 1000)
}

pub(in crate::pipeline) fn id(text: &str) -> StepId {
    text.parse().expect("a step")
}

pub(super) fn started(on_cut: Option<OnCut>) -> PipelineStarted<'static> {
    let config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
    PipelineStarted {
        pipeline: "default".into(),
        task: Box::new(config.tasks[0].clone()),
        config: Box::new(config),
        config_hash: BlobId::of(CONFIG.as_bytes()),
        snapshot_id: "snap-010101010101".into(),
        tree: tree(1),
        working_dir: "/repo".into(),
        origin: "/repo".into(),
        on_cut,
        by: "user:ada".into(),
        on_drift: None,
        budget: None,
        no_cache: false,
        options: None,
        idempotency_key: None,
    }
}

/// Returns what a step begins with that comes next in a run: its key hangs on the step and on the tree.
pub(super) fn intention(id: &StepId, from: BlobId) -> Intention {
    let key = StepKey::from_bytes(*BlobId::of(format!("{id} {from}").as_bytes()).as_bytes());
    let name = match id.stage.as_str() {
        "verify" => None,
        "review" => Some("reviewer"),
        _ => Some("builder"),
    };
    let agent = name.map(|name| AgentIdentity { name: name.into(), version: None, command_hash: tree(0) });
    Intention { key, from, agent, inputs_hash: tree(0) }
}

/// A ledger and what it amounts to.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Ledger {
    pub(in crate::pipeline) state: PipelineState,
    pub(super) records: u64,
}

impl Ledger {
    pub(super) fn new() -> Ledger {
        Ledger { state: PipelineState::empty(pipeline_id()), records: 0 }
    }

    /// The ledger with these records; each is taken in, or the test ends.
    pub(in crate::pipeline) fn of(script: &str) -> Ledger {
        let mut ledger = Ledger::new();
        for text in script.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            ledger.push(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        }
        ledger
    }

    pub(super) fn push(&mut self, text: &str) -> Result<(), String> {
        let event = self.event(text);
        self.take(&event)
    }

    pub(in crate::pipeline) fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        self.records += 1;
        self.state.apply(at(self.records as i64), event).map_err(|refused| refused.why)
    }

    pub(super) fn step(&self) -> &StepState {
        self.state.last_step().expect("a step")
    }

    /// Returns the event that a text stands for, where the ledger has come to.
    pub(in crate::pipeline) fn event(&self, text: &str) -> Event<'static> {
        let mut words = text.split_whitespace();
        let kind = words.next().expect("a kind");
        let (mut what, mut numbers) = ("", Vec::new());
        for word in words {
            match word.split_once('=') {
                Some((name, number)) => numbers.push((name, number.parse::<u8>().expect("a number"))),
                None => what = word,
            }
        }
        let number = |name: &str| numbers.iter().find(|(of, _)| *of == name).map(|(_, number)| *number);
        let step = self.state.last_step();
        let step_id = step.map_or_else(|| id("implement-1"), |step| step.id.clone());
        let key = step.map_or(StepKey::from_bytes([0; 32]), |step| step.key);
        let from = step.map_or(tree(1), |step| step.from);
        let attempts = step.map_or(0, |step| step.attempts);
        let session = |n: u32| SessionId::from_ulid(u128::from(n));
        match kind {
            "start" => started(None).into(),
            "start-ask" => started(Some(OnCut::Ask)).into(),
            "start-resume-ask" => {
                let options = Options { resume: ResumePolicy::Ask, ..Options::default() };
                PipelineStarted { options: Some(Box::new(options)), ..started(None) }.into()
            }
            "start-restore" => started(Some(OnCut::Restore)).into(),
            "start-continue" => started(Some(OnCut::Continue)).into(),
            "intend" => {
                let from = number("from").map(tree).or(self.state.expected_tree()).unwrap_or(tree(1));
                compose::intend(id(what), intention(&id(what), from)).event
            }
            "began" | "remind" => {
                let reminder = kind == "remind";
                let attempt = number("attempt").map_or(attempts + u32::from(!reminder), u32::from);
                let session_id = session(number("session").map_or(attempt, u32::from));
                let run_id = RunId::from_ulid(u128::from(self.records));
                StepBegan { step_id, session_id, run_id, attempt, reminder }.into()
            }
            "finish" | "cached" => {
                // What writes leaves another tree, unless a case says which.
                let writes = self.state.stage(&step_id.stage).is_some_and(|(_, stage)| stage.writes);
                let next = if writes { tree(from.as_bytes()[0] + 1) } else { from };
                StepFinished {
                    step_id,
                    key: number("key").map_or(key, |key| StepKey::from_bytes([key; 32])),
                    outcome: Cow::Owned(what.to_owned()),
                    payload: None,
                    payload_blob: None,
                    to: number("to").map_or(next, tree),
                    files_touched: None,
                    usage: Some(Usage { input_tokens: 10, output_tokens: 1, cost: None }),
                    cached: kind == "cached",
                    counts: StepCounts { events: 1, heartbeats: 2, logs: 3 },
                }
                .into()
            }
            "interrupt" => StepInterrupted {
                step_id,
                attempt: number("attempt").map_or(attempts, u32::from),
                reason: StepCut::ALL.into_iter().find(|cut| cut.as_str() == what).expect("a reason"),
                detail: None,
                died_at: number("unseen").is_none().then(|| at(self.records as i64)),
                tree: Some(tree(number("tree").unwrap_or(200))),
            }
            .into(),
            "drift" => PipelineDrift {
                step_id,
                expected: number("expected").map_or(from, tree),
                found: tree(number("found").expect("what was found")),
                files: ChangedFiles::default(),
                after_cut: PathList::default(),
                unknown_author: PathList::default(),
                decision: OnDrift::ALL.into_iter().find(|word| word.as_str() == what).expect("a decision"),
                by: None,
            }
            .into(),
            "complete" => PipelineCompleted { reason: None, by: None }.into(),
            "fail" => PipelineFailed { reason: Some("why".into()), by: None }.into(),
            "abort" => PipelineAborted { reason: None, by: Some("user:ada".into()) }.into(),
            "import" => PipelineImported {
                machine: Some("elsewhere".into()),
                made_at: None,
                working_dir: Some("/here".into()),
            }
            .into(),
            "budget" => PipelineBudget {
                notice: BudgetNotice {
                    scope: BudgetScope::Run,
                    part: BudgetPart::Tokens,
                    used: 8.0,
                    limit: 10.0,
                    exceeded: false,
                },
            }
            .into(),
            "reopen" => PipelineReopened { reason: None, by: Some("user:ada".into()) }.into(),
            other => panic!("no kind {other}"),
        }
    }
}

//! What is shown of a run, from its records.

use std::borrow::Cow;

use rekindle_domain::event::{
    AgentIdentity, Event, PipelineStarted, Raw, StepCounts, StepFinished, StepInterrupted,
};
use rekindle_domain::id::{RunId, RunName};
use rekindle_domain::pipeline::compose::{self, Intention};
use serde_json::json;

use super::*;

/// What a run of two stages is started with.
const STARTED: &str = r#"{"pipeline":"default","config":{"version":1,"agents":{"builder":{"agent":"claude"}},
    "tasks":[{"id":"T-1","goal":"Make it so"}],"pipelines":{"default":{"max_rounds":3,"stages":[
        {"name":"implement","agent":"builder","prompt":"{{task.goal}}"},
        {"name":"review","agent":"builder","prompt":"look","outcomes":{"approved":"next","changes_requested":"implement"}}]}}},
    "config_hash":"0101010101010101010101010101010101010101010101010101010101010101","task":{"id":"T-1","goal":"Make it so"},
    "snapshot_id":"snap-010101010101","tree":"0101010101010101010101010101010101010101010101010101010101010101",
    "working_dir":"/repo","origin":"/repo","by":"user:ada"}"#;

fn tree(n: u8) -> BlobId {
    BlobId::from_bytes([n; 32])
}

/// A run of which records are taken in, a second each.
struct Run {
    state: PipelineState,
    second: i64,
}

impl Run {
    fn started() -> Run {
        let started: PipelineStarted<'static> = serde_json::from_str(STARTED).expect("a start");
        let id = RunName::mint(1_760_969_298_000, 7).pipeline_id();
        let mut run = Run { state: PipelineState::empty(id), second: 0 };
        for record in compose::start(id, started, intention(tree(1))).expect("a start") {
            run.take(&record.event);
        }
        run
    }

    fn take(&mut self, event: &Event<'_>) {
        let at = Timestamp::from_millis(1_760_969_298_000 + self.second * 1000);
        self.state.apply(at, event).expect("it follows");
        self.second += 1;
    }

    fn begin(&mut self) {
        let (session, run) = ("sess_1".parse().expect("an id"), "run_1".parse::<RunId>().expect("an id"));
        let step = self.state.current_step().expect("a step").clone();
        self.take(&compose::begin(&step, session, run).event);
    }

    fn finish(&mut self, outcome: &'static str, said: &serde_json::Value) {
        let step = self.state.current_step().expect("a step").clone();
        let finished = StepFinished {
            step_id: step.id.clone(),
            key: step.key,
            outcome: Cow::Borrowed(outcome),
            payload: Some(Raw::from_value(said).expect("JSON")),
            payload_blob: None,
            to: step.from,
            files_touched: Some(Box::new(FilesTouched {
                total: 2,
                lines_added: 30,
                lines_removed: 4,
                ..FilesTouched::default()
            })),
            usage: Some(Usage { input_tokens: 100, output_tokens: 20, cost: Some(0.5) }),
            cached: false,
            counts: StepCounts { events: 1, heartbeats: 3, logs: 2 },
        };
        let from = step.from;
        for record in compose::finish(&self.state, finished, |_, _| Ok(intention(from))).expect("it follows")
        {
            self.take(&record.event);
        }
    }
}

fn intention(from: BlobId) -> Intention {
    let agent = AgentIdentity { name: "builder".into(), version: None, command_hash: tree(0) };
    Intention { key: StepKey::from_bytes([7; 32]), from, agent: Some(agent), inputs_hash: tree(0) }
}

#[test]
fn a_run_is_shown_as_its_ledger_says() {
    let mut run = Run::started();
    run.begin();
    run.finish("completed", &json!({"summary": "done"}));
    run.begin();
    run.finish("changes_requested", &json!({"findings": "name it"}));
    let view = PipelineView::of(&run.state).expect("it was started");
    let shown = serde_json::to_value(&view).expect("JSON");
    assert_eq!(shown["run_id"], "run-20251020-140818-00000007");
    assert_eq!(shown["stage_names"], json!(["implement", "review"]));
    assert_eq!((&shown["current_stage"], &shown["round"]), (&json!("implement"), &json!(2)));
    assert_eq!(
        shown["counts"],
        json!({"commands": 2, "terminal_events": 2, "events": 2, "heartbeats": 6, "logs": 4})
    );
    assert_eq!(shown["usage"], json!({"input_tokens": 200, "output_tokens": 40, "cost": 1.0}));
    let review = &view.stages[1];
    assert_eq!((review.findings.as_deref(), view.stages[0].findings.as_deref()), (Some("name it"), None));
    assert_eq!(review.files_touched.map(|files| (files.files, files.lines_added)), Some((2, 30)));
    assert!(review.began_at.zip(review.ended_at).is_some_and(|(began, ended)| began < ended));
    let pending = view.pending.as_ref().expect("a step");
    assert_eq!((pending.step_id.to_string().as_str(), pending.why), ("implement-2", PendingWhy::Intended));
    let read: PipelineView = serde_json::from_value(shown.clone()).expect("what is written is read");
    assert_eq!(serde_json::to_value(read).expect("JSON"), shown);
}

#[test]
fn what_is_pending_follows_from_the_ledger_and_is_nothing_once_it_ended() {
    let mut run = Run::started();
    let why = |run: &Run| PendingStep::of(&run.state).map(|pending| pending.why);
    assert_eq!(why(&run), Some(PendingWhy::Intended));
    run.begin();
    assert_eq!(why(&run), Some(PendingWhy::Working));
    let step_id = run.state.current_step().expect("a step").id.clone();
    run.take(
        &StepInterrupted {
            step_id,
            attempt: 1,
            reason: StepCut::AgentGone,
            detail: None,
            died_at: None,
            tree: None,
        }
        .into(),
    );
    assert_eq!(why(&run), Some(PendingWhy::Cut));
    let view = PipelineView::of(&run.state).expect("it was started");
    assert_eq!(
        (view.stages[0].status, view.stages[0].cut),
        (StepStatus::Interrupted, Some(StepCut::AgentGone))
    );
    run.take(&compose::abort(Some("no more"), "user:ada").event);
    let view = PipelineView::of(&run.state).expect("it was started");
    assert!(view.pending.is_none() && view.reason.as_deref() == Some("no more"));
    assert_eq!(PipelineView::of(&PipelineState::empty(view.id)).map(|view| view.run_id), None);
}

#[test]
fn long_findings_are_shown_by_their_beginning() {
    let mut run = Run::started();
    run.begin();
    run.finish("completed", &json!({"findings": "é".repeat(SHOWN)}));
    let view = PipelineView::of(&run.state).expect("it was started");
    let shown = view.stages[0].findings.clone().expect("findings");
    assert!(shown.ends_with("é…") && shown.len() <= SHOWN + '…'.len_utf8());
}

#[test]
fn whoever_waits_for_a_person_rests_and_a_word_of_a_newer_daemon_does_not() {
    let read = |word: &str| serde_json::from_value::<PendingWhy>(json!(word)).expect("a word");
    assert!(read("drift").rests() && read("no_environment").rests());
    assert!(!read("person").rests() && !read("of_a_newer_daemon").rests());
    for passes in ["directory", "no_directory", "silent", "same_key"] {
        assert!(read(passes).passes() && !read(passes).rests(), "{passes}");
    }
    assert!(!read("drift").passes() && !read("of_a_newer_daemon").passes());
}

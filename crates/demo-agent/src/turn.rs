//! A turn: carries out the steps of a prompt, hears a cancel between and during them, and answers the prompt.
//! What the steps do is in the files below; how they wait and how the turn ends is here.

mod asks;
mod faults;
mod talk;
mod tools;

use faults::ignore_term;
pub(crate) use faults::{reach_barrier, spawn_grandchild};

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::memory::{memory_text, unfinished_steps};
use crate::record::Record;
use crate::script::{Step, steps_of};
use crate::serve::{Handle, INTERNAL_ERROR, Shared, setup_result};
use crate::wire::lock;

/// The code of a request that was cancelled by `$/cancel_request`.
const REQUEST_CANCELLED: i64 = -32800;

/// What a turn is told while it runs.
pub(crate) enum Signal {
    /// `session/cancel`.
    Cancel,
    /// `$/cancel_request` for the prompt.
    RequestCancelled,
    /// The answer to a request of ours: its id as on the wire, and a result or an error's message.
    Answer(String, Result<Value, String>),
    /// A line came in that was no answer to a request of ours.
    Line,
    /// The client is gone.
    Closed,
}

/// A turn to run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) session: String,
    pub(crate) reply: Reply,
    /// The prompt.
    pub(crate) text: String,
    /// The first step to carry out.
    pub(crate) from: usize,
    pub(crate) carried: Carried,
}

/// Who is told that the turn is over.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// The prompt with this id.
    Prompt(Value),
    /// The load with this id.
    Load(Value),
    /// Everybody, by an update.
    Idle,
}

/// What earlier steps of a turn have laid down for its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Carried {
    stop_reason: Option<String>,
    crash_after: bool,
    tokens: Option<(u64, u64)>,
}

/// Why a turn ends before its last step.
enum Stop {
    Cancelled,
    RequestCancelled,
    /// Nobody listens any more.
    Closed,
    /// A permission was not given.
    Rejected,
    /// The prompt is answered with an error.
    Failed(i64, String),
}

impl Stop {
    /// Something went wrong here.
    fn broken(text: impl ToString) -> Stop {
        Stop::Failed(INTERNAL_ERROR, text.to_string())
    }
}

/// Why a wait is over.
enum Wake {
    Time,
    Line,
    Answer(String, Result<Value, String>),
}

/// Runs a turn in a thread of its own.
pub(crate) fn start(shared: &Arc<Shared>, job: Job) {
    let (signals, inbox) = channel();
    let request = match &job.reply {
        Reply::Prompt(id) | Reply::Load(id) => id.clone(),
        Reply::Idle => Value::Null,
    };
    lock(&shared.turns).insert(job.session.clone(), Handle { signals, request });
    let turn = Turn::new(shared, job.clone(), inbox);
    let started = std::thread::Builder::new().name("turn".into()).spawn(move || turn.run());
    if let Err(error) = started {
        let turn = Turn::new(shared, job, channel().1);
        turn.finish(Err(Stop::broken(format!("no thread for the turn: {error}"))));
    }
}

struct Turn {
    shared: Arc<Shared>,
    job: Job,
    inbox: Receiver<Signal>,
    /// Our requests that have no answer yet.
    open: HashSet<String>,
    /// Set by a cancel, which takes effect when no request is open.
    stop: Option<Stop>,
    /// Cancels are not heard.
    deaf: bool,
    /// Some line came in since the prompt or the last `poke`.
    poked: bool,
}

impl Turn {
    fn new(shared: &Arc<Shared>, job: Job, inbox: Receiver<Signal>) -> Turn {
        let open = HashSet::new();
        Turn { shared: Arc::clone(shared), job, inbox, open, stop: None, deaf: false, poked: false }
    }

    fn run(mut self) {
        let outcome = self.run_steps();
        self.finish(outcome);
    }

    fn run_steps(&mut self) -> Result<(), Stop> {
        let steps = self.steps();
        // From the start, so that no cancel slips in before the silence.
        self.deaf = steps.contains(&Step::Hang { deaf: true });
        if matches!(self.job.reply, Reply::Load(_)) {
            self.fail_unfinished_tools();
        }
        if self.job.from == 0 {
            let mut process = lock(&self.shared.process);
            if process.repeat_ids {
                process.next_id = 0;
            }
        }
        for (at, step) in steps.into_iter().enumerate().skip(self.job.from) {
            // Before the step: one that is interrupted counts as begun and is not done again by itself.
            self.record(Record::Step { at });
            self.check_signals()?;
            self.step(step)?;
        }
        self.check_signals()
    }

    fn steps(&self) -> Vec<Step> {
        if let Some(steps) = steps_of(&self.job.text) {
            return steps;
        }
        let carry_on = self.shared.options.carry_on;
        let steps = self.shared.sessions.with(&self.job.session, |session| {
            // What came before this very prompt.
            let is_prompt = |record: &Record| matches!(record, Record::User { .. });
            let own = session.history.iter().rposition(is_prompt).unwrap_or(0);
            let before = &session.history[..own];
            let rest = if carry_on { unfinished_steps(before) } else { Vec::new() };
            std::iter::once(Step::Say(memory_text(before))).chain(rest).collect()
        });
        steps.unwrap_or_default()
    }

    fn step(&mut self, step: Step) -> Result<(), Stop> {
        match step {
            Step::Say(text) => self.say(&text)?,
            Step::Think(text) => self.think(&text)?,
            Step::Plan(entries) => self.plan(&entries)?,
            Step::PlanAt(entries, done) => self.plan_at(&entries, done)?,
            Step::Words { count, every } => self.words(count, every)?,
            Step::Huge(bytes) => self.huge(bytes),
            Step::Usage { input, output, cost } => self.usage(input, output, cost),
            Step::Mode(mode) => self.mode(&mode),
            Step::Title(title) => self.title(title),
            Step::Notice(text) => self.notice(&text),
            Step::Commands => self.commands(),
            Step::UnknownUpdate => self.unknown_updates(),
            Step::ToolBetween => self.tool_between()?,
            Step::Tool { kind, title } => self.tool(&kind, &title)?,
            Step::Write { path, text } => self.write(&path, &text)?,
            Step::Append { path, text } => self.append(&path, &text)?,
            Step::Run(command) => self.shell(&command)?,
            Step::Guarded(command) => self.guarded(&command)?,
            Step::Ask(titles) => self.ask(&titles)?,
            Step::Withdraw { after, text } => self.withdraw(&text, after)?,
            Step::Question(text) => self.question(&text)?,
            Step::RepeatIds => self.repeat_ids(),
            Step::Sleep(duration) => self.pause(duration)?,
            Step::Hang { .. } => self.hang()?,
            Step::Poke => self.poke()?,
            Step::Crash(crash) => self.crash(crash),
            Step::Noise(bytes) => self.shared.wire.raw(&bytes),
            Step::Barrier(name) => self.barrier(&name)?,
            Step::Stderr(bytes) => self.stderr(bytes)?,
            Step::Grandchild { seconds, detach } => self.grandchild(seconds, detach)?,
            Step::IgnoreTerm => ignore_term()?,
            Step::Refuse { code, text } => return Err(Stop::Failed(code, text)),
            Step::StopReason(reason) => self.job.carried.stop_reason = Some(reason),
            Step::Forget => self.shared.sessions.forget(&self.job.session),
            // Things of commands, which are told here as anything else is.
            Step::Event(name) => self.notice(&name),
            Step::Heartbeat(status) => self.notice(&format!("I am {status}")),
            Step::Artifact { path, .. } => self.notice(&format!("made {path}")),
            Step::EofLinger => lock(&self.shared.process).linger = true,
        }
        Ok(())
    }

    /// Keeps what happened, is no longer found by messages, and answers: in this order, because the next prompt
    /// may come as soon as the answer is out.
    fn finish(self, outcome: Result<(), Stop>) {
        let carried = &self.job.carried;
        let reason = match &outcome {
            Ok(()) => carried.stop_reason.as_deref().unwrap_or("end_turn"),
            Err(Stop::Rejected) => "end_turn",
            Err(Stop::Cancelled | Stop::RequestCancelled) => "cancelled",
            Err(Stop::Failed(..)) => "error",
            Err(Stop::Closed) => {
                lock(&self.shared.turns).remove(&self.job.session);
                return;
            }
        };
        self.record(Record::End { stop_reason: reason.to_owned() });
        lock(&self.shared.turns).remove(&self.job.session);
        let wire = &self.shared.wire;
        match (&self.job.reply, &outcome) {
            (Reply::Prompt(id), Err(Stop::Failed(code, text))) => wire.refuse(id, *code, text),
            (Reply::Prompt(id), Err(Stop::RequestCancelled)) => {
                wire.refuse(id, REQUEST_CANCELLED, "request cancelled");
            }
            (Reply::Prompt(id), _) => {
                let mut result = json!({ "stopReason": reason });
                if let Some((input, output)) = carried.tokens {
                    let total = input + output;
                    result["usage"] =
                        json!({"inputTokens": input, "outputTokens": output, "totalTokens": total});
                }
                wire.reply(id, &result);
            }
            (Reply::Load(id), _) => wire.reply(id, &setup_result(&self.shared, &self.job.session)),
            (Reply::Idle, _) => {
                let update = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason});
                self.update(update);
            }
        }
        if carried.crash_after {
            std::process::exit(1);
        }
    }

    /// Waits for something to happen, at most until a moment. A cancel ends the wait and the turn, once every
    /// request of ours has its answer.
    fn wait(&mut self, until: Option<Instant>) -> Result<Wake, Stop> {
        loop {
            let signal = match until {
                None => self.inbox.recv().map_err(|_| Stop::Closed)?,
                Some(until) => {
                    match self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
                        Ok(signal) => signal,
                        Err(RecvTimeoutError::Timeout) => return Ok(Wake::Time),
                        Err(RecvTimeoutError::Disconnected) => return Err(Stop::Closed),
                    }
                }
            };
            match signal {
                Signal::Closed => return Err(Stop::Closed),
                Signal::Cancel if !self.deaf => self.stop = Some(Stop::Cancelled),
                Signal::RequestCancelled if !self.deaf => self.stop = Some(Stop::RequestCancelled),
                Signal::Cancel | Signal::RequestCancelled => {}
                Signal::Line => {
                    self.poked = true;
                    if self.stop.is_none() {
                        return Ok(Wake::Line);
                    }
                }
                Signal::Answer(id, outcome) => {
                    self.open.remove(&id);
                    if self.stop.is_none() {
                        return Ok(Wake::Answer(id, outcome));
                    }
                }
            }
            if self.open.is_empty()
                && let Some(stop) = self.stop.take()
            {
                return Err(stop);
            }
        }
    }

    /// Lets some time pass, unless the turn ends.
    fn pause(&mut self, duration: Duration) -> Result<(), Stop> {
        let until = Instant::now() + duration;
        while !matches!(self.wait(Some(until))?, Wake::Time) {}
        Ok(())
    }

    /// Hears what has come in, without waiting.
    fn check_signals(&mut self) -> Result<(), Stop> {
        self.pause(Duration::ZERO)
    }

    fn pace(&mut self) -> Result<(), Stop> {
        self.pause(self.shared.options.pace)
    }

    fn record(&self, record: Record) {
        self.shared.sessions.record(&self.job.session, record);
    }

    fn update(&self, update: Value) {
        self.shared.wire.update(&self.job.session, update);
    }
}

//! One session with a living agent: reads the journal, appends what follows from it, acknowledges, and sends what
//! is queued. It keeps nothing that a successor could not rebuild from the log and the journal.

mod append;
mod command;
mod launch;
mod say;

pub use launch::{Launching, Places};
pub use say::Queued;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_agent::connection::{Connection, Delta, Phase};
use rekindle_agent::profile::{Answer, AnswerError, Open, Profile};
use rekindle_agent::replay::Spoken;
use rekindle_domain::event::RunAdopted;
use rekindle_domain::id::{BootId, RunId, SessionId, TokenId, WaitId};
use rekindle_domain::line::Line;
use rekindle_holder::client::{ConnectError, Control, FollowError, Follower, RequestError};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::wire::{Phase as HolderPhase, Refusal};
use rekindle_store::commit::Commits;
use rekindle_store::{AppendError, OpenSessionError, Store};
use say::unsent_prompt;

/// How long any step with a holder may take.
const STEP: Duration = Duration::from_secs(2);

/// What was read is acknowledged within this.
const ACKNOWLEDGE: Duration = Duration::from_millis(200);

/// Which life of a supervisor this is, and under which epoch it commands.
#[derive(Debug, Clone, Copy)]
pub struct Supervisor {
    /// The life.
    pub boot_id: BootId,
    /// The epoch.
    pub epoch: u64,
}

/// Why a session cannot be driven on. What happened so far is in its log.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The holder could not be made.
    #[error("cannot make a holder for the agent")]
    Prepare(#[from] rekindle_holder::client::PrepareError),
    /// The holder did not begin.
    #[error("cannot start the agent's holder")]
    Spawn(#[from] rekindle_holder::client::SpawnError),
    /// The holder lets nobody in.
    #[error("cannot speak with the agent's holder")]
    Connect(#[from] ConnectError),
    /// Another supervisor commands the holder, and its own file says so.
    #[error(
        "epoch {by} commands the agent's holder: stop commanding, and write nothing more for its session"
    )]
    Superseded {
        /// Its epoch.
        by: u64,
    },
    /// Whoever listens says that another commands, and nothing else does.
    #[error(
        "whoever listens for the agent's holder says that epoch {claimed} commands, and the holder's file does not: try again, and look who listens there"
    )]
    Unconfirmed {
        /// The epoch that it named.
        claimed: u64,
    },
    /// The holder said no, or nothing.
    #[error("the agent's holder did not do what it was asked")]
    Request(#[from] RequestError),
    /// The journal cannot be read.
    #[error("cannot read what the agent said")]
    Follow(#[from] FollowError),
    /// The session is not there.
    #[error("cannot open the session")]
    Session(#[from] OpenSessionError),
    /// The log took nothing.
    #[error("cannot append to the session's log")]
    Append(#[from] AppendError),
    /// A payload could not be stored or fetched.
    #[error("cannot store or fetch a large payload")]
    Blob(#[from] rekindle_store::blobs::BlobError),
    /// The log cannot be read.
    #[error("cannot read the session's log")]
    Log(#[source] std::io::Error),
    /// The prompt is part of the command, and there is none.
    #[error("the command cannot be launched before there is a prompt for it")]
    NoPrompt,
    /// There is no agent to take over.
    #[error("the session has no agent")]
    NoAgent,
    /// The answer does not fit the question.
    #[error("the answer does not fit")]
    Answer(#[from] AnswerError),
    /// Nobody asked this, or it was answered.
    #[error("the wait {0} is not open")]
    NoSuchWait(WaitId),
    /// There are no random numbers.
    #[error("the system has no random numbers")]
    Random,
}

/// What a turn of the loop brought.
#[derive(Debug, Default)]
pub struct Progress {
    /// Words that are in no record yet.
    pub deltas: Vec<Delta>,
    /// Waits that were opened.
    pub waits: Vec<WaitId>,
    /// The run that ended.
    pub ended: Option<RunId>,
    /// The agent is gone.
    pub exited: bool,
    /// A request of ours was refused: what, and why.
    pub refused: Option<String>,
}

/// A session with a living agent.
pub struct Live {
    store: Arc<Store>,
    session: SessionId,
    dir: HolderDir,
    supervisor: Supervisor,
    connection: Connection,
    /// What the agent should remember.
    spoken: Spoken,
    follower: Follower,
    /// The way to the holder; none to a dead one.
    control: Option<Control>,
    working_dir: String,
    /// The session to come back to, once the agent was greeted.
    cursor: Option<String>,
    /// The newest input queued.
    input_seq: u64,
    /// The prompt to send once the agent takes one.
    prompt: Option<(RunId, String)>,
    /// The holder knows that nothing follows.
    input_closed: bool,
    /// Since when something that was read is not acknowledged.
    unacknowledged: Option<Instant>,
    /// Below this everything is in the log.
    low: u64,
}

impl Live {
    /// Takes over a living agent in whatever it is doing. Nothing is said to it that was said before; a holder
    /// whose supervisor died before it could start the agent is given `env` to start it with.
    pub fn adopt(
        store: Arc<Store>,
        session: SessionId,
        dir: HolderDir,
        profile: Arc<dyn Profile>,
        supervisor: Supervisor,
        env: BTreeMap<String, String>,
    ) -> Result<Live, LiveError> {
        let mut control = command::command(&dir, supervisor)?;
        let head = control.marks().head;
        let agent = match control.marks().phase {
            HolderPhase::AwaitingStart => Some(control.start(env)?),
            _ => control.marks().agent.clone(),
        };
        let mut live = Live::rebuild(store, session, dir, profile, supervisor)?;
        live.control = Some(control);
        let state = live.store.open_session(session)?.state;
        let recorded = state.agent.as_ref().is_some_and(|agent| agent.process.is_some());
        if let Some(agent) = agent.filter(|_| !recorded) {
            live.record_start(&agent)?;
        }
        if let Some(run) = state.run.as_ref().filter(|run| run.end.is_none()) {
            // One that we began ourselves is ours already.
            if run.boot_id != supervisor.boot_id {
                let logged = state.agent.as_ref().map_or(0, |agent| agent.journal.seq);
                let (holder_id, gap) = (Some(live.connection.holder()), head.saturating_sub(logged));
                live.append(vec![
                    RunAdopted { run_id: run.run_id, boot_id: supervisor.boot_id, holder_id, gap }.into(),
                ])?;
            }
            live.prompt = unsent_prompt(&live.store, session, run.run_id)?.map(|text| (run.run_id, text));
        }
        live.send_again()?;
        Ok(live)
    }

    /// Records what a dead holder left. Its agent's tree must be proven gone.
    pub fn harvest(
        store: Arc<Store>,
        session: SessionId,
        dir: HolderDir,
        profile: Arc<dyn Profile>,
        supervisor: Supervisor,
    ) -> Result<Progress, LiveError> {
        Live::rebuild(store, session, dir, profile, supervisor)?.finish(Progress::default())
    }

    /// Builds everything from the log; the journal is read from where the log says.
    fn rebuild(
        store: Arc<Store>,
        session: SessionId,
        dir: HolderDir,
        profile: Arc<dyn Profile>,
        supervisor: Supervisor,
    ) -> Result<Live, LiveError> {
        let state = store.open_session(session)?.state;
        let agent = state.agent.as_ref().ok_or(LiveError::NoAgent)?;
        let mut connection = Connection::new(agent.holder_id, profile, Default::default());
        let mut spoken = Spoken::default();
        note_log(&store, session, &mut connection, &mut spoken)?;
        Ok(Live {
            follower: Follower::new(&dir, connection.start()),
            low: connection.start(),
            store,
            session,
            dir,
            supervisor,
            input_seq: agent.input_seq,
            connection,
            spoken,
            control: None,
            working_dir: state.working_dir.clone(),
            cursor: agent.cursor.clone(),
            prompt: None,
            input_closed: false,
            unacknowledged: None,
        })
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the connection, for whoever asks how things stand.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reads what there is, does what follows from it, and waits for more if there was nothing.
    pub fn pump(&mut self, most: Duration) -> Result<Progress, LiveError> {
        let mut progress = Progress::default();
        let mut read = false;
        while let Some(item) = self.follower.next_item()? {
            read = true;
            let unfinished = Some(self.follower.low()).filter(|low| *low < self.follower.next_seq());
            let taken = self.connection.take(&item, unfinished);
            self.carry_out(taken, &mut progress)?;
        }
        self.advance()?;
        self.close_input()?;
        self.acknowledge(progress.ended.is_some() || progress.exited)?;
        if !read && !progress.exited {
            let wait = self
                .unacknowledged
                .map_or(most, |since| ACKNOWLEDGE.saturating_sub(since.elapsed()).min(most));
            match self.control.as_mut().map(|control| control.next_event(wait)) {
                Some(Ok(_)) => {}
                // The holder has ended: everything it had to say is in its journal.
                Some(Err(RequestError::Closed)) | None => return self.finish(progress),
                Some(Err(error)) => return Err(error.into()),
            }
        }
        Ok(progress)
    }

    /// Asks the agent's holder to end it, and everything of it.
    pub fn stop(&mut self, reason: &str, actor: &str, grace: Duration) -> Result<(), LiveError> {
        self.control.as_mut().map_or(Ok(()), |control| Ok(control.stop(reason, actor, grace)?))
    }

    /// Answers a wait.
    pub fn answer(&mut self, wait: WaitId, answer: Answer<'_>, by: &str) -> Result<(), LiveError> {
        let ask = self.connection.asks().find(|ask| ask.wait_id == Some(wait));
        let ask = ask.cloned().ok_or(LiveError::NoSuchWait(wait))?;
        let outgoing = self.connection.answer(ask.key, answer).ok_or(LiveError::NoSuchWait(wait))??;
        self.say_answer(wait, &ask, outgoing, by)
    }

    /// Does the next step towards a turn: greet, open, prompt.
    fn advance(&mut self) -> Result<(), LiveError> {
        let opening = self.connection.in_flight().iter().any(|(_, request)| request.opens());
        match self.connection.phase() {
            Phase::Silent if self.input_seq == 0 => {
                let greeting = self.connection.profile().greet(1);
                greeting.map_or(Ok(()), |greeting| self.queue_and_send(greeting, Queued::default()))
            }
            Phase::Greeted if !opening => {
                let can = self.connection.capabilities();
                let how = match self.cursor.as_deref() {
                    Some(cursor) if can.load => Open::Load(cursor),
                    Some(cursor) if can.resume => Open::Resume(cursor),
                    _ => Open::New,
                };
                let outgoing = self.connection.profile().open(self.input_seq + 1, how, &self.working_dir);
                outgoing.map_or(Ok(()), |outgoing| self.queue_and_send(outgoing, Queued::default()))
            }
            Phase::Ready => match self.prompt.take() {
                Some((run_id, text)) => {
                    let content = rekindle_domain::event::Raw::text(&text);
                    let (next, cursor) = (self.input_seq + 1, self.connection.cursor());
                    let outgoing = self.connection.profile().prompt(next, cursor, &content);
                    let queued = Queued { run_id: Some(run_id), ..Queued::default() };
                    outgoing.map_or(Ok(()), |outgoing| self.queue_and_send(outgoing, queued))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn acknowledge(&mut self, now: bool) -> Result<(), LiveError> {
        let Some(since) = self.unacknowledged else { return Ok(()) };
        if !now && since.elapsed() < ACKNOWLEDGE {
            return Ok(());
        }
        self.store.committer().sync()?;
        self.unacknowledged = None;
        if self.low > 1 {
            match self.control.as_mut().map(|control| control.ack(self.low - 1)) {
                // It needs no acknowledgement any more.
                Some(Err(RequestError::Closed)) | None => {}
                Some(outcome) => outcome?,
            }
        }
        Ok(())
    }

    /// Sends an input that is in the log.
    fn send(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<(), LiveError> {
        let ends_soon = self.connection.profile().input_ends_with_prompt();
        match self.control.as_mut().map(|control| control.input(number, kind, bytes)) {
            // To an agent that is gone nothing can be sent; the log says that it was to be.
            Some(Err(RequestError::Closed)) | None => Ok(()),
            // A command that did not wait for its prompt: its exit code tells the rest.
            Some(Err(RequestError::Refused(no))) if ends_soon && no.reason == Refusal::NotNow => Ok(()),
            Some(outcome) => Ok(outcome.map(drop)?),
        }
    }

    /// The holder is gone: read what it left, and record the end.
    fn finish(&mut self, mut progress: Progress) -> Result<Progress, LiveError> {
        while let Some(item) = self.follower.next_item()? {
            let taken = self.connection.take(&item, None);
            self.carry_out(taken, &mut progress)?;
        }
        if let Some(item) = self.follower.finish() {
            let taken = self.connection.take(&item, None);
            self.carry_out(taken, &mut progress)?;
        }
        let taken = self.connection.finish();
        self.carry_out(taken, &mut progress)?;
        self.store.committer().sync()?;
        progress.exited = true;
        Ok(progress)
    }
}

/// Takes in the log since the agent was launched.
fn note_log(
    store: &Store,
    session: SessionId,
    connection: &mut Connection,
    spoken: &mut Spoken,
) -> Result<(), LiveError> {
    let reader = store.reader(session).map_err(LiveError::Log)?;
    let mut lines = reader.forward(0);
    while let Some(raw) = lines.next().map_err(LiveError::Log)? {
        if let Ok(line) = Line::parse(raw.bytes) {
            // A record that cannot be read is none of a connection's: the store refused to write such.
            let _ = connection.note_line(&line);
            if let Ok(event) = line.event() {
                spoken.note(&event);
            }
        }
    }
    Ok(())
}

fn random() -> Result<u128, LiveError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| LiveError::Random)?;
    Ok(u128::from_le_bytes(bytes))
}

fn millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(0)
}

fn new_wait() -> Result<(WaitId, TokenId), LiveError> {
    Ok((WaitId::mint(millis(), random()?), TokenId::mint(millis(), random()?)))
}

//! A session with a living agent: reads the journal, appends what follows from it, acknowledges, and sends what
//! is queued. It keeps nothing that a successor could not rebuild from the log and the journal.

mod agent_memory;
mod append;
mod error;
mod inputs;
mod launch;
mod load;
mod prompt;
mod turn;

pub use crate::drive::holders::{HolderPaths, Holders, Processes};
pub use append::keep_large;
pub use error::LiveError;
use error::Result;
pub use launch::Launching;
pub use prompt::UnsentPrompt;
pub use turn::Progress;

use agent_memory::{History, Own, OwnSession};
pub(crate) use launch::command;
pub(crate) use prompt::fetch_payload;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_agent::connection::{Connection, Delta, Phase, Wanted};
use rekindle_agent::profile::Profile;
use rekindle_domain::compose::begin::Life;
use rekindle_domain::compose::launch::adopt;
use rekindle_domain::event::{Event, InputKind, InputQueued, ResumeHow};
use rekindle_domain::id::{BootId, RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::{Run, SessionState};
use rekindle_holder::client::{FollowError, RequestError};
use rekindle_holder::dir::HolderDir;
use rekindle_holder::identity::machine_boot;
use rekindle_holder::wire::{Phase as HolderPhase, Refusal};
use rekindle_store::disk::check_descriptors;
use rekindle_store::log::Cursor;

use crate::boottime::BootClock;
use crate::drive::holders::{Control, Journal};
use crate::drive::provider::expected_quirks;
use crate::log_search::{find_launch, for_each_line_from};
use crate::storage::Sessions;
use crate::test_knobs::crash_point;

/// Who hears words that are in no record yet.
pub type Listener = Arc<dyn Fn(&Delta) + Send + Sync>;

/// Why a run of a copied home was cut.
const COPIED: &str = "this home is a copy, and the original may have continued with it";

/// What a notice is called that says that a session was not brought back in time.
const LOAD_TIMED_OUT: &str = "load_timed_out";

/// How long any step with a holder may take.
const STEP: Duration = Duration::from_secs(2);

/// Which life of a supervisor this is, under which epoch it commands, and by which clock deadlines go.
#[derive(Debug, Clone, Copy)]
pub struct Supervisor {
    /// The life.
    pub boot_id: BootId,
    /// The epoch.
    pub epoch: u64,
    /// The clock.
    pub steady: BootClock,
    /// How long a question waits for its answer in a session that does not say; for ever without it.
    pub wait_timeout: Option<Duration>,
}

impl Supervisor {
    /// Returns what a run that begins now says of the daemon and its machine.
    pub fn life(self) -> Life {
        Life { boot_id: self.boot_id, machine_boot: machine_boot().ok() }
    }
}

/// The context of an agent: whose it is, how it is spoken with, and by whom.
#[derive(Clone)]
pub struct AgentContext {
    /// Where its session is recorded.
    pub store: Arc<dyn Sessions>,
    /// Its session.
    pub session: SessionId,
    /// The way to its holder.
    pub holders: Arc<dyn Holders>,
    /// Its protocol.
    pub profile: Arc<dyn Profile>,
    /// Who commands it.
    pub supervisor: Supervisor,
}

/// A living agent of a session, with the connection to it.
pub struct LiveAgent {
    store: Arc<dyn Sessions>,
    session: SessionId,
    holders: Arc<dyn Holders>,
    dir: HolderDir,
    supervisor: Supervisor,
    connection: Connection,
    /// Everything that happened in the session, once it is needed: by an agent that was not there.
    history: Option<History>,
    /// Where the log begins to tell of the agent.
    launched: Cursor,
    /// It was looked what an agent before this one offered.
    looked_for_offer: bool,
    follower: Box<dyn Journal>,
    /// The way to the holder; none to a dead one.
    control: Option<Box<dyn Control>>,
    working_dir: String,
    /// The session to come back to, once the agent was greeted.
    cursor: Option<String>,
    /// The session of another agent to go on from, likewise: that of the session which this one was forked from.
    fork_of: Option<String>,
    /// Since when nothing has come from an agent that brings its session back; see `load.rs`.
    loading: Option<Instant>,
    /// Since when an agent may replay behind its answer to a load, and when it was last heard.
    replaying: Option<(Instant, Instant)>,
    /// The newest input queued.
    input_seq: u64,
    /// What is to be said once the agent takes a prompt.
    prompt: Option<UnsentPrompt>,
    /// What this agent knows of the session.
    own: Own,
    /// The mode and the model that the session asks for.
    wanted: Wanted,
    /// Who hears words that are in no record yet.
    listener: Option<Listener>,
    /// Where the journal of a dead holder cannot be read on.
    damage: Option<String>,
    /// What keeps the holder from reading the agent.
    trouble: Option<String>,
    /// Why something that is in the log could not be sent.
    unsendable: Option<LiveError>,
    /// The agent was asked for a session and makes none: it is not asked again.
    refused: bool,
    /// The holder knows that nothing follows.
    input_closed: bool,
    /// Since when something that was read is not acknowledged.
    unacknowledged: Option<Instant>,
    /// Below this everything is in the log.
    low: u64,
}

impl LiveAgent {
    /// Takes over a living agent in whatever it is doing. Nothing is said to it that was said before; a holder
    /// whose supervisor died before it could start the agent is given what `env` returns to start it with.
    pub fn adopt(
        context: AgentContext,
        dir: HolderDir,
        env: impl FnOnce() -> Result<BTreeMap<String, String>>,
    ) -> Result<LiveAgent> {
        check_descriptors().map_err(LiveError::Descriptors)?;
        let mut control = command(&*context.holders, &dir, context.supervisor)?;
        crash_point("adopt.after_connect");
        let head = control.marks().head;
        let agent = match control.marks().phase {
            HolderPhase::AwaitingStart => {
                let agent = control.start(env()?)?;
                crash_point("adopt.after_start");
                Some(agent)
            }
            _ => control.marks().agent.clone(),
        };
        let mut live = LiveAgent::rebuild(context, dir)?;
        live.trouble = control.marks().trouble.clone();
        // A log that was put back from a copy knows less than the holder has accepted: no number is used twice.
        live.input_seq = live.input_seq.max(control.marks().accepted);
        live.control = Some(control);
        let state = live.store.open_session(live.session)?.state;
        let recorded = state.agent.as_ref().is_some_and(|agent| agent.process.is_some());
        if let Some(agent) = agent.filter(|_| !recorded) {
            crash_point("adopt.before_started");
            live.record_start(&agent)?;
            crash_point("adopt.after_started");
        }
        let adopted = adopt(&state, live.connection.holder(), head, live.supervisor.boot_id);
        if !adopted.is_empty() {
            live.append(adopted)?;
        }
        let open = state.open_run();
        let unprompted = |run: &&Run| live.own.prompted != Some(run.run_id) && run.cancel.is_none();
        if let Some(run) = open.filter(unprompted) {
            live.prompt = UnsentPrompt::find(&*live.store, live.session, run, live.connection.profile())?;
        }
        crash_point("adopt.before_sending");
        live.resend_inputs()?;
        if let Some(run) = open.filter(|run| run.cancel.is_some()).map(|run| run.run_id)
            && live.own.prompted == Some(run)
            && live.own.cancelled != Some(run)
        {
            live.send_cancel(run)?;
        }
        crash_point("adopt.after_sending");
        Ok(live)
    }

    /// Records what a dead holder left. Its agent's tree must be proven gone.
    pub fn harvest(context: AgentContext, dir: HolderDir) -> Result<Progress> {
        let copied = context.holders.is_copied(&dir);
        let mut live = LiveAgent::rebuild(context, dir)?;
        // Whatever the original made of it since is in another home: nothing goes on here before a person has looked.
        live.damage = copied.then(|| COPIED.to_owned());
        live.finish(Progress::default())
    }

    /// Builds everything from the log, read from the agent's launch on, or from the beginning for one that has no session yet; the
    /// journal is read from where the log says.
    fn rebuild(context: AgentContext, dir: HolderDir) -> Result<LiveAgent> {
        let AgentContext { store, session, holders, profile, supervisor } = context;
        let state = store.open_session(session)?.state;
        let agent = state.agent.as_ref().ok_or(LiveError::NoAgent)?;
        let mut connection = Connection::new(agent.holder_id, profile, expected_quirks(&state.provider));
        let mut own = Own::default();
        let reader = store.reader(session)?;
        let launched = find_launch(&reader, agent)?;
        for_each_line_from(&reader, launched, |line| {
            let event = line.event();
            if let Ok(Event::RunResumed(resumed)) = &event {
                let ask = connection.asks().find(|ask| ask.wait_id == Some(resumed.wait_id));
                own.unanswered.extend(ask.filter(|_| resumed.how == ResumeHow::Cancelled).cloned());
            }
            match whole_prompt(&*store, &event) {
                Some(event) => connection.note(&event, line.source),
                // A record that cannot be read is none of a connection's: the store refused to write such.
                None => drop(connection.note_line(line)),
            }
            if let Ok(event) = event {
                own.note(&event, agent.holder_id);
            }
        })?;
        // One that has a session was told what happened before, or is told when it is prompted.
        let is_stranger = matches!(connection.phase(), Phase::Silent | Phase::Greeted | Phase::Opening)
            && !connection.profile().ready_at_start();
        let history = is_stranger.then(|| History::read(&*store, session)).transpose()?;
        let own_session = history.as_ref().map(|history| &history.own_session);
        let worth_loading = own_session.is_some_and(OwnSession::is_worth_loading);
        let cursor = agent.cursor.clone().filter(|_| worth_loading);
        let origin = history.as_ref().filter(|history| cursor.is_none() && !history.own_session.abandoned);
        let origin = origin.and_then(|history| history.origin.as_ref());
        let fork_of = origin.and_then(|origin| origin.session_to_fork(&*store, &state));
        Ok(LiveAgent {
            follower: holders.follow(&dir, connection.start()),
            low: connection.start(),
            store,
            session,
            holders,
            dir,
            supervisor,
            input_seq: agent.input_seq,
            connection,
            history,
            launched,
            looked_for_offer: false,
            control: None,
            working_dir: state.working_dir.clone(),
            cursor,
            fork_of,
            loading: None,
            replaying: None,
            prompt: None,
            own,
            wanted: wanted(&state),
            listener: None,
            damage: None,
            trouble: None,
            unsendable: None,
            refused: false,
            input_closed: false,
            unacknowledged: None,
        })
    }

    /// Returns the connection, for whoever asks how things stand.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Has someone hear words that are in no record yet, before the record that has them.
    pub fn listen(&mut self, listener: Listener) {
        self.listener = Some(listener);
    }

    /// Has a prompt sent that is in the log already; what was appended with it is taken in.
    pub fn say(&mut self, unsent: UnsentPrompt, appended: &[Draft]) {
        // It may have come while the log was read.
        if !self.own.runs.contains(&unsent.run_id) {
            appended.iter().for_each(|draft| self.note_record(draft));
        }
        if let Some(history) = self.history.as_mut().filter(|history| !history.story.knows(unsent.run_id)) {
            appended.iter().for_each(|draft| history.note(&draft.event));
        }
        self.prompt = Some(unsent);
    }

    /// Takes in what somebody else has appended.
    pub(crate) fn note_appended(&mut self, appended: &[Draft]) {
        if let Some(history) = &mut self.history {
            appended.iter().for_each(|draft| history.note(&draft.event));
        }
    }

    /// Lets go of a prompt that was not said: whoever has it said later finds it in the log.
    pub(crate) fn forget_prompt(&mut self) {
        self.prompt = None;
    }

    /// Returns everything that happened in the session, read now unless it was before.
    fn history(&mut self) -> Result<&History> {
        let history = match self.history.take() {
            Some(history) => history,
            None => History::read(&*self.store, self.session)?,
        };
        Ok(self.history.insert(history))
    }

    /// Has the agent work in another mode or with another model: at once if it can be asked, and in any case before the
    /// next prompt.
    pub(crate) fn set_wanted(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Tells whether the prompt of a run is still to be said.
    pub(crate) fn has_prompt_of(&self, run: RunId) -> bool {
        self.prompt.as_ref().is_some_and(|unsent| unsent.run_id == run)
    }

    /// Returns what to poll for news; none of a holder that is gone.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.control.as_ref().and_then(|control| control.poll_fd())
    }

    /// Asks the agent's holder to end it, and everything of it.
    pub fn stop(&mut self, reason: &str, actor: &str, grace: Duration) -> Result<()> {
        crash_point("live.stop.before");
        self.control.as_mut().map_or(Ok(()), |control| control.stop(reason, actor, grace))?;
        crash_point("live.stop.after");
        Ok(())
    }

    /// Sends an input that is in the log.
    fn send(&mut self, number: u64, kind: &str, bytes: &[u8]) -> Result<()> {
        let ends_soon = self.connection.profile().input_ends_with_prompt();
        crash_point("live.send.before");
        let sent = match self.control.as_mut().map(|control| control.input(number, kind, bytes)) {
            // To an agent that is gone nothing can be sent; the log says that it was to be.
            Some(Err(RequestError::Closed)) | None => Ok(()),
            // A command that did not wait for its prompt: its exit code tells the rest. Any other agent that takes no input
            // is of no use any more; whatever it was not given is given to the next one.
            Some(Err(RequestError::Refused(no))) if no.reason == Refusal::NotNow => {
                if ends_soon {
                    Ok(())
                } else {
                    self.stop("the agent accepts no more input", "daemon", STEP)
                }
            }
            Some(outcome) => Ok(outcome?),
        };
        crash_point("live.send.after");
        sent
    }

    /// The holder is gone: read what it left, and record the end.
    fn finish(&mut self, mut progress: Progress) -> Result<Progress> {
        loop {
            match self.follower.next_item() {
                Ok(Some(item)) => {
                    let taken = self.connection.take(&item, None);
                    self.carry_out(taken, &mut progress)?;
                }
                Ok(None) => break,
                // What comes before is right; of what comes behind nothing is known.
                Err(FollowError::Damaged(damage)) => {
                    self.damage = Some(damage.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(item) = self.follower.finish() {
            let taken = self.connection.take(&item, None);
            self.carry_out(taken, &mut progress)?;
        }
        // Whoever began or took over its run noticed the end of its holder when that happened.
        let state = self.store.open_session(self.session)?.state;
        let attended = state.open_run().is_some_and(|run| run.boot_id == self.supervisor.boot_id);
        let taken = self.connection.finish(!attended);
        self.carry_out(taken, &mut progress)?;
        self.store.sync()?;
        progress.exited = true;
        Ok(progress)
    }
}

/// Returns the record of a prompt that is kept apart from the log, with all of it: what an agent answers may name what stands there.
fn whole_prompt(
    store: &dyn Sessions,
    event: &std::result::Result<Event<'_>, serde_json::Error>,
) -> Option<Event<'static>> {
    let Ok(Event::InputQueued(queued)) = event else { return None };
    if queued.what != InputKind::Prompt || queued.line.as_json().starts_with('"') {
        return None;
    }
    let line = fetch_payload(store, &queued.line).ok()?;
    let InputQueued { run_id, holder_id, input_seq, what, wait_id, .. } = *queued;
    let sha256 = queued.sha256.as_ref().to_owned().into();
    Some(InputQueued { run_id, holder_id, input_seq, what, wait_id, line, sha256 }.into())
}

/// Returns what a session wants of its agent.
pub(crate) fn wanted(state: &SessionState) -> Wanted {
    Wanted { mode: state.options.mode.clone(), model: state.provider.model.clone() }
}

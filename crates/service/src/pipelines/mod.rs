//! Pipeline runs of a home, carried out: a worker for each asks the domain what is next, does that, and asks again. What is true of a
//! run is in its ledger and in the logs of the sessions of its steps; a run that was cut goes on from there, whoever died.

mod agent_events;
mod artifacts;
mod as_task;
mod claims;
mod compress;
mod create;
mod follow;
mod intention;
mod places;
mod project_file;
mod recovery;
mod resume;
mod run_json;
mod said;
mod shared_steps;
mod show;
mod start;
mod trees;
mod worker;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rekindle_domain::id::{PipelineId, SessionId, StreamId};
use rekindle_domain::pipeline::PipelineState;
use rekindle_domain::pipeline::config_change::Refusal;
use rekindle_domain::pipeline::evidence::AgentFound;
use rekindle_store::Store;
use rekindle_store::commit::Committed;
use rekindle_store::disk::{SharedDisk, check_descriptors};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use tokio::sync::watch;

pub(crate) use self::as_task::PipelineCounts;
use self::claims::Claims;
pub(crate) use self::create::NewRun;
pub use self::follow::{FollowPipeline, PipelineFollowing, PipelineTold};
use self::intention::Sources;
use self::places::Places;
pub(crate) use self::places::StepsOfRuns;
use self::shared_steps::SharedSteps;
pub(crate) use self::trees::{Trees, WorkspaceTrees};
pub(crate) use self::worker::{Command, ResumeRun, Seat, Standing, Worker};
use crate::drive::environment::Env;
use crate::error::{Result, ServiceError};
use crate::lock::{NamedLocks, locked};
use crate::show::Views;
use crate::worker_pool::{Pool, Semaphore};

/// How long workers get to leave.
const LEFT_WITHIN: Duration = Duration::from_secs(5);

/// The pipeline runs of a home.
pub(crate) struct Pipelines {
    store: Arc<Store>,
    disk: SharedDisk,
    views: Arc<Views>,
    trees: Arc<dyn Trees>,
    pool: Pool<PipelineId, Seat>,
    /// However many runs there are, few look at their directories at once.
    gate: Semaphore,
    /// Whose step a session is: what happens there is news for its run.
    sessions: Mutex<HashMap<SessionId, PipelineId>>,
    /// Where runs stand that have not ended, also those whose workers have left.
    standings: Mutex<HashMap<PipelineId, Standing>>,
    /// Runs for which no worker could be had.
    missed: Mutex<BTreeSet<PipelineId>>,
    /// Runs that an earlier daemon left with nobody at work, as long as nobody said that they are to go on.
    left: Mutex<BTreeSet<PipelineId>>,
    /// What callers brought for the agents of runs: in memory only.
    brought: Mutex<HashMap<PipelineId, Env>>,
    claims: Claims,
    places: Places,
    shared: SharedSteps,
    /// Held by whoever starts runs with an idempotency key, in the name of that.
    keyed: NamedLocks,
    /// Held by whoever compresses the ledger of a run, or reopens the run, in the name of that.
    compressing: NamedLocks,
    /// Changes whenever a ledger grows or a run stands elsewhere.
    news: watch::Sender<u64>,
    /// What keys made, once somebody needed to know.
    keys: Mutex<Option<HashMap<String, PipelineId>>>,
    #[cfg(test)]
    pub(crate) by_hand: crate::worker_pool::ByHand<Seat, Worker>,
}

impl Pipelines {
    /// Opens the runs of a home. Nothing goes on yet.
    pub(crate) fn new(
        store: Arc<Store>,
        disk: SharedDisk,
        views: Arc<Views>,
        trees: Arc<dyn Trees>,
    ) -> Pipelines {
        let shared = SharedSteps::new(disk.clone(), store.layout().clone());
        Pipelines {
            store,
            disk,
            views,
            trees,
            pool: Pool::default(),
            gate: Semaphore::default(),
            sessions: Mutex::default(),
            standings: Mutex::default(),
            missed: Mutex::default(),
            left: Mutex::default(),
            brought: Mutex::default(),
            claims: Claims::default(),
            places: Places::default(),
            shared,
            keyed: NamedLocks::default(),
            compressing: NamedLocks::default(),
            news: watch::Sender::new(0),
            keys: Mutex::default(),
            #[cfg(test)]
            by_hand: Mutex::default(),
        }
    }

    /// A stream has grown, or a session is not what it was: the run whose step it is looks at that. Called where nothing may block.
    pub(crate) fn grown(&self, stream: StreamId) {
        self.publish(stream);
        let run = stream.session().and_then(|session| locked(&self.sessions).get(&session).copied());
        if let Some(seat) = run.and_then(|run| self.pool.get(run)) {
            seat.tell(Command::Look);
        }
    }

    /// Leaves: agents work on, and the next daemon goes on with the runs.
    pub(crate) fn leave(&self) {
        self.pool.seats().iter().for_each(|seat| seat.tell(Command::Leave));
        let left = self.pool.await_empty(LEFT_WITHIN);
        if left > 0 {
            tracing::warn!(left, "some pipeline runs are still busy");
        }
    }

    /// Gives a run's worker something to do, hiring one if there is none.
    pub(crate) fn send(self: &Arc<Pipelines>, run: PipelineId, command: Command) -> Result<()> {
        #[cfg(test)]
        if let Some(hired) = locked(&self.by_hand).as_mut() {
            let seat = self.pool.get(run).unwrap_or_else(|| {
                let seat = Seat::new().expect("a bell");
                self.pool.add(run, seat.clone());
                hired.push((seat.clone(), Worker::new(self, run, &seat)));
                seat
            });
            seat.tell(command);
            return Ok(());
        }
        let name = run.to_string();
        let name = format!("p-{}", &name[name.len().saturating_sub(12)..]);
        let hired = self.pool.send(run, command, &name, || {
            check_descriptors()?;
            let seat = Seat::new()?;
            Ok((seat.clone(), Worker::new(self, run, &seat)))
        });
        match &hired {
            Ok(()) => drop(locked(&self.missed).remove(&run)),
            Err(_) => drop(locked(&self.missed).insert(run)),
        }
        hired.map_err(ServiceError::internal)
    }

    /// Returns where a run stood when its worker last looked.
    pub(crate) fn standing(&self, run: PipelineId) -> Standing {
        locked(&self.standings).get(&run).cloned().unwrap_or_default()
    }

    /// Notes where a run stands; of one that has ended its ledger says it all.
    fn stand(&self, run: PipelineId, standing: Option<Standing>) {
        let before = match standing.clone() {
            Some(standing) => locked(&self.standings).insert(run, standing),
            None => locked(&self.standings).remove(&run),
        };
        if before != standing {
            self.publish(run.into());
        }
    }

    /// Returns a run as of everything answered before.
    fn open(&self, run: PipelineId) -> Result<Committed<PipelineState>> {
        let opened = self.store.open_pipeline(run)?.ok_or_else(|| refusal(&Refusal::RunUnknown))?;
        match opened.fold.started {
            // Its name was taken and nothing more, or what there was is gone.
            None => Err(refusal(&Refusal::LedgerMissing)),
            Some(_) => Ok(opened),
        }
    }

    fn sources<'a>(&'a self, blobs: &'a rekindle_store::blobs::Blobs) -> Sources<'a> {
        Sources { trees: &*self.trees, blobs }
    }

    /// Has the runs looked at again that wait for a directory, or for the result of a step.
    fn release(&self, run: PipelineId) {
        let had_directory = self.claims.release(run);
        if had_directory {
            self.tell_scheduler();
        }
        if self.shared.release(run) || had_directory {
            self.look_again();
        }
    }

    /// Has every run looked at again.
    fn look_again(&self) {
        self.pool.seats().iter().for_each(|seat| seat.tell(Command::Look));
    }

    /// Tells whether an earlier daemon left a run with nobody at work: one whose agent is met alive goes on as if nothing had happened.
    fn is_left(&self, run: PipelineId, agent: AgentFound) -> bool {
        let mut left = locked(&self.left);
        if matches!(agent, AgentFound::Lives | AgentFound::Followed) {
            left.remove(&run);
        }
        left.contains(&run)
    }

    /// Returns what was brought for a run.
    fn brought(&self, run: PipelineId) -> Env {
        locked(&self.brought).get(&run).cloned().unwrap_or_default()
    }
}

/// Says why a run does not go on, by the word for it. What to do about it is the hint's to say.
fn refusal(why: &Refusal) -> ServiceError {
    let (code, hint) = match why {
        Refusal::RunUnknown => (Code::RunUnknown, Hint::ListPipelines),
        Refusal::LedgerMissing => (Code::LedgerMissing, Hint::StartRun),
        Refusal::RunLocked { .. } => (Code::RunLocked, Hint::FollowRun),
        Refusal::RunAborted => (Code::RunAborted, Hint::ForceResume),
        Refusal::RunFailed => (Code::RunFailed, Hint::ForceResume),
        Refusal::TaskMissing { .. } => (Code::TaskMissing, Hint::RestoreConfig),
        Refusal::AgentChanged { .. } => (Code::AgentChanged, Hint::RestoreConfig),
        Refusal::ManifestMissing { .. } => (Code::ManifestMissing, Hint::DecideDrift),
        Refusal::ConfigChanged(_) => (Code::ConfigChanged, Hint::AcceptConfig),
    };
    ServiceError::new(code, why.to_string()).hint(hint)
}

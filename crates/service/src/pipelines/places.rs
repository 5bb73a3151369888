//! Places for the steps of runs among the tasks: a step that is about to begin asks for one, and the scheduler, which decides about tasks
//! and steps together, says when there is one. What was asked is in memory only: after a start every step asks again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rekindle_domain::id::{PipelineId, RunName, TaskId};
use rekindle_domain::pipeline::Started;
use rekindle_domain::pipeline::next_step::Waits;
use rekindle_domain::time::Timestamp;

use super::{Command, Pipelines, Standing};
use crate::lock::locked;
use crate::tasks::{PlaceAnswer, PlacesSeen, StepPlaces, WantedPlace};

/// What a step waits for before anybody has decided about it.
const ASKED: &str = "a place among those that run";

/// The places that steps ask for.
#[derive(Default)]
pub(super) struct Places {
    wanted: Mutex<BTreeMap<PipelineId, Wanted>>,
    /// Who is told that there is something to decide; nobody limits anything without one.
    scheduler: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A place that a step asks for, or has until its attempt has begun.
struct Wanted {
    agent: String,
    directory: String,
    /// When its run was started, and when it asked.
    started_at: Timestamp,
    asked_at: Timestamp,
    granted: bool,
    /// What it waits for, and why in words.
    why: Option<(Waits, String)>,
}

impl Pipelines {
    /// Has a scheduler decide when steps begin, which is called when there is something to decide.
    pub(crate) fn ask_scheduler(&self, scheduler: Box<dyn Fn() + Send + Sync>) {
        let _ = self.places.scheduler.set(scheduler);
    }

    /// Tells whether the step of a run may begin.
    pub(super) fn has_place(&self, run: PipelineId) -> bool {
        let places = &self.places;
        places.scheduler.get().is_none()
            || locked(&places.wanted).get(&run).is_some_and(|wanted| wanted.granted)
    }

    /// Asks for a place for the step of a run, which waits until there is one.
    pub(super) fn want_place(&self, run: PipelineId, agent: String, started: &Started) {
        let asked_at = self.views.workers.records.now();
        let (waits, why) = {
            let mut wanted = locked(&self.places.wanted);
            let known = wanted.entry(run).or_insert_with(|| Wanted {
                agent: String::new(),
                directory: started.working_dir.clone(),
                started_at: started.at,
                asked_at,
                granted: false,
                why: None,
            });
            known.agent = agent;
            known.why.clone().unwrap_or_else(|| (Waits::Place, ASKED.to_owned()))
        };
        // Before anybody decides: what is decided is shown where that stands.
        self.stand(run, Some(Standing { waits: Some(waits), held: Some(why), ..Standing::default() }));
        self.tell_scheduler();
    }

    /// Gives back the place of a step, or no longer asks for one: its attempt has begun, or does not now.
    pub(super) fn leave_place(&self, run: PipelineId) {
        if locked(&self.places.wanted).remove(&run).is_some() {
            self.tell_scheduler();
        }
    }

    /// There may be something to decide.
    pub(super) fn tell_scheduler(&self) {
        if let Some(scheduler) = self.places.scheduler.get() {
            scheduler();
        }
    }
}

/// The places of a home's runs, for its scheduler.
pub(crate) struct StepsOfRuns(pub(crate) Weak<Pipelines>);

impl StepPlaces for StepsOfRuns {
    fn see(&self) -> PlacesSeen {
        let Some(pipelines) = self.0.upgrade() else { return PlacesSeen::default() };
        let held: Vec<(PipelineId, PathBuf)> = pipelines.claims.all();
        let has = |run: PipelineId| held.iter().any(|(holder, _)| *holder == run);
        let wanted = locked(&pipelines.places.wanted);
        let wanted = wanted.iter().filter_map(|(run, wanted)| {
            Some(WantedPlace {
                task: task_of(*run)?,
                agent: wanted.agent.clone(),
                directory: wanted.directory.clone(),
                started_at: wanted.started_at,
                asked_at: wanted.asked_at,
                has_directory: has(*run),
                granted: wanted.granted,
            })
        });
        let wanted = wanted.collect();
        let held = held.into_iter().filter_map(|(run, directory)| Some((task_of(run)?, directory))).collect();
        PlacesSeen { wanted, held }
    }

    fn is_asked(&self) -> bool {
        self.0
            .upgrade()
            .is_some_and(|pipelines| locked(&pipelines.places.wanted).values().any(|wanted| !wanted.granted))
    }

    fn tell(&self, task: TaskId, answer: PlaceAnswer) {
        let (Some(pipelines), Some(ulid)) = (self.0.upgrade(), task.to_ulid()) else { return };
        let run = PipelineId::from_ulid(ulid);
        tell(&pipelines, run, answer);
    }
}

fn tell(pipelines: &Arc<Pipelines>, run: PipelineId, answer: PlaceAnswer) {
    let why = {
        let mut all = locked(&pipelines.places.wanted);
        let Some(wanted) = all.get_mut(&run) else { return };
        match answer {
            PlaceAnswer::Granted => {
                wanted.granted = true;
                None
            }
            PlaceAnswer::Waits { why, is_directory } => {
                let waits = if is_directory { Waits::Directory } else { Waits::Place };
                // People know another run by its name.
                let holder = pipelines.claims.holder(run, Path::new(&wanted.directory));
                let holder = holder.and_then(RunName::of).filter(|_| is_directory);
                let why = holder.map_or(why, |name| format!("run {name} is working in its directory"));
                let why = Some((waits, why));
                if wanted.why == why {
                    return;
                }
                wanted.why.clone_from(&why);
                why
            }
        }
    };
    match why {
        None => drop(pipelines.send(run, Command::Look)),
        // Whoever looks sees why at once; its worker need not do anything.
        Some((waits, why))
            if matches!(pipelines.standing(run).waits, Some(Waits::Place | Waits::Directory)) =>
        {
            pipelines
                .stand(run, Some(Standing { waits: Some(waits), held: Some(why), ..Standing::default() }));
        }
        Some(_) => {}
    }
}

fn task_of(run: PipelineId) -> Option<TaskId> {
    run.to_ulid().map(TaskId::from_ulid)
}

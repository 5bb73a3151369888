//! Following runs to their ends: lines as steps are finished, or the ledgers' records as they stand.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::{Client, Exit, Failure};
use rekindle_display::hints::ours;
use rekindle_display::pipeline::{Progress, Screen, Waiting, rest_lines, sum_text};
use rekindle_domain::line::Line;
use rekindle_domain::pipeline::RunStatus;
use rekindle_terminal::output::{self, DIM, styled};
use rekindle_terminal::{on_exit_signal, sanitise};
use rekindle_wire::view::{PendingWhy, PipelineView};

use super::run_arg::path;
use crate::confirm::can_ask;
use crate::context::Context;

/// How often a run is looked at of which nothing is heard: what it waits for is in no record.
const LOOK: Duration = Duration::from_secs(2);

/// A run to be followed.
pub(super) struct Followee {
    /// Its name.
    pub(super) run_id: String,
    /// Its task.
    pub(super) task_id: String,
    /// Its records up to this one are known and not shown.
    pub(super) shown_to: u64,
    /// Its newest record when it was looked at: an end before that was not its last.
    pub(super) newest: u64,
}

impl Followee {
    /// Has a run followed, shown from behind a record.
    pub(super) fn new(run: PipelineView, shown_to: u64) -> Followee {
        Followee { run_id: run.run_id, task_id: run.task_id, shown_to, newest: run.last_seq }
    }
}

/// What is heard.
enum Input {
    /// Of the run with this number.
    Run(usize, Heard),
    Signal,
}

/// A run that is followed.
struct Watched {
    followee: Followee,
    /// What stands before its lines, if several runs are followed.
    prefix: String,
    progress: Progress,
    exit: Option<Exit>,
    /// Why it was last said to wait for somebody.
    told: Option<PendingWhy>,
    /// What was said of what else it waits for.
    waiting: Waiting,
    /// When it was last looked at.
    looked: Instant,
}

/// Follows runs until each has ended, rests or waits for somebody who is not there; returns what that is for whoever called the command.
pub(super) fn follow(context: &Context, client: &Client, runs: Vec<Followee>) -> Result<Exit, Failure> {
    let (tell, inputs) = mpsc::channel();
    let leave = tell.clone();
    on_exit_signal(move || leave.send(Input::Signal).is_ok())
        .map_err(|error| Failure::failed("signals", error))?;
    let several = runs.len() > 1;
    for (number, run) in runs.iter().enumerate() {
        let tell = tell.clone();
        // From the beginning: what its lines look like hangs on its start.
        let of = Followed::Pipeline(run.run_id.clone());
        let follow = Follow { target: client.target().clone(), of, after: 0, attended: false };
        follow.begin(move |heard| tell.send(Input::Run(number, heard)).is_ok());
    }
    let watched = runs.into_iter().map(|followee| {
        let prefix = if several { format!("{}  ", followee.task_id) } else { String::new() };
        let (progress, waiting) = (Progress::new(prefix.clone()), Waiting::default());
        Watched { followee, prefix, progress, exit: None, told: None, waiting, looked: Instant::now() }
    });
    let mut screen = Screen::new(context.json, several);
    let mut watched: Vec<Watched> = watched.collect();
    while watched.iter().any(|run| run.exit.is_none()) {
        let going = watched.iter().filter(|run| run.exit.is_none());
        screen.draw(going.filter_map(|run| run.progress.current()));
        match inputs.recv_timeout(LOOK) {
            Ok(Input::Signal) => {
                screen.clear();
                say_how_to_come_back(&watched);
                return Ok(Exit::Detached);
            }
            Ok(Input::Run(number, heard)) => {
                if let Some(run) = watched.get_mut(number) {
                    run.hear(&mut screen, heard)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for run in watched.iter_mut().filter(|run| run.exit.is_none() && run.looked.elapsed() >= LOOK) {
            run.looked = Instant::now();
            // A daemon that is away is waited for by whoever follows.
            if let Ok(view) = client.get::<PipelineView>(&path(&run.followee.run_id)) {
                run.look(context, &mut screen, &view)?;
            }
        }
    }
    screen.clear();
    if !context.json {
        watched.iter().for_each(|run| sum_up(client, run));
    }
    let exits = watched.iter().filter_map(|run| run.exit);
    Ok(exits.max_by_key(|exit| gravity(*exit)).unwrap_or(Exit::Ok))
}

/// Tells how much an end is worth saying where several runs come to different ones.
fn gravity(exit: Exit) -> u8 {
    match exit {
        Exit::Ok => 0,
        Exit::Waiting => 1,
        Exit::Interrupted => 2,
        Exit::Failed => 3,
        Exit::Usage | Exit::NoDaemon | Exit::Detached => 4,
    }
}

/// Returns what the end of a run is for whoever called the command.
pub(super) fn exit_of(status: RunStatus) -> Exit {
    match status {
        RunStatus::Completed | RunStatus::Running => Exit::Ok,
        RunStatus::Failed | RunStatus::Aborted => Exit::Failed,
    }
}

/// Says what a run took in all, once it has ended.
fn sum_up(client: &Client, run: &Watched) {
    // It was told before, step by step; that it cannot be summed up is no failure.
    let Ok(view) = client.get::<PipelineView>(&path(&run.followee.run_id)) else { return };
    if view.status != RunStatus::Running {
        anstream::eprintln!("{}", styled(DIM, sanitise::line(&sum_text(&view))));
    }
}

fn say_how_to_come_back(watched: &[Watched]) {
    for run in watched.iter().filter(|run| run.exit.is_none()) {
        let again = ours(format_args!("pipeline log -f {}", run.followee.run_id));
        anstream::eprintln!("{} continues; come back with: {again}", run.followee.run_id);
    }
}

impl Watched {
    /// Takes in what is heard of it. Its stream ends with it, which is no news then.
    fn hear(&mut self, screen: &mut Screen, heard: Heard) -> Result<(), Failure> {
        match heard {
            _ if self.exit.is_some() => {}
            Heard::Record(record) => self.record(screen, &record)?,
            // What else is told of it is only a reason to look.
            Heard::Pending(_) => self.looked = Instant::now().checked_sub(LOOK).unwrap_or(self.looked),
            Heard::Words(_) | Heard::Back { away: false } => {}
            Heard::Away => screen.note("note: the daemon went away; waiting for the next one"),
            Heard::Back { away: true } => screen.note("note: a daemon is running again"),
            Heard::Reset { last_seq } => {
                screen.note(&format!(
                    "note: the end of the ledger was lost in a crash; it continues after record {last_seq}"
                ));
            }
            Heard::Deleted => {
                screen.note("note: the run was removed");
                self.exit = Some(Exit::Failed);
            }
            Heard::Over(failure) => return Err(failure),
        }
        Ok(())
    }

    fn record(&mut self, screen: &mut Screen, record: &str) -> Result<(), Failure> {
        let line = match Line::parse(record.as_bytes()) {
            Ok(line) => line,
            Err(error) => {
                screen.note(&format!("note: a record cannot be read: {error}"));
                return Ok(());
            }
        };
        let lines = match line.event() {
            Ok(event) => self.progress.take(line.time(), &event, output::width()),
            Err(_) => Vec::new(),
        };
        if line.seq > self.followee.shown_to {
            screen.show(&self.followee.run_id, record, &lines)?;
            (self.told, self.looked) = (None, Instant::now());
            let ended = self.progress.ended().filter(|_| line.seq >= self.followee.newest);
            self.exit = ended.map(exit_of);
        }
        Ok(())
    }

    /// Looks at what it waits for, which is in no record.
    fn look(&mut self, context: &Context, screen: &mut Screen, view: &PipelineView) -> Result<(), Failure> {
        // Its end comes with a record, unless that was shown before.
        if view.status != RunStatus::Running && view.last_seq <= self.followee.shown_to {
            self.exit = Some(exit_of(view.status));
            return Ok(());
        }
        // What passes by itself is waited for.
        for line in self.waiting.take(view, Instant::now()) {
            screen.note(&format!("{}{line}", self.prefix));
        }
        let Some(pending) = view.pending.as_ref().filter(|pending| self.told != Some(pending.why)) else {
            return Ok(());
        };
        self.told = Some(pending.why);
        if pending.why == PendingWhy::Person {
            let waits = ours("waits");
            let (prefix, stage, round) = (&self.prefix, &pending.stage, pending.round);
            screen.note(&format!("{prefix}{stage} {round} waits for an answer: {waits}"));
            if !can_ask(context) {
                self.exit = Some(Exit::Waiting);
            }
        } else if pending.why.rests() {
            for line in rest_lines(view) {
                screen.note(&format!("{}{line}", self.prefix));
            }
            self.exit = Some(Exit::Interrupted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_ends_counts() {
        let worst = |exits: &[Exit]| exits.iter().copied().max_by_key(|exit| gravity(*exit));
        assert_eq!(worst(&[Exit::Ok, Exit::Interrupted, Exit::Waiting]), Some(Exit::Interrupted));
        assert_eq!(worst(&[Exit::Failed, Exit::Interrupted]), Some(exit_of(RunStatus::Aborted)));
    }
}

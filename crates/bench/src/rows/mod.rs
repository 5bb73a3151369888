//! The benchmarks and their rows. Each row is a file with the raw program beside ours.

mod append_many;
mod append_one;
mod batch;
mod bytes;
mod checkpoint;
mod daemon;
mod fork;
mod holder;
mod kept_snapshots;
mod last;
mod open;
mod pipeline;
mod process;
mod reach;
mod replay;
pub(crate) mod replay_memory;
mod snapshot;
mod sweep;
mod tasks;
mod workspace;

use anyhow::Context as _;

use crate::context::Context;
use crate::rig;
use crate::table::Row;

/// A program that measures something and returns its lines of the table.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Context) -> anyhow::Result<Vec<Row>>,
}

/// Programs that belong together.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    /// Tells what is missing, before anything is measured.
    pub(crate) check: fn() -> anyhow::Result<()>,
    programs: &'static [Program],
}

/// Every benchmark there is.
pub(crate) const BENCHES: &[Bench] = &[STORE, HOLDER, DAEMON, WORKSPACE, TASKS, REACH, PIPELINE];

const STORE: Bench = Bench {
    name: "store",
    check: || Ok(()),
    programs: &[
        Program { name: "append-one", run: append_one::run },
        Program { name: "append-many", run: append_many::run },
        Program { name: "batch", run: batch::run },
        Program { name: "process", run: process::run },
        Program { name: "replay", run: replay::run },
        Program { name: "snapshot", run: snapshot::run },
        Program { name: "open", run: open::run },
        Program { name: "last", run: last::run },
        Program { name: "bytes", run: bytes::run },
        Program { name: "checkpoint", run: checkpoint::run },
        Program { name: "kept-snapshots", run: kept_snapshots::run },
        Program { name: "fork", run: fork::run },
    ],
};

const HOLDER: Bench = Bench {
    name: "holder",
    check: || rig::executable().map(|_| ()),
    programs: &[
        Program { name: "memory", run: holder::memory::run },
        Program { name: "latency", run: holder::latency::run },
        Program { name: "throughput", run: holder::throughput::run },
        Program { name: "start", run: holder::start::run },
        Program { name: "adopt", run: holder::adopt::run },
    ],
};

const DAEMON: Bench = Bench {
    name: "daemon",
    check: || rig::executable().and_then(|_| rig::beside("rekindle")).map(|_| ()),
    programs: &[
        Program { name: "accept", run: daemon::accept::run },
        Program { name: "change", run: daemon::change::run },
        Program { name: "words", run: daemon::words::run },
        Program { name: "crowd", run: daemon::crowd::run },
        Program { name: "turn", run: daemon::turn::run },
        Program { name: "fleet", run: daemon::fleet::run },
        Program { name: "begin", run: daemon::begin::run },
        Program { name: "memory", run: daemon::memory::run },
        Program { name: "looks", run: daemon::looks::run },
        Program { name: "command", run: daemon::command::run },
    ],
};

const WORKSPACE: Bench = Bench {
    name: "workspace",
    check: workspace::check,
    programs: &[
        Program { name: "first-capture", run: workspace::first_capture::run },
        Program { name: "incremental-capture", run: workspace::incremental_capture::run },
        Program { name: "restore", run: workspace::restore::run },
        Program { name: "warm-capture", run: workspace::warm_capture::run },
        Program { name: "disk-usage", run: workspace::disk_usage::run },
        Program { name: "export", run: workspace::export::run },
    ],
};

const TASKS: Bench = Bench {
    name: "tasks",
    check: DAEMON.check,
    programs: &[
        Program { name: "claim", run: tasks::task_lifecycle::run },
        Program { name: "projection", run: tasks::projection::run },
        Program { name: "million", run: tasks::many_ended_tasks::run },
        Program { name: "decision", run: tasks::scheduler_decision::run },
        Program { name: "accept", run: tasks::accept::run },
    ],
};

const REACH: Bench = Bench {
    name: "reach",
    check: || (DAEMON.check)().and_then(|()| workspace::check()),
    programs: &[
        Program { name: "worktree", run: reach::worktree::run },
        Program { name: "webhook", run: reach::webhook::run },
        Program { name: "slow-target", run: reach::slow_target::run },
    ],
};

const PIPELINE: Bench = Bench {
    name: "pipeline",
    check: || Ok(()),
    programs: &[
        Program { name: "step", run: pipeline::step::run },
        Program { name: "many", run: pipeline::many_runs::run },
        Program { name: "cached", run: pipeline::cached_step::run },
        Program { name: "replay", run: pipeline::ledger_replay::run },
        Program { name: "resume", run: pipeline::resume::run },
    ],
};

impl Bench {
    /// Returns the programs with these names or numbers, in the order given; all of them for none.
    pub(crate) fn choose(&self, names: &[String]) -> anyhow::Result<Vec<&'static Program>> {
        if names.is_empty() {
            return Ok(self.programs.iter().collect());
        }
        names.iter().map(|name| self.find(name)).collect()
    }

    fn find(&self, name: &str) -> anyhow::Result<&'static Program> {
        let by_number = |number: usize| self.programs.get(number.checked_sub(1)?);
        let by_name = || self.programs.iter().find(|program| program.name == name);
        name.parse().ok().and_then(by_number).or_else(by_name).with_context(|| {
            let known: Vec<&str> = self.programs.iter().map(|program| program.name).collect();
            format!("{} has no row {name:?}; known: {}, or their numbers", self.name, known.join(", "))
        })
    }
}

//! `rekindle-bench`: measures the store, the holder, the daemon, workspaces, tasks, worktrees and pipelines beside raw programs, interleaved, in the same
//! run on the same disk. Reads the arguments, picks the rows, prints the table. It measures; what is right is for tests to
//! judge.

mod actors;
mod chatter;
mod context;
mod counting;
mod ears;
mod home;
mod lab;
mod measure;
mod pipeline_runs;
mod proc;
mod records;
mod rig;
mod rows;
mod system_info;
mod table;
mod task_records;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;

use crate::context::Context;
use crate::rows::Bench;
use crate::system_info::SystemInfo;

/// Measure the store, the holder, the daemon, workspaces, tasks, worktrees and pipelines beside raw programs that do the least a correct one could do.
///
/// Where there is something to compare with, a figure of ours stands beside a raw one of the same run, and its goal is
/// a ratio, so that it holds on any machine.
#[derive(Parser)]
#[command(name = "rekindle-bench", after_help = EXAMPLES)]
struct Cli {
    /// Which benchmark; all of them without a name.
    #[arg(value_name = "NAME")]
    bench: Option<String>,

    /// Which rows of it, by name or number; all of them without any.
    #[arg(value_name = "ROW")]
    rows: Vec<String>,

    /// Smaller data and fewer rounds, for a first look.
    #[arg(long)]
    quick: bool,

    /// Print the machine and the rows as JSON instead of a table.
    #[arg(long)]
    json: bool,

    /// Exit with 1 if a goal is missed.
    #[arg(long)]
    strict: bool,

    /// Where to put the data; a temporary directory beside the binary unless given.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// For cold figures drop the page cache of the whole machine instead of that of our files (root only).
    #[arg(long)]
    drop_caches: bool,

    /// Replay one session of a home and print the memory it took; the replay row starts itself so.
    #[arg(long, hide = true, num_args = 2, value_names = ["HOME", "SESSION"])]
    replay_once: Option<Vec<String>>,
}

const EXAMPLES: &str = "\
Examples:
  rekindle-bench store               all rows
  rekindle-bench store --quick       a first look
  rekindle-bench store replay open   two rows, by name
  rekindle-bench holder latency      one row of another benchmark
  rekindle-bench daemon fleet        fifty agents and two hundred subscribers at once
  rekindle-bench workspace           directories, beside git and tar
  rekindle-bench tasks               records, rows and decisions of tasks, up to a million
  rekindle-bench pipeline            steps of pipelines, and ledgers of a million records
  rekindle-bench store 1 2 --json    two rows, by number, for programs";

fn main() -> ExitCode {
    let outcome = match actors::play(chatter::play, lab::keep) {
        Some(played) => played.map(|()| ExitCode::SUCCESS),
        None => run(&Cli::parse()),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    if let Some([home, session]) = cli.replay_once.as_deref() {
        rows::replay_memory::child(home, session)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut chosen = Vec::new();
    for bench in benches(cli.bench.as_deref())? {
        chosen.extend(bench.choose(&cli.rows)?);
        (bench.check)()?;
    }
    let context = Context::new(cli.dir.as_deref(), cli.quick, cli.drop_caches)?;
    let machine = SystemInfo::here();
    eprintln!("{}", machine.describe());
    context.announce();
    let mut measured = Vec::new();
    for row in chosen {
        let rows = (row.run)(&context).with_context(|| format!("row {} could not be measured", row.name))?;
        measured.extend(rows.into_iter().map(|figures| figures.named(row.name)));
    }
    if cli.json {
        println!("{}", table::json(&machine, &measured)?);
    } else {
        println!("{}", table::render(&measured));
    }
    let missed = measured.iter().any(table::Row::is_missed);
    Ok(if cli.strict && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the named benchmark, or all of them.
fn benches(name: Option<&str>) -> anyhow::Result<Vec<&'static Bench>> {
    let found: Vec<&Bench> =
        rows::BENCHES.iter().filter(|bench| name.is_none_or(|name| name == bench.name)).collect();
    if found.is_empty() {
        let known: Vec<&str> = rows::BENCHES.iter().map(|bench| bench.name).collect();
        bail!("there is no benchmark {:?}; known: {}", name.unwrap_or_default(), known.join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let error = benches(Some("stork")).map(|_| ()).expect_err("no such benchmark");
        assert!(
            error.to_string().ends_with("known: store, holder, daemon, workspace, tasks, reach, pipeline"),
            "{error}"
        );
        let error = rows::BENCHES[0].choose(&["replays".into()]).map(|_| ()).expect_err("no such row");
        assert!(error.to_string().contains("replay, "), "{error}");
    }

    #[test]
    fn rows_are_chosen_by_name_and_by_number() {
        let all = rows::BENCHES[0].choose(&[]).expect("all rows");
        let two = rows::BENCHES[0].choose(&["replay".into(), "1".into()]).expect("known rows");
        assert_eq!(all.len(), 12);
        assert_eq!(two.iter().map(|row| row.name).collect::<Vec<_>>(), ["replay", "append-one"]);
    }
}

//! `rekindle pipeline run`: runs of a pipeline, one for each task, followed to their ends.

use std::path::PathBuf;

use rekindle_client::{Exit, Failure, read};
use rekindle_display::hints::ours;
use rekindle_domain::event::{Budget, DEFAULT_PIPELINE, DirtyPolicy, OnCut, Permissions, ResumePolicy};
use rekindle_terminal::output::{BOLD, styled};
use rekindle_wire::request::{MAX_PIPELINE_TASKS, NewPipelines, NewWorktree};
use rekindle_wire::view::{PipelineList, PipelineView};

use super::execution_args::ExecutionArgs;
use super::follow::{Followee, follow};
use super::project_dir::{self, Project};
use super::trust;
use crate::context::Context;
use crate::env_arg::umask_for;
use crate::possible_values::one_of;
use crate::session_options::{DIRTY_POLICIES, PERMISSIONS, directory, seconds};

/// Run tasks through a pipeline, and follow them to the end
///
/// Prints a line for each step that is finished. Every step is on record before anything is done for it: whatever dies, a run goes
/// on where it was, by itself or with `rekindle pipeline resume`, and no finished step is done again. Ctrl-C leaves and the run goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle pipeline run         # the only task of rekindle.toml
  rekindle pipeline run --task T-0042
  rekindle pipeline run --task T-0042 --task T-0043 --worktree
  rekindle pipeline run --task T-0042 --on-cut restore --no-cache
  rekindle pipeline run --task T-0042 --detach
  rekindle pipeline run --task T-0042 --trust HASH   # without a terminal
  rekindle pipeline run --task T-0042 --json |
    jq -r 'select(.kind == \"step.finished\") | .outcome'

Exit codes:
  0  completed             3  rests: resume it    5    no daemon
  1  failed or aborted     4  asks a person       130  left with Ctrl-C
  2  wrong usage, or a file that nobody trusts")]
pub(super) struct Args {
    /// A task, by its id in rekindle.toml; several times for several [default: the only one there is]
    #[arg(long, short, value_name = "ID")]
    task: Vec<String>,

    /// Which of the file's pipelines
    #[arg(long, short, value_name = "NAME", default_value = DEFAULT_PIPELINE)]
    pipeline: String,

    /// The project's directory, or one below it [default: here; with --server the same path there]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// What to do with a step whose agent was interrupted [default: as the pipeline says, else continue where possible, else restore]
    #[arg(long, value_parser = one_of::<OnCut>(ON_CUT), value_name = "POLICY")]
    on_cut: Option<OnCut>,

    /// Whether it continues automatically when another daemon starts
    #[arg(long, value_parser = one_of::<ResumePolicy>(RESUME), default_value = "auto", value_name = "POLICY")]
    resume: ResumePolicy,

    /// The answer when an agent asks for permission
    #[arg(long, value_parser = one_of::<Permissions>(PERMISSIONS), default_value = "ask", value_name = "POLICY")]
    permissions: Permissions,

    /// Work in a worktree of git, one for each task, on a new branch or, for one task, on the one that is named
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,

    /// The commit, branch or tag that a new branch starts from [default: HEAD of the directory]
    #[arg(long, value_name = "COMMIT", requires = "worktree")]
    base: Option<String>,

    /// What to do with uncommitted changes in the directory [default: refuse to make a worktree]
    #[arg(long, value_parser = one_of::<DirtyPolicy>(DIRTY_POLICIES), value_name = "POLICY", requires = "worktree")]
    dirty: Option<DirtyPolicy>,

    /// Stop a run when its steps have used this many tokens, as far as agents report them
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Stop a run when its steps have cost this much, as far as agents report it
    #[arg(long, value_name = "AMOUNT")]
    max_cost: Option<f64>,

    /// Stop a run when its steps have run for this long, for example 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    max_time: Option<u64>,

    #[command(flatten)]
    execution: ExecutionArgs,
}

/// What becomes of a step whose agent is cut.
pub(super) const ON_CUT: &[(&str, &str)] = &[
    ("ask", "It rests until somebody resumes the run"),
    ("restore", "Its files are made what they were, and it begins again"),
    ("continue", "Its agent goes on in its session, with the files as they are"),
];

/// Whether a run goes on by itself under another daemon.
const RESUME: &[(&str, &str)] = &[
    ("auto", "It does"),
    ("ask", "A step that is at work is taken over; nothing else begins until somebody resumes the run"),
];

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let elsewhere = context.elsewhere()?;
    // Files of a daemon elsewhere are read there.
    let project = match &elsewhere {
        None => Some(project_dir::find(&project_dir::directory(args.cwd.as_deref())?)?),
        Some(_) => None,
    };
    let mut body = request(context, &args, project.as_ref())?;
    if let Some(project) = project.as_ref().filter(|_| !context.json) {
        project.warn_of_programs(&args.pipeline);
    }
    let mut client = match elsewhere {
        Some(client) => client,
        None => context.daemon_or_start()?,
    };
    let answer = match (client.post_once("/api/pipelines", &body), &project) {
        (Err(refused), Some(project)) if refused.code() == trust::UNTRUSTED && body.trust.is_none() => {
            body.trust = Some(trust::ask(context, project)?);
            client.post_once("/api/pipelines", &body)
        }
        (answer, _) => answer,
    }?;
    let started: PipelineList = read(&answer)?;
    if args.execution.detach {
        return print_names(context, &answer, &started.pipelines);
    }
    if !context.json {
        for run in &started.pipelines {
            anstream::eprintln!("{}", styled(BOLD, &run.run_id));
        }
    }
    let followees = started.pipelines.into_iter().map(|run| Followee::new(run, 0));
    follow(context, &client, followees.collect())
}

/// Returns what is asked of the daemon.
fn request(context: &Context, args: &Args, project: Option<&Project>) -> Result<NewPipelines, Failure> {
    let tasks = match (args.task.as_slice(), project) {
        ([], Some(project)) => vec![project.only_task()?],
        ([], None) => {
            return Err(Failure::usage("no_task", "no task is named".into())
                .hint("name one with --task ID; they are in rekindle.toml on the daemon's machine"));
        }
        (named, _) => named.to_vec(),
    };
    if tasks.len() > MAX_PIPELINE_TASKS {
        let message = format!("{} tasks are too many at once", tasks.len());
        return Err(Failure::usage("too_many_tasks", message).hint(format!("at most {MAX_PIPELINE_TASKS}")));
    }
    let branch = args.worktree.clone().filter(|branch| !branch.is_empty());
    if tasks.len() > 1 && (args.worktree.is_none() || branch.is_some()) {
        let message = "several tasks need a worktree each: one run writes to a directory at a time";
        return Err(
            Failure::usage("no_worktree", message.into()).hint("use --worktree without a branch name")
        );
    }
    let working_dir = match project {
        Some(project) => {
            project.check(&tasks, &args.pipeline)?;
            trust::check(args.execution.trust, project)?;
            project.root.clone()
        }
        None => directory(args.cwd.as_deref(), false)?,
    };
    Ok(NewPipelines {
        pipeline: Some(args.pipeline.clone()),
        config: project.map(|project| project.file.clone()),
        trust: args.execution.trust,
        on_cut: args.on_cut,
        resume: Some(args.resume),
        budget: Some(Budget {
            tokens: args.max_tokens,
            cost: args.max_cost,
            wall_s: args.max_time,
            turns: None,
        })
        .filter(|budget| *budget != Budget::default()),
        worktree: args.worktree.as_ref().map(|_| NewWorktree {
            branch,
            base: args.base.clone(),
            dirty: args.dirty.unwrap_or_default(),
        }),
        no_cache: args.execution.no_cache,
        permissions: args.permissions,
        env: args.execution.environment(context, project.map(|project| &project.config))?,
        umask: umask_for(context),
        ..NewPipelines::new(working_dir, tasks)
    })
}

fn print_names(context: &Context, answer: &[u8], runs: &[PipelineView]) -> Result<Exit, Failure> {
    context.print(&String::from_utf8_lossy(answer).trim_end(), |out| {
        // The names alone, so that a script can take them.
        for run in runs {
            writeln!(out, "{}", run.run_id)?;
        }
        out.flush()?;
        let name = runs.first().map(|run| format!(" {}", run.run_id)).filter(|_| runs.len() == 1);
        let follow = ours(format_args!("pipeline log -f{}", name.unwrap_or_default()));
        anstream::eprintln!("it continues in the background; follow it with: {follow}");
        Ok(())
    })
}

//! `rekindle-dev drive`: one turn with one agent, without a daemon: launch it or take it over, prompt it, record what
//! it says, until the turn ends. Made to be killed at any moment and started again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_agent::acp::Acp;
use rekindle_agent::connection::Delta;
use rekindle_agent::exec::{Exec, PromptBy};
use rekindle_agent::profile::{Answer, Profile};
use rekindle_client::clock::{SystemClock, id_millis, random};
use rekindle_client::failure::{Exit, Failure};
use rekindle_domain::compose::begin::{NewMessage, with_message};
use rekindle_domain::event::{CancelReason, Provider, Raw, SessionCreated};
use rekindle_domain::id::{MessageId, RunId, SessionId};
use rekindle_domain::line::Draft;
use rekindle_domain::time::Clock;
use rekindle_holder::client::{
    ConnectError, LockState, highest_epoch, inspect, install_executable, runtime_dir,
};
use rekindle_holder::dir::{HolderDir, Limits};
use rekindle_service::boottime::BootClock;
use rekindle_service::home::next_epoch;
use rekindle_service::live::{
    AgentContext, HolderPaths, Launching, LiveAgent, LiveError, Processes, Progress, Supervisor,
    UnsentPrompt, keep_large,
};
use rekindle_store::Store;
use rekindle_store::commit::Append;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::Context;

/// Drive one turn with an agent, taking over whatever is already going on
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to ask, unless a turn is going on
    #[arg(long)]
    prompt: Option<String>,

    /// How to answer every permission: the kind of an option
    #[arg(long, value_name = "KIND")]
    answer: Option<String>,

    /// Cancel the turn that is going on
    #[arg(long)]
    cancel: bool,

    /// Where the agent works
    #[arg(long, value_name = "DIR", default_value = ".")]
    cwd: PathBuf,

    /// End the agent afterwards
    #[arg(long)]
    stop: bool,

    /// How long the turn may take, in seconds
    #[arg(long, default_value_t = 120)]
    seconds: u64,

    /// What the command speaks
    #[arg(long, value_enum, default_value_t = Speaks::Acp)]
    profile: Speaks,

    /// Give a plain command its prompt on its standard input, not as an argument
    #[arg(long)]
    stdin: bool,

    /// The agent's command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// A holder that is not there to answer is ending, and lets go of its lock, or binds its socket again within five
/// seconds.
const NO_ANSWER: Duration = Duration::from_secs(7);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Speaks {
    /// The Agent Client Protocol
    Acp,
    /// Nothing: any command, one for each prompt
    Exec,
}

impl Args {
    fn profile(&self) -> Arc<dyn Profile> {
        let prompt_by = if self.stdin { PromptBy::Stdin } else { PromptBy::Argument };
        match self.profile {
            Speaks::Acp => Arc::new(Acp::default()),
            Speaks::Exec => Arc::new(Exec { prompt_by }),
        }
    }
}

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::failed("drive", error)
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (store, boot_id) = super::open(context, context.disk())?;
    let store = Arc::new(store);
    let session = session(&store, args)?;
    let holders = context.home.join("holders");
    let highest = highest_epoch(&holders).unwrap_or_default();
    let epoch = next_epoch(&*context.disk(), &context.home, highest, || {});
    let supervisor =
        Supervisor { boot_id, epoch, steady: BootClock::compare(SystemClock.now()), wait_timeout: None };
    let profile = args.profile();
    if !has_open_run(&store, session)? && args.prompt.is_none() && !has_agent(&store, session)? {
        let message = "no turn is going on, and no agent lives: begin one with --prompt".to_owned();
        return Err(Failure::usage("no_turn", message));
    }
    let again = || take_over(context, &store, session, &profile, supervisor);
    let mut live = match again()? {
        Some(live) => live,
        None => launch(context, args, &store, session, &profile, supervisor)?,
    };
    if let (false, Some(prompt)) = (has_open_run(&store, session)?, &args.prompt) {
        let (unsent, records) = begin(&store, session, prompt, supervisor)?;
        live.say(unsent, &records);
    }
    if args.cancel {
        live.cancel(CancelReason::User, "dev", Vec::new(), Vec::new()).map_err(failed)?;
    }
    let deadline = Instant::now() + Duration::from_secs(args.seconds);
    let (exit, exited) = match has_open_run(&store, session)? {
        true => turn(&mut live, args, deadline, &again)
            .map_or_else(|late| (Err(late), false), |(exit, gone)| (Ok(exit), gone)),
        false => (Ok(Exit::Ok), false),
    };
    if args.stop && !exited {
        live.stop("driven to its end", "dev", Duration::from_secs(2)).map_err(failed)?;
        let ending = Instant::now();
        while ending.elapsed() < NO_ANSWER {
            let progress = step(&mut live, Duration::from_millis(200))?;
            if progress.exited || progress.lost && again()?.is_none() {
                break;
            }
        }
    }
    exit
}

/// Returns the home's session, made if there is none.
fn session(store: &Store, args: &Args) -> Result<SessionId, Failure> {
    let mut first = None;
    store.survey(|id, _| first = first.or(Some(id))).map_err(failed)?;
    if let Some(session) = first {
        return Ok(session);
    }
    let session = SessionId::mint(id_millis(), random()?);
    let working_dir = std::path::absolute(&args.cwd).map_err(failed)?.display().to_string();
    let created = SessionCreated {
        parent: None,
        title: "driven".into(),
        working_dir: working_dir.into(),
        provider: Provider { profile: args.profile().name().into(), ..Provider::default() },
        options: Default::default(),
        env_names: Vec::new(),
        key: None,
        imported_from: None,
        idempotency_key: None,
        created_at: None,
        forked_from: None,
        restoring: None,
        worktree: None,
    };
    store.create(session).map_err(failed)?;
    store.append(Append::durable(session, vec![created.into()])).map_err(failed)?;
    Ok(session)
}

fn has_open_run(store: &Store, session: SessionId) -> Result<bool, Failure> {
    let state = store.open_session(session).map_err(failed)?.state;
    Ok(state.open_run().is_some())
}

fn has_agent(store: &Store, session: SessionId) -> Result<bool, Failure> {
    let state = store.open_session(session).map_err(failed)?.state;
    Ok(state.agent.as_ref().is_some_and(|agent| !agent.exited))
}

/// Returns what the agent is given of our environment: what is text.
fn environment() -> BTreeMap<String, String> {
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).collect()
}

/// Takes over the session's agent; one that is dead is harvested.
fn take_over(
    context: &Context,
    store: &Arc<Store>,
    session: SessionId,
    profile: &Arc<dyn Profile>,
    supervisor: Supervisor,
) -> Result<Option<LiveAgent>, Failure> {
    let agent = store.open_session(session).map_err(failed)?.state.agent.clone();
    if let Some(agent) = agent.filter(|agent| !agent.exited) {
        let dir = HolderDir::new(context.home.join("holders").join(agent.holder_id.to_string()));
        let deadline = Instant::now() + NO_ANSWER;
        let agent = agent_context(store, session, profile, supervisor);
        while let LockState::Held { .. } = inspect(&dir).lock {
            let env = || Ok(environment());
            match LiveAgent::adopt(agent.clone(), dir.clone(), env) {
                Err(LiveError::Connect(ConnectError::HungUp | ConnectError::NoSocket { .. }))
                    if Instant::now() < deadline =>
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
                outcome => return outcome.map(Some).map_err(failed),
            }
        }
        let gone = rekindle_holder::client::harvest(&dir).map_err(failed)?;
        if !gone.tree_gone {
            let message = format!("{} processes of the old agent are still there", gone.left.len());
            return Err(Failure::failed("tree_not_gone", anyhow::Error::msg(message)));
        }
        LiveAgent::harvest(agent, dir).map_err(failed)?;
    }
    Ok(None)
}

/// Launches an agent for the session.
fn launch(
    context: &Context,
    args: &Args,
    store: &Arc<Store>,
    session: SessionId,
    profile: &Arc<dyn Profile>,
    supervisor: Supervisor,
) -> Result<LiveAgent, Failure> {
    if profile.prompt_in_command()
        && let Some(prompt) = &args.prompt
        && !has_open_run(store, session)?
    {
        begin(store, session, prompt, supervisor)?;
    }
    let executable = install_executable(&holder().map_err(failed)?, &context.home.join("bin"));
    let user_runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid = std::fs::metadata("/proc/self").map_err(failed)?.uid();
    let runtime = runtime_dir(user_runtime.as_deref(), &std::env::temp_dir(), uid).map_err(failed)?;
    let (holders, executable) = (context.home.join("holders"), executable.map_err(failed)?);
    let places = HolderPaths { holders, runtime, executable, scopes: None };
    let launching = Launching {
        agent: None,
        argv: args.command.clone(),
        env: environment(),
        umask: None,
        limits: Limits { free_bytes: 0, ..Limits::default() },
    };
    LiveAgent::launch(agent_context(store, session, profile, supervisor), &places, launching).map_err(failed)
}

fn agent_context(
    store: &Arc<Store>,
    session: SessionId,
    profile: &Arc<dyn Profile>,
    supervisor: Supervisor,
) -> AgentContext {
    let (store, holders, profile) = (store.clone(), Arc::new(Processes), profile.clone());
    AgentContext { store, session, holders, profile, supervisor }
}

/// Records a prompt and the run that begins with it.
fn begin(
    store: &Store,
    session: SessionId,
    prompt: &str,
    supervisor: Supervisor,
) -> Result<(UnsentPrompt, Vec<Draft>), Failure> {
    let (message_id, run_id) = (MessageId::mint(id_millis(), random()?), RunId::mint(id_millis(), random()?));
    let content = Raw::text(prompt).into_owned();
    let message = NewMessage { message_id, content: content.clone(), idempotency_key: None, wait_id: None };
    let mut records = with_message(message, run_id, &supervisor.life());
    keep_large(store, &mut records).map_err(failed)?;
    store.append(Append::durable(session, records.clone())).map_err(failed)?;
    Ok((UnsentPrompt::message(run_id, content), records))
}

/// Does what can be done, and waits for the holder if that was nothing.
fn step(live: &mut LiveAgent, most: Duration) -> Result<Progress, Failure> {
    let progress = live.step().map_err(failed)?;
    let over = progress.exited || progress.lost || progress.ended.is_some();
    let eventful = over || progress.more || !progress.waits.is_empty() || progress.refused.is_some();
    if let Some(fd) = live.as_fd().filter(|_| !eventful) {
        let most = live.patience().map_or(most, |patience| patience.min(most));
        let timeout = Timespec::try_from(most).ok();
        // Whatever goes wrong, looking again is all there is to do.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], timeout.as_ref());
    }
    Ok(progress)
}

/// Tells what the agent says.
fn tell(delta: &Delta) {
    // Whoever closed our output does not want to know.
    let _ = writeln!(std::io::stdout(), "{}", json!({"delta": delta.text}));
}

/// Returns the holder's executable: examples are built one directory below it.
fn holder() -> std::io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let examples = own.parent().unwrap_or(&own);
    Ok(examples.with_file_name("rekindle-holder"))
}

/// Runs the loop until the turn has ended; tells also whether the agent has. A connection that is lost says nothing
/// about the agent: it is looked for again.
fn turn(
    live: &mut LiveAgent,
    args: &Args,
    deadline: Instant,
    again: &dyn Fn() -> Result<Option<LiveAgent>, Failure>,
) -> Result<(Exit, bool), Failure> {
    let mut out = std::io::stdout();
    live.listen(Arc::new(tell));
    while Instant::now() < deadline {
        let mut progress = step(live, Duration::from_millis(500))?;
        if progress.lost {
            match again()? {
                Some(found) => {
                    *live = found;
                    live.listen(Arc::new(tell));
                }
                None => progress.exited = true,
            }
        }
        if let Some(why) = &progress.refused {
            writeln!(out, "{}", json!({"refused": why.to_string()}))?;
        }
        let open: Vec<_> = live.connection().asks().filter_map(|ask| ask.wait_id).collect();
        for wait in open {
            writeln!(out, "{}", json!({"wait": wait.to_string()}))?;
            let Some(kind) = &args.answer else { continue };
            live.answer(wait, Answer::Kind(kind), "dev", None, kind).map_err(failed)?;
        }
        if let Some(run) = progress.ended {
            writeln!(out, "{}", json!({"ended": run.to_string()}))?;
            return Ok((Exit::Ok, progress.exited));
        }
        if progress.exited {
            writeln!(out, "{}", json!({"exited": true}))?;
            return Ok((Exit::Failed, true));
        }
    }
    Err(Failure::failed("too_long", anyhow::Error::msg("the turn did not end in time")))
}

//! `rekindle run --queue`: a task that is watched as a run is, when it is its turn. The daemon may die meanwhile: the task is the next one's.

use std::io::Write;
use std::mem;
use std::sync::mpsc;
use std::time::Duration;

use rekindle_client::{Client, Exit, Failure, follow_all, read};
use rekindle_display::hints::ours;
use rekindle_display::live::Goal;
use rekindle_domain::event::TaskStatus;
use rekindle_wire::request::{Content, NewSession, NewTask};
use rekindle_wire::view::TaskView;

use super::Context;

/// How often it is looked whether it is the task's turn though nothing was told, and how long what comes together is waited for.
const TICK: Duration = Duration::from_secs(1);
const SETTLED: Duration = Duration::from_millis(20);

/// Queues a task, and watches it when it begins.
pub(super) fn run(
    context: &Context,
    mut client: Client,
    session: &NewSession,
    prompt: &str,
    detach: bool,
) -> Result<Exit, Failure> {
    let task = NewTask::of_session(session, Content::text(prompt));
    let body = client.post_once("/api/tasks", &task)?;
    let mut task: TaskView = read(&body)?;
    if detach {
        if context.json {
            return context.acknowledge(&body, "");
        }
        // The id alone, so that a script can take it.
        writeln!(std::io::stdout(), "{}", task.id)?;
        return Ok(Exit::Ok);
    }
    let (tell, news) = mpsc::channel();
    follow_all::follow(context.home.clone(), context.server.clone(), move |_| tell.send(()).is_ok());
    let (mut told, mut away) = (None, false);
    while task.session_id.is_none() {
        if task.status.is_ended() {
            let why = task.reason.unwrap_or_default();
            let message =
                anyhow::anyhow!("{} is {} before it has started: {why}", task.id, task.status.as_str());
            return Err(Failure::failed("not_begun", message));
        }
        if task.waits_for.is_some() && task.waits_for != told && task.status == TaskStatus::Pending {
            let why = task.waits_for.as_deref().unwrap_or_default();
            anstream::eprintln!(
                "queued as {}: {why}; Ctrl-C leaves, and it starts anyway. {} cancels it",
                task.id,
                ours(format_args!("task cancel {}", task.id))
            );
            told = task.waits_for.clone();
        }
        if news.recv_timeout(TICK).is_ok() {
            std::thread::sleep(SETTLED);
            news.try_iter().for_each(drop);
        }
        match client.get(&format!("/api/tasks/{}", task.id)) {
            Ok(now) => (task, away) = (now, false),
            Err(failure) if failure.is_absence() => {
                if !mem::replace(&mut away, true) {
                    anstream::eprintln!("no daemon answers; {} waits for the next one", task.id);
                }
                // None is started: somebody may have stopped it.
                client = context.daemon().ok().flatten().unwrap_or(client);
            }
            Err(failure) => return Err(failure),
        }
    }
    let session = task.session_id.map(|session| session.to_string()).unwrap_or_default();
    let goal = task.run_id.map_or(Goal::Next, |run| Goal::Run(run.to_string()));
    context.watch(&client, session, 0, goal)
}

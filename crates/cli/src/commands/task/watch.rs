//! `rekindle task watch`: the tasks that have not ended, again whenever something changes. On a terminal the table is drawn over in
//! place; elsewhere every change is another table, or another line of JSON.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rekindle_client::clock::SystemClock;
use rekindle_client::{Client, Exit, Failure, follow_all};
use rekindle_display::canvas::Canvas;
use rekindle_display::live::{Pressed, take_keys};
use rekindle_display::task::{count_text, write_tasks};
use rekindle_domain::time::Clock;
use rekindle_terminal::is_foreground;
use rekindle_terminal::on_exit_signal;
use rekindle_terminal::output::{self, DIM, WARN, styled};
use rekindle_wire::view::{TaskList, TaskView};

use crate::commands::Context;

/// Watch the tasks that have not ended: progress, last words, and what the waiting ones wait for
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle task watch
  rekindle task watch --json | jq -c '[.tasks[] | .status]'")]
pub(super) struct Args {
    /// Exit when no task is running or waiting any more
    #[arg(long)]
    until_empty: bool,
}

/// How often the tasks are looked at though nothing was told, and how long what comes together is waited for.
const TICK: Duration = Duration::from_secs(1);
const SETTLED: Duration = Duration::from_millis(50);

enum Input {
    Changed,
    Pressed(Pressed),
    Signal,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let client = context.daemon_or_start()?;
    let (tell, inputs) = mpsc::channel();
    let leave = tell.clone();
    on_exit_signal(move || leave.send(Input::Signal).is_ok())
        .map_err(|error| Failure::failed("signals", error))?;
    let heard = tell.clone();
    follow_all::follow(context.home.clone(), context.server.clone(), move |_| {
        heard.send(Input::Changed).is_ok()
    });
    let drawn = !context.json && output::is_terminal() && is_foreground();
    let keys = drawn.then(|| take_keys(move |key| tell.send(Input::Pressed(key)).is_ok())).flatten();
    let mut shown =
        Shown { context, canvas: if drawn { Some(Canvas::take()?) } else { None }, last: String::new() };
    let mut due = Instant::now();
    let exit = loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let tasks = fetch(&client);
            shown.show(tasks.as_deref().ok())?;
            if args.until_empty && tasks.is_ok_and(|tasks| tasks.is_empty()) {
                break Exit::Ok;
            }
            due = Instant::now() + TICK;
            continue;
        }
        match inputs.recv_timeout(left) {
            Ok(Input::Signal | Input::Pressed(Pressed::Leave)) => break Exit::Detached,
            Ok(Input::Pressed(Pressed::Char('q' | 'Q'))) => break Exit::Ok,
            Ok(Input::Pressed(_)) => {}
            Ok(Input::Changed) => due = due.min(Instant::now() + SETTLED),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Exit::Detached,
        }
    };
    // The terminal is given back before anything else is said.
    shown.canvas = None;
    drop(keys);
    Ok(exit)
}

fn fetch(client: &Client) -> Result<Vec<TaskView>, Failure> {
    client.get::<TaskList>("/api/tasks/active").map(|list| list.tasks)
}

struct Shown<'a> {
    context: &'a Context,
    canvas: Option<Canvas>,
    /// What was printed last.
    last: String,
}

impl Shown<'_> {
    /// Shows the tasks; none says that nobody answers.
    fn show(&mut self, tasks: Option<&[TaskView]>) -> Result<(), Failure> {
        let mut page = Vec::new();
        write_tasks(&mut page, tasks.unwrap_or_default(), SystemClock.now())?;
        let page = String::from_utf8_lossy(&page).into_owned();
        if let Some(canvas) = &mut self.canvas {
            let head =
                tasks.map_or_else(|| styled(WARN, "no daemon answers; agents keep working"), count_text);
            let leave = styled(DIM, "q ends");
            return Ok(canvas.draw(&format!("{head}  {leave}\n\n{}", page.trim_end()))?);
        }
        let Some(tasks) = tasks else { return Ok(()) };
        let list = TaskList { tasks: tasks.to_vec(), next: None };
        let json = serde_json::to_string(&list).map_err(|error| Failure::failed("output", error))?;
        if json == self.last {
            return Ok(());
        }
        self.context.print(&json, |out| {
            writeln!(out, "{}", styled(DIM, format_args!("--- {}", SystemClock.now())))?;
            if tasks.is_empty() {
                writeln!(out, "no task is running or waiting")?;
            }
            Ok(write!(out, "{page}")?)
        })?;
        self.last = json;
        Ok(())
    }
}

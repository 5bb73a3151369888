//! Does what is asked of the daemon, one thing after another, on a thread of its own: whoever types waits for nothing. A message is sent
//! once, whatever becomes of the daemon meanwhile.

use std::sync::mpsc::Receiver;

use rekindle_client::clock::SystemClock;
use rekindle_client::target::Target;
use rekindle_client::{Client, Failure, new_key, read, start};
use rekindle_display::live::diff::Styled;
use rekindle_display::live::stays_text;
use rekindle_display::short_id::{SHORTEST, short};
use rekindle_display::status_text::next;
use rekindle_display::task::write_tasks;
use rekindle_domain::id::RunId;
use rekindle_domain::time::Clock;
use rekindle_terminal::output::{COURSE, DIM, PLAIN, WARN};
use rekindle_terminal::sanitise;
use rekindle_wire::request::{NewFork, NewMessage, NewRewind, NewSession, Resume};
use rekindle_wire::view::{
    FilesOutcome, Forked, KeyedSession, RewindPlan, Rewound, RunDiff, RunState, SessionView, TaskList,
};
use serde_json::json;

use crate::core::{Reply, Request, Standing};
use crate::diff_lines::{diff_lines, stat_lines};

/// How often a message is tried: once more, at a daemon that was started for it.
const ATTEMPTS: usize = 2;

/// What goes with a message beside its text.
pub trait Letters: Send {
    /// Returns a message to a session.
    fn message(&self, session: &SessionView, text: &str) -> Result<NewMessage, Failure>;
    /// Returns the wish that an interrupted session continues.
    fn resume(&self, session: &SessionView) -> Result<Resume, Failure>;
    /// Returns a new session that begins with a message.
    fn session(&self, text: &str) -> Result<NewSession, Failure>;
}

/// Whoever asks the daemon.
pub(crate) struct Worker {
    pub(crate) client: Client,
    pub(crate) session: Option<String>,
    pub(crate) letters: Box<dyn Letters>,
}

impl Worker {
    /// Does what is asked until nobody asks any more; `tell` says whether anyone listens.
    pub(crate) fn begin(
        mut self,
        asked: Receiver<Request>,
        mut tell: impl FnMut(Reply) -> bool + Send + 'static,
    ) {
        std::thread::spawn(move || asked.into_iter().map(|request| self.serve(request)).all(&mut tell));
    }

    fn serve(&mut self, request: Request) -> Reply {
        match request {
            Request::Send { number, text } => match self.send(&text) {
                Ok(began) => Reply::Sent { number, began },
                Err(failure) => Reply::NotSent { number, why: failure.message() },
            },
            Request::Answer { wait, answer, told } => {
                match self.client.post(&format!("/api/waits/{wait}/answer"), &answer) {
                    Ok(_) => Reply::Answered { wait, told },
                    Err(failure) => {
                        let (too_late, why) = (failure.is_too_late(), failure.message());
                        Reply::NotAnswered { wait, told, too_late, why }
                    }
                }
            }
            Request::Cancel => {
                let done = self.client.post(&format!("{}/cancel", self.path()), &json!({}));
                said("not cancelled", done.map(|_| Vec::new()))
            }
            Request::Resume => said("not continued", self.resume().map(|()| Vec::new())),
            Request::Set(change) => {
                let done = self.client.patch(&self.path(), &change.clone().change());
                said("not changed", done.map(|_| vec![(DIM, change.text())]))
            }
            Request::Diff => said("no diff", self.diff()),
            Request::Tasks => said("no tasks", self.tasks()),
            Request::PlanRewind => self.plan_rewind().unwrap_or_else(|failure| failed("no rewind", &failure)),
            Request::Rewind { run } => {
                self.rewind(&run).unwrap_or_else(|failure| failed("not undone", &failure))
            }
            Request::Fork => self.fork().unwrap_or_else(|failure| failed("no fork", &failure)),
            Request::Look => match self.look() {
                Ok(session) => Reply::Stands(Box::new(standing(&session))),
                Err(_) => Reply::Unknown,
            },
        }
    }

    fn id(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    fn path(&self) -> String {
        format!("/api/sessions/{}", self.id())
    }

    fn look(&self) -> Result<SessionView, Failure> {
        self.client.session(self.id())
    }

    /// Sends a message, or begins a session with it; returns the session that was begun.
    fn send(&mut self, text: &str) -> Result<Option<String>, Failure> {
        // One key for all attempts: what was taken once is not taken again.
        let key = new_key()?;
        let mut attempt = 1;
        loop {
            match self.try_send(text, &key) {
                Err(failure) if failure.is_daemon_gone() && attempt < ATTEMPTS => self.reconnect()?,
                outcome => return outcome,
            }
            attempt += 1;
        }
    }

    fn try_send(&mut self, text: &str, key: &str) -> Result<Option<String>, Failure> {
        let nothing = || {};
        if self.session.is_some() {
            let message = self.letters.message(&self.look()?, text)?;
            let path = format!("{}/messages", self.path());
            self.client.post_with_key(&path, &message, key, nothing)?;
            return Ok(None);
        }
        let new = self.letters.session(text)?;
        let body = self.client.post_with_key("/api/sessions", &new, key, nothing)?;
        let KeyedSession { session, .. } = read(&body)?;
        self.session = Some(session.id.to_string());
        Ok(self.session.clone())
    }

    /// Finds the daemon again; here one is started if none lives.
    fn reconnect(&mut self) -> Result<(), Failure> {
        self.client = match self.client.target() {
            Target::Local { home, .. } => start::ensure(&home.clone())?,
            Target::Remote { server, .. } => Client::elsewhere(server.clone())?,
        };
        Ok(())
    }

    /// Has an interrupted session continue; what it does then is heard.
    fn resume(&mut self) -> Result<(), Failure> {
        let (wish, path) = (self.letters.resume(&self.look()?)?, format!("{}/resume", self.path()));
        self.client.post_with_key(&path, &wish, &new_key()?, || {}).map(drop)
    }

    fn diff(&self) -> Result<Vec<Styled>, Failure> {
        let diff: RunDiff = self.client.get(&format!("{}/diff?stat=0", self.path()))?;
        Ok(diff_lines(&diff))
    }

    fn tasks(&self) -> Result<Vec<Styled>, Failure> {
        let TaskList { tasks, .. } = self.client.get("/api/tasks/active")?;
        if tasks.is_empty() {
            return Ok(vec![(DIM, "no task is running or waiting".into())]);
        }
        let mut text = Vec::new();
        write_tasks(&mut text, &tasks, SystemClock.now())?;
        Ok(String::from_utf8_lossy(&text).lines().map(|line| (PLAIN, line.to_owned())).collect())
    }

    fn plan_rewind(&self) -> Result<Reply, Failure> {
        let plan: RewindPlan = self.client.get(&format!("{}/rewind", self.path()))?;
        let run = plan.run_id.to_string();
        let mut lines = vec![(WARN, "this would undo the latest turn: what was said in it".to_owned())];
        match plan.tree {
            None => lines.push((DIM, "files are left as they are".into())),
            Some(_) => {
                let text = format!(
                    "and files in {} are restored to what they were",
                    sanitise::line(&plan.working_dir)
                );
                lines.push((WARN, text));
                // What it did is what is undone; without that the plan is still one.
                if let Ok(diff) =
                    self.client.get::<RunDiff>(&format!("{}/diff?stat=1&run={run}", self.path()))
                {
                    lines.push((DIM, "what it did, and what is undone:".into()));
                    lines.extend(stat_lines(&diff));
                }
            }
        }
        lines.push((DIM, "/rewind yes does it".into()));
        Ok(Reply::Planned { run, lines })
    }

    fn rewind(&mut self, run: &str) -> Result<Reply, Failure> {
        let to: RunId = run.parse().map_err(|error| Failure::failed("bad_run_id", error))?;
        let new = NewRewind { to: Some(to), ..NewRewind::default() };
        let (path, key) = (format!("{}/rewind", self.path()), new_key()?);
        let body = self.client.post_with_key(&path, &new, &key, || {})?;
        let Rewound { session, files, notice, .. } = read(&body)?;
        let files = match files {
            FilesOutcome::Restored => "files are restored to what they were before it",
            _ => "files are left as they are",
        };
        let new = short(session.id.as_str(), SHORTEST);
        let lines = vec![
            (COURSE, format!("the latest turn is undone; {files}")),
            (DIM, format!("the conversation continues in {new}: {}", sanitise::line(&notice))),
        ];
        Ok(self.moved(&session, lines))
    }

    fn fork(&mut self) -> Result<Reply, Failure> {
        let (path, key) = (format!("{}/fork", self.path()), new_key()?);
        let body = self.client.post_with_key(&path, &NewFork::default(), &key, || {})?;
        let Forked { session, notice, .. } = read(&body)?;
        let (new, old) = (short(session.id.as_str(), SHORTEST), short(self.id(), SHORTEST));
        let lines = vec![
            (COURSE, format!("the conversation continues in {new}; {old} stays as it is")),
            (DIM, sanitise::line(&notice)),
        ];
        Ok(self.moved(&session, lines))
    }

    fn moved(&mut self, session: &SessionView, lines: Vec<Styled>) -> Reply {
        let id = session.id.to_string();
        self.session = Some(id.clone());
        Reply::Moved { session: id, after: session.last_seq, lines }
    }
}

/// Returns how a session stands.
pub(crate) fn standing(session: &SessionView) -> Standing {
    let name = |name: &Option<String>| name.as_deref().map(sanitise::line);
    Standing {
        agent: sanitise::line(&session.agent),
        mode: name(&session.mode),
        model: name(&session.model),
        usage: Some(session.usage),
        is_cut: session.run.as_ref().is_some_and(|run| run.state == RunState::Interrupted),
        held: session.held.as_deref().map(|why| stays_text(&sanitise::line(why))),
        next: next(session),
    }
}

fn said(what: &'static str, lines: Result<Vec<Styled>, Failure>) -> Reply {
    lines.map_or_else(|failure| failed(what, &failure), Reply::Lines)
}

fn failed(what: &'static str, failure: &Failure) -> Reply {
    Reply::Failed { what, why: failure.message() }
}

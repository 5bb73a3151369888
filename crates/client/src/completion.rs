//! Names that a shell completes: ids of sessions, tasks, waits and runs, as a living daemon knows them. Whoever presses a key waits for
//! them: none is started for it, nothing is waited for long, and whatever goes wrong there are none.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rekindle_wire::view::{PipelineList, SessionList, TaskList, WaitList};

use crate::server::Server;
use crate::{Client, Failure};

/// How long somebody who has pressed a key waits.
const PATIENCE: Duration = Duration::from_millis(800);

/// Names that are offered: the newest, which is more than anybody looks through.
const MOST: usize = 100;

/// What is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    /// A session.
    Session,
    /// A task.
    Task,
    /// A wait.
    Wait,
    /// A run of a pipeline.
    Run,
}

/// A name that fits what was typed, with what tells people which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The name, in the form in which it was begun.
    pub name: String,
    /// A title, or a question.
    pub about: String,
}

/// Returns the names that begin as was typed; none if there is no daemon, or it does not say in time.
pub fn complete(what: IdKind, typed: &str, home: PathBuf, server: Option<Arc<Server>>) -> Vec<Completion> {
    let (tell, told) = sync_channel(1);
    // A connection that hangs is left behind: the process ends.
    std::thread::spawn(move || {
        let client = match server {
            Some(server) => Client::elsewhere(server).map(Some),
            None => Client::find(&home),
        };
        let names = client.and_then(|client| client.map_or(Ok(Vec::new()), |client| list(what, &client)));
        let _ = tell.send(names.unwrap_or_default());
    });
    let names = told.recv_timeout(PATIENCE).unwrap_or_default();
    names.into_iter().filter_map(|(id, about)| fit(what, typed, id, about)).collect()
}

fn list(what: IdKind, client: &Client) -> Result<Vec<(String, String)>, Failure> {
    Ok(match what {
        IdKind::Session => {
            let list: SessionList = client.get(&format!("/api/sessions?limit={MOST}"))?;
            list.sessions.into_iter().map(|one| (one.id.to_string(), one.title)).collect()
        }
        IdKind::Task => {
            let list: TaskList = client.get(&format!("/api/tasks?limit={MOST}"))?;
            list.tasks.into_iter().map(|one| (one.id.to_string(), one.title)).collect()
        }
        IdKind::Wait => {
            let list: WaitList = client.get(&format!("/api/waits?limit={MOST}"))?;
            let about = |asked: &serde_json::Value| crate::content_text::asked(asked);
            list.waits.into_iter().map(|one| (one.wait_id.to_string(), about(&one.asked()))).collect()
        }
        IdKind::Run => {
            let list: PipelineList = client.get(&format!("/api/pipelines?limit={MOST}"))?;
            list.pipelines.into_iter().map(|one| (one.run_id, one.task_id)).collect()
        }
    })
}

/// Returns a name if it begins as was typed, with or without what all of its kind begin with. Where nothing was typed ids of sessions and
/// tasks are given as tables show them, without it.
fn fit(what: IdKind, typed: &str, id: String, about: String) -> Option<Completion> {
    let prefix = match what {
        IdKind::Session => "sess_",
        IdKind::Task => "task_",
        // An answer, which may stand in the same place, is told from a wait by this.
        IdKind::Wait => "",
        IdKind::Run => "run-",
    };
    let bare = id.strip_prefix(prefix).unwrap_or(&id);
    // Names of runs are shown whole.
    let (first, second) = if what == IdKind::Run { (id.as_str(), bare) } else { (bare, id.as_str()) };
    let name = [first, second].into_iter().find(|name| name.starts_with(typed))?.to_owned();
    // In one line, and nothing that commands a terminal.
    Some(Completion { name, about: rekindle_terminal::sanitise::line(&about) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_completed_in_the_form_in_which_it_was_begun() {
        let fit = |what, typed: &str, id: &str| fit(what, typed, id.into(), "a\nb".into());
        let name = |what, typed: &str, id: &str| fit(what, typed, id).map(|fit| fit.name);
        let session = "sess_01khz0";
        assert_eq!(name(IdKind::Session, "", session).as_deref(), Some("01khz0"));
        assert_eq!(name(IdKind::Session, "01k", session).as_deref(), Some("01khz0"));
        assert_eq!(name(IdKind::Session, "sess_01", session).as_deref(), Some(session));
        assert_eq!(name(IdKind::Session, "se", session).as_deref(), Some(session));
        assert_eq!(name(IdKind::Session, "02", session), None);
        let run = "run-20251020-140818-4f9f29a1";
        assert_eq!(name(IdKind::Run, "", run).as_deref(), Some(run));
        assert_eq!(name(IdKind::Run, "2025", run).as_deref(), Some("20251020-140818-4f9f29a1"));
        assert_eq!(name(IdKind::Wait, "wait_0", "wait_01a").as_deref(), Some("wait_01a"));
        assert_eq!(name(IdKind::Wait, "ye", "wait_01a"), None);
        assert_eq!(fit(IdKind::Session, "", session).map(|fit| fit.about).as_deref(), Some("a b"));
    }

    #[test]
    fn without_a_daemon_there_is_nothing_and_none_is_started() {
        let home = tempfile::tempdir().expect("a directory").path().join("home");
        assert_eq!(complete(IdKind::Session, "", home.clone(), None), []);
        assert!(!home.exists());
    }
}

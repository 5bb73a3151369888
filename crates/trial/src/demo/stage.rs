//! The stage: one session of one daemon, spoken to over HTTP as every command does. It starts daemons, kills them, and
//! waits for what is to happen; every wait has an end, and Ctrl-C ends each of them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rekindle_client::content_text::value_text;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::{Client, read, start};
use rekindle_holder::client::inspect_all;
use rekindle_holder::identity::Identity;
use rekindle_lab::TempHome;
use rekindle_terminal::on_exit_signal;
use rekindle_wire::request::{AgentChoice, Content, NewAnswer, NewMessage, NewSession};
use rekindle_wire::view::SessionView;
use serde_json::{Value, json};

use super::timeline::Timeline;
use super::verdict::number_of;
use crate::ground::{is_alive, kill};

/// How long anything may take: everything here is over within a second unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the stage hears.
enum Input {
    /// Of the session, from the daemon that was followed as this one.
    Heard(u32, Heard),
    /// We are asked to leave.
    Signal,
}

/// Something new in the session.
pub(super) enum News {
    /// A record.
    Record(Value),
    /// The number of the newest word.
    Word(u64),
}

/// An agent and the process that keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldAgent {
    pub(super) agent: Identity,
    pub(super) holder: Identity,
}

impl HeldAgent {
    /// Tells whether both live.
    pub(super) fn lives(&self) -> bool {
        is_alive(&self.agent) && is_alive(&self.holder)
    }
}

/// A daemon that lives.
struct Supervisor {
    client: Client,
    process: Identity,
}

pub(super) struct Stage {
    pub(super) timeline: Timeline,
    pub(super) ground: TempHome,
    daemon: Option<Supervisor>,
    tell: Sender<Input>,
    inputs: Receiver<Input>,
    /// Which daemon is followed: what comes from those before counts no more.
    life: u32,
    session: String,
    /// The newest record that was heard.
    after: u64,
}

impl Stage {
    pub(super) fn new(timeline: Timeline, ground: TempHome) -> Result<Stage, Failure> {
        let (tell, inputs) = mpsc::channel();
        let signals = tell.clone();
        on_exit_signal(move || signals.send(Input::Signal).is_ok())
            .map_err(|error| Failure::failed("signals", error))?;
        let (session, daemon) = (String::new(), None);
        Ok(Stage { timeline, ground, daemon, tell, inputs, life: 0, session, after: 0 })
    }

    /// Returns the session's id.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Starts a daemon, and follows the session if there is one; returns its process and its epoch.
    pub(super) fn start_daemon(&mut self) -> Result<(i32, u64), Failure> {
        let home = self.ground.home();
        let place = start::start_waiting(&home, &[], &[("XDG_RUNTIME_DIR", self.ground.runtime())])?;
        let unknown =
            || Failure::failed("demo", anyhow::anyhow!("the daemon does not say which process it is"));
        let process = place.process.clone().ok_or_else(unknown)?;
        let told = (process.pid, place.epoch);
        self.daemon = Some(Supervisor { client: Client::at(&home, place)?, process });
        if !self.session.is_empty() {
            self.follow()?;
        }
        Ok(told)
    }

    /// Kills the daemon without a word; returns the process that is gone.
    pub(super) fn kill_daemon(&mut self) -> Result<i32, Failure> {
        self.life += 1;
        let daemon = self.daemon.take().ok_or_else(nobody)?;
        killed(&daemon.process, "the daemon")
    }

    /// Asks the daemon to end every agent and itself; returns its process.
    pub(super) fn dismiss(&mut self) -> Result<Identity, Failure> {
        self.life += 1;
        let daemon = self.daemon.take().ok_or_else(nobody)?;
        daemon.client.post("/api/shutdown", &json!({"agents": true}))?;
        Ok(daemon.process)
    }

    /// Makes the session with its first prompt.
    pub(super) fn create(&mut self, agent: &[String], prompt: &str) -> Result<(), Failure> {
        let body = NewSession {
            title: Some("A demonstration".into()),
            prompt: Some(Content::text(prompt)),
            ..NewSession::new(
                self.ground.at("work").to_string_lossy().into_owned(),
                AgentChoice::Command { profile: "acp".into(), command: agent.to_vec() },
            )
        };
        let session: SessionView = read(&self.client()?.post("/api/sessions", &body)?)?;
        self.session = session.id.to_string();
        self.follow()
    }

    /// Says something to the session's agent.
    pub(super) fn send(&mut self, prompt: &str) -> Result<(), Failure> {
        let path = format!("/api/sessions/{}/messages", self.session);
        self.client()?.post(&path, &NewMessage::new(Content::text(prompt))).map(drop)
    }

    /// Answers a wait.
    pub(super) fn answer(&mut self, wait: &str, option: &str) -> Result<(), Failure> {
        let path = format!("/api/waits/{wait}/answer");
        self.client()?.post(&path, &NewAnswer::option(option)).map(drop)
    }

    /// Returns what the daemon says of the session.
    pub(super) fn show(&self) -> Result<SessionView, Failure> {
        self.client()?.get(&format!("/api/sessions/{}", self.session))
    }

    /// Returns the agent and its holder, from the holder's own directory: nobody needs a daemon for that.
    pub(super) fn pair(&self) -> Result<HeldAgent, Failure> {
        let seen = inspect_all(&self.ground.at("home/holders")).unwrap_or_default();
        let pairs = seen.iter().filter_map(|one| {
            let status = one.status.there()?;
            Some(HeldAgent { agent: status.agent.clone()?, holder: status.holder.clone() })
        });
        pairs.into_iter().find(HeldAgent::lives).ok_or_else(|| vain("an agent that lives"))
    }

    /// Waits for a record of one of these kinds.
    pub(super) fn record(&mut self, kinds: &[&str]) -> Result<Value, Failure> {
        self.until(&kinds.join(" or "), |news| match news {
            News::Record(record) if kinds.iter().any(|kind| record["kind"] == *kind) => Some(record.clone()),
            _ => None,
        })
    }

    /// Waits until so many words were heard; returns the number of the newest.
    pub(super) fn words(&mut self, count: u64) -> Result<u64, Failure> {
        self.until(&format!("word {count}"), |news| match news {
            News::Word(number) if *number >= count => Some(*number),
            _ => None,
        })
    }

    /// Waits until something is found in what is new.
    pub(super) fn until<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&News) -> Option<T>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = match self.inputs.recv_timeout(left) {
                Ok(Input::Signal) => return Err(interrupted()),
                Ok(Input::Heard(life, _)) if life != self.life => continue,
                Ok(Input::Heard(_, heard)) => heard,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(vain(what)),
            };
            if let Some(news) = self.understand(heard)?
                && let Some(found) = pick(&news)
            {
                return Ok(found);
            }
        }
    }

    fn understand(&mut self, heard: Heard) -> Result<Option<News>, Failure> {
        let broken =
            |why: &str| Failure::failed("demo", anyhow::anyhow!("while following the session: {why}"));
        match heard {
            Heard::Record(line) => {
                let record: Value = read(line.as_bytes())?;
                self.after = record["seq"].as_u64().unwrap_or(self.after);
                if record["kind"] == "run.failed" {
                    return Err(broken(&format!("its run failed: {}", value_text(&record["error"]))));
                }
                Ok(Some(News::Record(record)))
            }
            Heard::Words(words) => {
                let number = words.text.split_whitespace().rev().find_map(number_of);
                if number.is_some() {
                    self.timeline.stream(&words.text)?;
                }
                Ok(number.map(News::Word))
            }
            Heard::Back { .. } | Heard::Pending(_) => Ok(None),
            Heard::Away => {
                let lives = self.daemon.as_ref().is_some_and(|daemon| is_alive(&daemon.process));
                if lives { self.follow().map(|()| None) } else { Err(broken("the daemon died by itself")) }
            }
            Heard::Reset { .. } => Err(broken("the log ends earlier than what was heard of it")),
            Heard::Deleted => Err(broken("it was removed")),
            Heard::Over(failure) => Err(failure),
        }
    }

    /// Follows the session, at this daemon only: whoever comes next is started by the stage.
    fn follow(&mut self) -> Result<(), Failure> {
        self.life += 1;
        let (life, tell) = (self.life, self.tell.clone());
        let target = self.client()?.target().clone();
        let of = Followed::Session(self.session.clone());
        let follow = Follow { target, of, after: self.after, attended: false };
        follow.begin(move |heard| {
            let goes_on = !matches!(heard, Heard::Away);
            tell.send(Input::Heard(life, heard)).is_ok() && goes_on
        });
        Ok(())
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.daemon.as_ref().map(|daemon| &daemon.client).ok_or_else(nobody)
    }
}

fn nobody() -> Failure {
    Failure::no_daemon("no daemon runs at this point of the demonstration")
}

/// Kills exactly this process; returns its pid.
pub(super) fn killed(process: &Identity, who: &str) -> Result<i32, Failure> {
    if kill(process) {
        return Ok(process.pid);
    }
    let message = format!("{who} (process {}) was not there to be killed, or does not die", process.pid);
    Err(Failure::failed("demo", anyhow::Error::msg(message)))
}

fn vain(what: &str) -> Failure {
    Failure::failed("demo", anyhow::anyhow!("waited in vain for {what}"))
}

fn interrupted() -> Failure {
    let error = anyhow::anyhow!("the demonstration was interrupted");
    Failure::failed("interrupted", error).exit_with(Exit::Detached)
}

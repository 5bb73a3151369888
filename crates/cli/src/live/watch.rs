//! Watching a session until what was asked is done: shows what happens, asks the person at the terminal, and knows
//! with which exit code to end. Without a terminal nothing here waits for anyone.

use std::io::Write;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rekindle_domain::event::ResumePolicy;
use rekindle_store::blobs::Blobs;
use serde_json::json;

use super::diff::Styled;
use super::end::End;
use super::keys::{Pressed, Terminal, hear_signals};
use super::picture::Picture;
use super::piece::Piece;
use super::questions::{Questions, Said, chosen, how_to_answer};
use super::screen::Screen;
use crate::client::follow::{Follow, Heard};
use crate::client::{Client, wire};
use crate::failure::{Exit, Failure};
use crate::output::{BOLD, COURSE, DIM, WARN};
use crate::sanitise;

/// A question is put when nothing else has come for this long: one from the past is answered in the next record.
const SETTLED: Duration = Duration::from_millis(60);

/// Without a terminal a wait must stay open this long: a policy of the session may answer it at once.
const UNANSWERED: Duration = Duration::from_millis(500);

/// How often it is looked whether an interrupted session goes on, and for how long.
const LOOK: Duration = Duration::from_millis(500);
const GOES_ON: Duration = Duration::from_secs(60);

/// What is watched.
pub(crate) struct Watch<'a> {
    /// The daemon.
    pub(crate) client: &'a Client,
    /// The home.
    pub(crate) home: std::path::PathBuf,
    /// Large payloads.
    pub(crate) blobs: Blobs,
    /// The session.
    pub(crate) session: String,
    /// The record behind which to begin.
    pub(crate) after: u64,
    /// When it is over.
    pub(crate) goal: Goal,
    /// Print records instead of text.
    pub(crate) json: bool,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The end of this run.
    Run(String),
    /// The end of the run that a message begins.
    Message(String),
    /// The end of the next run.
    Next,
}

enum Input {
    Heard(Heard),
    Pressed(Pressed),
    Signal,
}

/// Watches; returns how it ended.
pub(crate) fn watch(watch: Watch<'_>) -> Result<Exit, Failure> {
    let (tell, inputs) = mpsc::channel();
    let follow = Follow {
        home: watch.home.clone(),
        place: watch.client.place().clone(),
        session: watch.session.clone(),
        after: watch.after,
    };
    let heard = tell.clone();
    follow.begin(move |news| heard.send(Input::Heard(news)).is_ok());
    let signals = tell.clone();
    hear_signals(move || signals.send(Input::Signal).is_ok())
        .map_err(|error| Failure::failed("signals", error))?;
    let terminal = if watch.json { None } else { take_terminal(tell) };
    let mut watching = Watching {
        picture: Picture::new(watch.blobs.clone()),
        screen: Screen::ours(),
        interactive: terminal.is_some(),
        questions: Questions::default(),
        run: None,
        cut: None,
        watch,
    };
    let exit = watching.until_over(&inputs);
    let fresh = watching.screen.fresh_line();
    // The terminal is given back before anything else is said.
    drop(terminal);
    fresh?;
    exit
}

fn take_terminal(tell: Sender<Input>) -> Option<Terminal> {
    Terminal::take(move |pressed| tell.send(Input::Pressed(pressed)).is_ok())
}

struct Watching<'a> {
    watch: Watch<'a>,
    picture: Picture,
    screen: Screen<std::io::Stdout, anstream::AutoStream<std::io::Stderr>>,
    interactive: bool,
    questions: Questions,
    /// The run that is watched, once it began.
    run: Option<String>,
    /// Since when it is interrupted, and when that was last looked at.
    cut: Option<(Instant, Instant)>,
}

impl Watching<'_> {
    fn until_over(&mut self, inputs: &Receiver<Input>) -> Result<Exit, Failure> {
        if let Goal::Run(run) = &self.watch.goal {
            self.run = Some(run.clone());
        }
        loop {
            let busy = self.questions.is_empty() && self.cut.is_none() && !self.picture.waits();
            let input = match inputs.recv_timeout(if busy { Duration::from_secs(3600) } else { SETTLED }) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Detached),
            };
            let over = match input {
                Some(Input::Heard(heard)) => self.heard(heard)?,
                Some(Input::Pressed(Pressed::Leave) | Input::Signal) => Some(self.leave()?),
                Some(Input::Pressed(pressed)) => self.pressed(pressed)?,
                None => self.settled()?,
            };
            if let Some(exit) = over {
                return Ok(exit);
            }
        }
    }

    fn heard(&mut self, heard: Heard) -> Result<Option<Exit>, Failure> {
        let pieces = match heard {
            Heard::Record(line) => {
                if self.watch.json {
                    print_json(&line)?;
                }
                self.picture.record(&line)
            }
            Heard::Words(words) if self.watch.json => {
                let delta = json!({"message_id": words.message_id, "kind": words.kind, "text": words.text});
                print_json(&json!({ "delta": delta }).to_string())?;
                return Ok(None);
            }
            Heard::Words(words) => self.picture.words(words),
            Heard::Away => {
                return self.say(WARN, "the daemon went away; the agent works on, waiting for the next one");
            }
            Heard::Back { away } => {
                self.picture.missed();
                return if away { self.say(COURSE, "a daemon is there again") } else { Ok(None) };
            }
            Heard::Reset { last_seq } => {
                self.picture.missed();
                let text =
                    format!("the end of the log was lost in a crash; it goes on behind record {last_seq}");
                return self.say(WARN, &text);
            }
            Heard::Deleted => {
                self.say(WARN, "the session was removed")?;
                return Ok(Some(Exit::Failed));
            }
            Heard::Over(failure) => return Err(failure),
        };
        self.take_all(pieces)
    }

    fn take_all(&mut self, pieces: Vec<Piece>) -> Result<Option<Exit>, Failure> {
        for piece in pieces {
            if let Some(exit) = self.take(piece)? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    /// Shows a piece, and sees what it means.
    fn take(&mut self, piece: Piece) -> Result<Option<Exit>, Failure> {
        if !self.watch.json {
            self.screen.show(&piece)?;
        }
        match piece {
            Piece::Asked(ask) => self.questions.add(ask),
            Piece::AskOver(over) => {
                if let Some(ask) = self.questions.over(&over.wait_id) {
                    return self.say(DIM, &format!("answered elsewhere: {}", over.text(&ask)));
                }
            }
            Piece::Begun { run, message, continues } => {
                let ours = match &self.watch.goal {
                    Goal::Next => self.run.is_none(),
                    Goal::Message(wanted) => message.as_ref() == Some(wanted),
                    Goal::Run(wanted) => *wanted == run,
                };
                if ours || (continues.is_some() && continues == self.run) {
                    (self.run, self.cut) = (Some(run), None);
                }
            }
            Piece::Ended(run, end) if self.run.as_ref() == Some(&run) => {
                self.questions.clear();
                if end == End::Interrupted && self.picture.policy.unwrap_or_default() == ResumePolicy::Auto {
                    let now = Instant::now();
                    self.cut = Some((now, now));
                    return Ok(None);
                }
                if end == End::Interrupted {
                    self.how_to_resume()?;
                }
                return Ok(Some(end.exit()));
            }
            Piece::Dropped(message) if self.watch.goal == Goal::Message(message.clone()) => {
                self.say(WARN, "the message was taken out of the queue")?;
                return Ok(Some(Exit::Failed));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Nothing more has come: questions are put, and what does not go on is left.
    fn settled(&mut self) -> Result<Option<Exit>, Failure> {
        let waited = self.picture.settled();
        if !waited.is_empty() {
            return self.take_all(waited);
        }
        if let Some((since, looked)) = self.cut {
            return if looked.elapsed() < LOOK { Ok(None) } else { self.look_whether_it_goes_on(since) };
        }
        if self.interactive {
            return self.put_question();
        }
        let Some((ask, since)) = self.questions.first() else { return Ok(None) };
        if since.elapsed() < UNANSWERED {
            return Ok(None);
        }
        if !self.watch.json {
            let mut lines = ask.lines.clone();
            lines.extend(ask.options());
            lines.push((PLAIN_NEXT, how_to_answer(ask)));
            lines.push((DIM, format!("then: rekindle attach {}", self.watch.session)));
            for line in &lines {
                self.screen.line(line)?;
            }
        }
        Ok(Some(Exit::Waiting))
    }

    /// Puts the oldest question to the person.
    fn put_question(&mut self) -> Result<Option<Exit>, Failure> {
        let Some((ask, new)) = self.questions.put_first() else { return Ok(None) };
        if new {
            for line in ask.lines.iter().chain(&ask.options()) {
                self.screen.line(line)?;
            }
        }
        if !self.screen.has_prompt() {
            self.screen.prompt(&self.questions.prompt(&ask))?;
        }
        Ok(None)
    }

    fn pressed(&mut self, pressed: Pressed) -> Result<Option<Exit>, Failure> {
        if pressed == Pressed::Cancel {
            let path = format!("/api/sessions/{}/cancel", self.watch.session);
            return match self.watch.client.post(&path, &json!({})) {
                Ok(_) => Ok(None),
                Err(failure) => self.say(WARN, &format!("not cancelled: {}", failure.message())),
            };
        }
        let (ask, answer) = match self.questions.pressed(pressed) {
            Said::Nothing => return Ok(None),
            Said::Typed(ask) => {
                self.screen.prompt(&self.questions.prompt(&ask))?;
                return Ok(None);
            }
            Said::Answer(ask, answer) => (ask, answer),
        };
        match self.watch.client.post(&format!("/api/waits/{}/answer", ask.wait_id), &answer) {
            Ok(_) => {
                // It is over for us; the record that says so need not be told again.
                self.questions.over(&ask.wait_id);
                self.say(DIM, &format!("answered: {}", chosen(&ask, &answer)))
            }
            // The record that says who was faster, and with what, is on its way.
            Err(failure) if failure.is_too_late() => {
                let text = format!("too late: your answer ({}) was not used", chosen(&ask, &answer));
                self.say(WARN, &text)
            }
            Err(failure) => self.say(WARN, &format!("not answered: {}", failure.message())),
        }
    }

    /// Looks whether an interrupted session goes on by itself.
    fn look_whether_it_goes_on(&mut self, since: Instant) -> Result<Option<Exit>, Failure> {
        self.cut = Some((since, Instant::now()));
        let path = format!("/api/sessions/{}", self.watch.session);
        // A daemon that is just being replaced is asked again.
        let Ok(session) = self.watch.client.get::<wire::Session>(&path) else { return Ok(None) };
        let over = match &session.held {
            Some(why) => Some(format!("it does not go on by itself: {}", sanitise::line(why))),
            None if since.elapsed() > GOES_ON => Some("it does not go on by itself".to_owned()),
            None => None,
        };
        let Some(why) = over else { return Ok(None) };
        self.say(WARN, &why)?;
        self.how_to_resume()?;
        Ok(Some(Exit::Interrupted))
    }

    fn how_to_resume(&mut self) -> Result<(), Failure> {
        let text = format!("go on with: rekindle resume {}", self.watch.session);
        self.say(DIM, &text).map(drop)
    }

    fn leave(&mut self) -> Result<Exit, Failure> {
        let text =
            format!("left; the agent works on. Come back with: rekindle attach {}", self.watch.session);
        self.say(DIM, &text)?;
        Ok(Exit::Detached)
    }

    fn say(&mut self, style: clap::builder::styling::Style, text: &str) -> Result<Option<Exit>, Failure> {
        let line: Styled = (style, text.to_owned());
        self.screen.line(&line)?;
        Ok(None)
    }
}

/// How what to do next looks.
const PLAIN_NEXT: clap::builder::styling::Style = BOLD;

fn print_json(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

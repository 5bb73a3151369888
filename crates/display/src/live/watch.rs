//! Watching a session until what was asked is done: shows what happens, asks the person at the terminal, and knows
//! with which exit code to end. Without a terminal nothing here waits for anyone.

mod asking;

use std::io::Write;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anstyle::Style;
use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::payloads::Payloads;
use rekindle_client::{Client, Exit, Failure};
use rekindle_terminal::on_exit_signal;
use rekindle_terminal::output::{self, COURSE, DIM, WARN};
use rekindle_terminal::sanitise;
use rekindle_wire::view::SessionView;
use serde_json::json;

use super::diff::Styled;
use super::goal::{Aim, Goal, Meaning};
use super::keys::{Pressed, take_keys};
use super::picture::Picture;
use super::piece::Piece;
use super::questions::Questions;
use super::run_end::RunEnd;
use super::screen::Screen;
use crate::hints::attach;
use crate::status_text::{next, silent_command};

/// A question is put when nothing else has come for this long: one from the past is answered in the next record.
const SETTLED: Duration = Duration::from_millis(60);

/// How long a command may say nothing before it is told what it may be waiting for.
const SILENT: Duration = Duration::from_secs(10);

enum Input {
    Heard(Heard),
    Pressed(Pressed),
    Signal,
}

/// What is watched, and how it is shown.
pub struct Watch<'a> {
    /// The daemon.
    pub client: &'a Client,
    /// The session.
    pub session: String,
    /// The record behind which it begins.
    pub after: u64,
    /// What is waited for.
    pub goal: Goal,
    /// Print JSON.
    pub json: bool,
    /// The payloads that are kept apart.
    pub payloads: Payloads,
}

/// Watches a session from behind a record until what was asked is done; returns how it ended.
pub fn watch(watch: Watch<'_>) -> Result<Exit, Failure> {
    let Watch { client, session, after, goal, json, payloads } = watch;
    let (tell, inputs) = mpsc::channel();
    let signals = tell.clone();
    on_exit_signal(move || signals.send(Input::Signal).is_ok())
        .map_err(|error| Failure::failed("signals", error))?;
    let pressed = tell.clone();
    let pressed = move |key| pressed.send(Input::Pressed(key)).is_ok();
    let terminal = if json { None } else { take_keys(pressed) };
    // Whoever has a terminal here is not told by notifications what it shows.
    let attended = terminal.is_some();
    let of = Followed::Session(session.clone());
    let follow = Follow { target: client.target().clone(), of, after, attended };
    follow.begin(move |news| tell.send(Input::Heard(news)).is_ok());
    let mut watching = Watching {
        picture: Picture::new(payloads),
        screen: Screen::ours(),
        interactive: terminal.is_some(),
        questions: Questions::default(),
        aim: Aim::new(goal),
        has_spoken: false,
        json,
        client,
        session,
    };
    let exit = watching.run(&inputs);
    let fresh = watching.screen.fresh_line();
    // The terminal is given back before anything else is said.
    drop(terminal);
    fresh?;
    exit
}

struct Watching<'a> {
    json: bool,
    client: &'a Client,
    session: String,
    picture: Picture,
    screen: Screen<std::io::Stdout, anstream::AutoStream<std::io::Stderr>>,
    interactive: bool,
    questions: Questions,
    aim: Aim,
    /// Something of an answer came, or that nothing did was told.
    has_spoken: bool,
}

impl Watching<'_> {
    fn run(&mut self, inputs: &Receiver<Input>) -> Result<Exit, Failure> {
        loop {
            let busy = self.questions.is_empty() && !self.aim.is_cut() && !self.picture.waits();
            let within = match (busy, self.has_spoken) {
                (false, _) => SETTLED,
                (true, false) => SILENT,
                (true, true) => Duration::from_secs(3600),
            };
            let input = match inputs.recv_timeout(within) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(Exit::Detached),
            };
            let over = match input {
                Some(Input::Heard(heard)) => self.handle_event(heard)?,
                Some(Input::Pressed(Pressed::Leave) | Input::Signal) => Some(self.leave()?),
                Some(Input::Pressed(pressed)) => self.pressed(pressed)?,
                None => self.handle_silence()?,
            };
            if let Some(exit) = over {
                return Ok(exit);
            }
        }
    }

    fn handle_event(&mut self, heard: Heard) -> Result<Option<Exit>, Failure> {
        let pieces = match heard {
            Heard::Record(line) => {
                if self.json {
                    print_json(&line)?;
                }
                self.picture.record(&line)
            }
            Heard::Words(words) if self.json => {
                let delta = json!({"message_id": words.message_id, "kind": words.kind, "text": words.text});
                print_json(&json!({ "delta": delta }).to_string())?;
                return Ok(None);
            }
            Heard::Words(words) => self.picture.words(words),
            // Of runs of pipelines only.
            Heard::Pending(_) => return Ok(None),
            Heard::Away => {
                let text = "the daemon went away; the agent keeps working, waiting for the next one";
                return self.print_line(WARN, text);
            }
            Heard::Back { away } => {
                self.picture.miss_words();
                return if away { self.print_line(COURSE, "a daemon is running again") } else { Ok(None) };
            }
            Heard::Reset { last_seq } => {
                self.picture.miss_words();
                let text =
                    format!("the end of the log was lost in a crash; it continues after record {last_seq}");
                return self.print_line(WARN, &text);
            }
            Heard::Deleted => {
                self.print_line(WARN, "the session was removed")?;
                return Ok(Some(Exit::Failed));
            }
            Heard::Over(failure) => return Err(failure),
        };
        self.handle_pieces(pieces)
    }

    fn handle_pieces(&mut self, pieces: Vec<Piece>) -> Result<Option<Exit>, Failure> {
        for piece in pieces {
            if let Some(exit) = self.handle_piece(piece)? {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    /// Shows a piece, and sees what it means.
    fn handle_piece(&mut self, piece: Piece) -> Result<Option<Exit>, Failure> {
        // Whoever takes the answer from stdout wants that of the message, and of none before it.
        let piece = if self.aim.is_before() { piece.aside() } else { piece };
        if !self.json {
            self.screen.show(&piece)?;
        }
        match piece {
            Piece::Answer(_) | Piece::Thought(_) | Piece::Tool(..) => self.has_spoken = true,
            Piece::Asked(ask) => self.questions.add(ask),
            Piece::AskOver(over) => {
                if let Some(ask) = self.questions.over(&over.wait_id) {
                    return self.print_line(DIM, &over.elsewhere(&ask));
                }
            }
            Piece::Begun { run, message, continues } => {
                self.aim.begun(run, message.as_deref(), continues.as_deref());
            }
            Piece::Ended(run, end) => return self.handle_run_end(&run, &end),
            Piece::Dropped(message) if self.aim.is_dropped(&message) => {
                self.print_line(WARN, "the message was taken out of the queue")?;
                return Ok(Some(Exit::Failed));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Sees what the end of a run means.
    fn handle_run_end(&mut self, run: &str, end: &RunEnd) -> Result<Option<Exit>, Failure> {
        let policy = self.picture.policy.unwrap_or_default();
        let meaning = self.aim.ended(run, end, policy, Instant::now());
        if meaning == Meaning::Nothing {
            return Ok(None);
        }
        self.questions = Questions::default();
        if meaning == Meaning::MayGoOn {
            return Ok(None);
        }
        if *end == RunEnd::Interrupted
            && let Some(session) = self.fetch_session()
        {
            self.print_hint(&next(&session))?;
        }
        if matches!(end, RunEnd::Completed { .. }) {
            self.hint_silent_command()?;
        }
        Ok(Some(end.exit()))
    }

    /// Tells of a command that says nothing what it may be; once.
    fn hint_silent_command(&mut self) -> Result<(), Failure> {
        if std::mem::replace(&mut self.has_spoken, true) || self.json {
            return Ok(());
        }
        if let Some(hint) = self.fetch_session().as_ref().and_then(silent_command) {
            self.print_line(DIM, hint)?;
        }
        Ok(())
    }

    /// Nothing more has come: questions are put, and what does not go on is left.
    fn handle_silence(&mut self) -> Result<Option<Exit>, Failure> {
        let waited = self.picture.rest();
        if !waited.is_empty() {
            return self.handle_pieces(waited);
        }
        if self.aim.is_cut() {
            let look = self.aim.is_check_due(Instant::now());
            return if look { self.check_auto_resume() } else { Ok(None) };
        }
        if self.questions.is_empty() {
            self.hint_silent_command()?;
            return Ok(None);
        }
        if self.interactive { self.ask_question() } else { self.print_question() }
    }

    /// Looks whether an interrupted session goes on by itself.
    fn check_auto_resume(&mut self) -> Result<Option<Exit>, Failure> {
        // A daemon that is just being replaced is asked again.
        let Some(session) = self.fetch_session() else { return Ok(None) };
        let over = match &session.held {
            Some(why) => Some(stays_text(&sanitise::line(why))),
            None if self.aim.is_lost(Instant::now()) => Some("it does not continue automatically".to_owned()),
            None => None,
        };
        let Some(why) = over else { return Ok(None) };
        self.print_line(WARN, &why)?;
        self.print_hint(&next(&session))?;
        Ok(Some(Exit::Interrupted))
    }

    /// Asks how the session stands.
    fn fetch_session(&self) -> Option<SessionView> {
        self.client.session(&self.session).ok()
    }

    fn leave(&mut self) -> Result<Exit, Failure> {
        let text = format!("left; the agent keeps working. Come back with: {}", attach(&self.session));
        self.print_hint(&text)?;
        Ok(Exit::Detached)
    }

    /// Says which command does what.
    fn print_hint(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.screen.hint(&(DIM, text.to_owned()))?)
    }

    fn print_line(&mut self, style: Style, text: &str) -> Result<Option<Exit>, Failure> {
        let line: Styled = (style, text.to_owned());
        self.screen.line(&line)?;
        Ok(None)
    }
}

/// Says that a session does not go on by itself, and why; once, if that says so too.
pub fn stays_text(why: &str) -> String {
    let why = why.strip_prefix("it does not continue automatically: ").unwrap_or(why);
    format!("it does not continue automatically: {why}")
}

fn print_json(line: &str) -> Result<(), Failure> {
    let mut out = output::verbatim();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use rekindle_domain::recovery::Held;

    use super::stays_text;

    #[test]
    fn that_a_session_does_not_go_on_is_said_once() {
        for held in [
            Held::Asks,
            Held::Never,
            Held::Uncertain,
            Held::Unanswered,
            Held::Budget,
            Held::TimedOut,
            Held::NoDirectory,
            Held::NoEnvironment,
        ] {
            let said = stays_text(held.words());
            assert!(said.starts_with("it does not continue automatically: "), "{said}");
            assert_eq!(said.matches("automatically").count(), 1, "{said}");
        }
    }
}

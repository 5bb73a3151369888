//! One turn of the loop: what the holder told and the agent wrote is taken in, what follows is said, what is safe is
//! acknowledged.

use std::time::Duration;

use rekindle_agent::connection::{Heartbeat, NextSetting, Phase};
use rekindle_agent::said::Failure;
use rekindle_domain::id::{RunId, WaitId};
use rekindle_holder::client::RequestError;
use rekindle_holder::wire::Event;

use super::LiveAgent;
use super::error::Result;
use crate::test_knobs::crash_point;
use crate::ticks;

/// A turn of reading takes no longer than this, however much there is: inputs, acknowledgements and people wait.
const TURN: Duration = Duration::from_millis(50);

/// What was read is acknowledged within this.
const ACKNOWLEDGE: Duration = Duration::from_millis(200);

/// What a turn of the loop brought.
#[derive(Debug, Default)]
pub struct Progress {
    /// Waits that were opened.
    pub waits: Vec<WaitId>,
    /// The run that ended.
    pub ended: Option<RunId>,
    /// The agent is gone: its end is recorded.
    pub exited: bool,
    /// The connection is gone, and with it maybe the holder: only its lock tells.
    pub lost: bool,
    /// The holder has told something, or written to its journal: it is at work.
    pub heard: bool,
    /// The newest sign of life that the agent gave beside what it said.
    pub heartbeat: Option<Heartbeat>,
    /// There is more to read than one turn takes.
    pub more: bool,
    /// The agent does not want to be greeted, or makes no session: why.
    pub refused: Option<Failure>,
}

/// What a holder has told.
enum News {
    None,
    Some,
    /// It has hung up.
    Gone,
}

impl LiveAgent {
    /// Returns what keeps the holder from reading the agent, if anything does.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Returns how many bytes of the journal have not been read.
    pub(crate) fn unread(&self) -> u64 {
        self.follower.unread().unwrap_or(0)
    }

    /// Returns how long to wait at most before the next [`LiveAgent::step`].
    pub fn patience(&self) -> Option<Duration> {
        let acknowledge = self.unacknowledged.map(|since| ACKNOWLEDGE.saturating_sub(ticks::since(since)));
        acknowledge.into_iter().chain(self.load_patience()).chain(self.replay_patience()).min()
    }

    /// Asks the holder for a sign of life; whatever it tells next is one.
    pub(crate) fn send_heartbeat(&mut self) -> Result<()> {
        unless_closed(self.control.as_mut().map(|control| control.beat()))
    }

    /// Tells whether the agent is at work, or about to be.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.connection.phase(), Phase::Ready | Phase::Exited)
    }

    /// Does everything that can be done without waiting.
    pub fn step(&mut self) -> Result<Progress> {
        if let Some(error) = self.unsendable.take() {
            return Err(error);
        }
        let mut progress = Progress::default();
        let begin = ticks::now();
        // Until a look brings nothing that was taken after the last word of ours: news may come together with an answer,
        // and nobody would be woken for these.
        loop {
            self.advance(&mut progress)?;
            self.close_input()?;
            // News before the journal: whatever they announce is there by then.
            let news = self.read_events()?;
            let read = self.read_journal(&mut progress)?;
            // While it is written, news may be read that nobody would be woken for.
            let spoke = self.acknowledge(progress.exited)?;
            self.end_stalled_load(read)?;
            progress.heard |= read || matches!(news, News::Some);
            match news {
                _ if progress.exited => break,
                News::None if !read && !spoke => break,
                News::Gone if !read => {
                    progress.lost = true;
                    break;
                }
                _ if ticks::since(begin) >= TURN => {
                    progress.more = true;
                    break;
                }
                _ => {}
            }
        }
        Ok(progress)
    }

    /// Takes in what the holder has told.
    fn read_events(&mut self) -> Result<News> {
        let Some(control) = &mut self.control else { return Ok(News::Gone) };
        let mut news = News::None;
        loop {
            match control.next_event() {
                Ok(Some(event)) => {
                    news = News::Some;
                    if let Event::Health(health) = event {
                        self.trouble = health.trouble;
                    }
                }
                Ok(None) => return Ok(news),
                Err(RequestError::Closed) => return Ok(News::Gone),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what there is, but no more than others can wait for; tells whether there was anything.
    fn read_journal(&mut self, progress: &mut Progress) -> Result<bool> {
        let (mut read, begin) = (false, ticks::now());
        while ticks::since(begin) < TURN
            && let Some(item) = self.follower.next_item()?
        {
            read = true;
            let taken = self.connection.take(&item, self.follower.unfinished());
            self.carry_out(taken, progress)?;
        }
        self.note_replay(read);
        Ok(read)
    }

    /// Does the next step towards a turn: greet, open, set, prompt.
    fn advance(&mut self, progress: &mut Progress) -> Result<()> {
        let opening = self.connection.in_flight().iter().any(|(_, request)| request.opens());
        match self.connection.phase() {
            Phase::Silent if self.input_seq == 0 => {
                let greeting = self.connection.profile().greet(1);
                greeting.map_or(Ok(()), |greeting| self.queue_and_send(greeting, None, None))
            }
            Phase::Greeted if !opening && !self.refused => {
                let how = self.how_to_open();
                let outgoing = self.connection.profile().open(self.input_seq + 1, how, &self.working_dir);
                outgoing.map_or(Ok(()), |outgoing| self.queue_and_send(outgoing, None, None))
            }
            Phase::Ready if self.is_replaying() => Ok(()),
            Phase::Ready => self.send_settings_and_prompt(progress),
            // Someone changed them while the agent works: the protocol allows it at any time.
            Phase::InTurn => match self.next_setting(None)? {
                NextSetting::Ask(setting) => self.send_setting(setting, None),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Acknowledges what is safe, when it is time; tells whether anything was said to the holder.
    fn acknowledge(&mut self, now: bool) -> Result<bool> {
        let Some(since) = self.unacknowledged else { return Ok(false) };
        if !now && ticks::since(since) < ACKNOWLEDGE {
            return Ok(false);
        }
        self.store.sync()?;
        crash_point("live.acknowledge.before");
        self.unacknowledged = None;
        if self.low > 1 {
            // One that is gone needs no acknowledgement any more.
            unless_closed(self.control.as_mut().map(|control| control.ack(self.low - 1)))?;
        }
        crash_point("live.acknowledge.after");
        Ok(self.low > 1)
    }
}

/// A holder that is gone does not fail us: its lock tells what became of it.
fn unless_closed(outcome: Option<Result<(), RequestError>>) -> Result<()> {
    match outcome {
        Some(Err(RequestError::Closed)) | None => Ok(()),
        Some(outcome) => Ok(outcome?),
    }
}

//! Following a session, or a run of a pipeline, on a thread of its own: what the daemon tells is handed on, and when it goes away the stream is
//! taken up again where it was, at its successor.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use rekindle_wire::event::{Delta, PipelinePending, Reset};
use rekindle_wire::view::LogDamage;

use super::http::{self, Ask};
use super::sse::{self, Event};
use super::target::Target;
use crate::failure::Failure;

/// How long the daemon may be away before following ends.
const AWAY: Duration = Duration::from_secs(30);

/// How long nothing may be heard from a daemon elsewhere: it says something every 15 s.
const SILENCE: Duration = Duration::from_secs(50);

/// Pauses between two attempts to come back: doubled from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What is heard of it.
#[derive(Debug)]
pub enum Heard {
    /// A record: its line.
    Record(String),
    /// Words that are in no record yet.
    Words(Delta),
    /// What the step of a run of a pipeline waits for is another thing.
    Pending(Box<PipelinePending>),
    /// The daemon went away.
    Away,
    /// The stream was taken up again: words may have been missed, records not.
    Back {
        /// It was said before that the daemon went away.
        away: bool,
    },
    /// The log ends earlier than what was heard: a power cut took the rest.
    Reset {
        /// Its newest record.
        last_seq: u64,
    },
    /// It was removed.
    Deleted,
    /// Nothing more will be heard.
    Over(Failure),
}

/// Target to follow, from where.
#[derive(Debug, Clone)]
pub struct Follow {
    /// The daemon.
    pub target: Target,
    /// What is followed.
    pub of: Followed,
    /// The record behind which to begin.
    pub after: u64,
    /// A person looks at it.
    pub attended: bool,
}

/// What is followed.
#[derive(Debug, Clone)]
pub enum Followed {
    /// A session, by its id.
    Session(String),
    /// A run of a pipeline, by its name.
    Pipeline(String),
}

impl Followed {
    fn name(&self) -> &str {
        match self {
            Followed::Session(name) | Followed::Pipeline(name) => name,
        }
    }

    fn path(&self) -> String {
        match self {
            Followed::Session(id) => format!("/api/sessions/{}/events", http::escape(id)),
            Followed::Pipeline(name) => format!("/api/pipelines/{}/events", http::escape(name)),
        }
    }
}

/// How a stream ended.
enum Ended {
    /// The daemon went away.
    Cut,
    /// The daemon lives and wants us to begin again.
    Again,
    /// Whoever listens has heard enough, or there is nothing more to hear.
    Done,
}

impl Follow {
    /// Begins to follow; `tell` says whether anyone still listens.
    pub fn begin(self, tell: impl FnMut(Heard) -> bool + Send + 'static) {
        self.spawn(false, tell);
    }

    /// Begins to follow what was given up because the daemon was away for too long: that it is there again is told.
    pub fn begin_again(self, tell: impl FnMut(Heard) -> bool + Send + 'static) {
        self.spawn(true, tell);
    }

    fn spawn(self, again: bool, mut tell: impl FnMut(Heard) -> bool + Send + 'static) {
        std::thread::spawn(move || {
            if let Err(failure) = self.run(again, &mut tell) {
                tell(Heard::Over(failure));
            }
        });
    }

    fn run(mut self, again: bool, tell: &mut impl FnMut(Heard) -> bool) -> Result<(), Failure> {
        let runtime = http::runtime().map_err(|error| Failure::failed("runtime", error))?;
        let (after, attended) = (self.after, self.attended);
        let mut stream = Stream { after, attended, away: again, again, ..Stream::default() };
        let mut since = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match runtime.block_on(stream.read(&self.target, &self.of, tell)) {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::Again) => continue,
                Ok(Ended::Cut) | Err(None) => {}
                Err(Some(failure)) => return Err(failure),
            }
            if std::mem::take(&mut stream.heard) {
                (since, pause) = (Instant::now(), FIRST_PAUSE);
            }
            if !std::mem::replace(&mut stream.away, true) && !tell(Heard::Away) {
                return Ok(());
            }
            let left = AWAY.saturating_sub(since.elapsed());
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LAST_PAUSE);
            if left.is_zero() {
                return Err(self.target.lost());
            }
            self.target = self.target.successor(left)?;
        }
    }
}

/// Where a stream stands.
#[derive(Default)]
struct Stream {
    last_id: Option<String>,
    after: u64,
    attended: bool,
    /// Something was heard since it was taken up.
    heard: bool,
    /// It was said that the daemon is away.
    away: bool,
    /// It was read before.
    again: bool,
}

impl Stream {
    /// Reads the stream to its end; a failure without words is worth another attempt.
    async fn read(
        &mut self,
        target: &Target,
        of: &Followed,
        tell: &mut impl FnMut(Heard) -> bool,
    ) -> Result<Ended, Option<Failure>> {
        let attended = if self.attended { "&attended=true" } else { "" };
        let path = format!("{}?after={}{attended}", of.path(), self.after);
        let last_id = self.last_id.clone();
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last_id.as_deref().map(|id| ("last-event-id", id)));
        let ask = Ask { method: "GET", path, headers, ..Ask::default() };
        let response = match http::send(target, &ask).await {
            Ok(response) => response,
            Err(lost) if lost.is_transient() => return Err(None),
            Err(lost) => return Err(lost.failure()),
        };
        let status = response.status().as_u16();
        let body = response.into_body();
        if status != 200 {
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            // A daemon that is only just up, or about to leave, may say that it cannot yet, or any more.
            return Err((status < 500).then(|| Failure::refused(status, &body)));
        }
        let away = std::mem::take(&mut self.away);
        if std::mem::replace(&mut self.again, true) && !tell(Heard::Back { away }) {
            return Ok(Ended::Done);
        }
        // A network that was cut says nothing: from elsewhere at least a comment comes now and then.
        let silence = matches!(target, Target::Remote { .. }).then_some(SILENCE);
        let ended = sse::each_event(body, silence, |event| {
            self.heard = true;
            self.emit(of, event, tell)
        });
        Ok(ended.await.unwrap_or(Ended::Cut))
    }

    /// Hands an event on; tells whether the stream is over.
    fn emit(&mut self, of: &Followed, event: Event, tell: &mut impl FnMut(Heard) -> bool) -> Option<Ended> {
        let heard = match event.name.as_str() {
            "delta" => Heard::Words(serde_json::from_str(&event.data).ok()?),
            "pending" if matches!(of, Followed::Pipeline(_)) => {
                Heard::Pending(Box::new(serde_json::from_str(&event.data).ok()?))
            }
            "too_slow" => return Some(Ended::Again),
            "damaged" => {
                let LogDamage { offset, detail } = serde_json::from_str(&event.data).unwrap_or_default();
                tell(Heard::Over(Failure::damaged(of.name(), format_args!("byte {offset}"), &detail)));
                return Some(Ended::Done);
            }
            "deleted" => {
                tell(Heard::Deleted);
                return Some(Ended::Done);
            }
            "reset" => {
                let last_seq = serde_json::from_str(&event.data).map_or(0, |reset: Reset| reset.last_seq);
                (self.last_id, self.after) = (None, last_seq);
                return Some(if tell(Heard::Reset { last_seq }) { Ended::Again } else { Ended::Done });
            }
            _ => {
                let id = event.id?;
                let seq = id.split('.').next().and_then(|seq| seq.parse().ok());
                self.after = seq.unwrap_or(self.after);
                self.last_id = Some(id);
                Heard::Record(event.data)
            }
        };
        (!tell(heard)).then_some(Ended::Done)
    }
}

//! What a supervisor asks a connection: where it stands, what is open, what to send.

use rekindle_domain::event::{Raw, UncertainTool};
use rekindle_domain::id::{HolderId, RunId};

use super::{Ask, Connection, Delta, Phase, RequestKey};
use crate::acp::SessionOptions;
use crate::known::Quirk;
use crate::profile::{Answer, AnswerError, Capabilities, Outgoing, Profile};
use crate::said::{Request, Voice};

impl Connection {
    /// Returns the holder.
    pub fn holder(&self) -> HolderId {
        self.holder
    }

    /// Returns the profile, which writes what is to be sent.
    pub fn profile(&self) -> &dyn Profile {
        self.profile.as_ref()
    }

    /// Tells where the connection stands. A request counts from when it is in the log.
    pub fn phase(&self) -> Phase {
        if self.facts.exited {
            return Phase::Exited;
        }
        match (&self.facts.ready, &self.partial.greeting) {
            (Some(_), _) if self.turn().is_some() => Phase::InTurn,
            (Some(_), _) => Phase::Ready,
            (None, Some(_)) if self.facts.opening().is_some() => Phase::Opening,
            (None, Some(_)) => Phase::Greeted,
            (None, None) => Phase::Silent,
        }
    }

    /// Returns our requests that are not answered yet, by number; settings are not among them.
    pub fn in_flight(&self) -> Vec<(u64, Request)> {
        let open = |request: Request| match request {
            Request::Greet => self.facts.ready.is_none() && self.partial.greeting.is_none(),
            Request::New | Request::Load | Request::Resume | Request::Fork => self.facts.ready.is_none(),
            Request::Prompt => true,
            Request::Set | Request::Other => false,
        };
        let inputs = self.facts.inputs.iter().filter(|(_, input)| !input.over);
        inputs
            .map(|(number, input)| (*number, input.sent.request))
            .filter(|(_, request)| open(*request))
            .collect()
    }

    /// Tells whether the agent is known for something that others do not do.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.has(quirk)
    }

    /// Returns the run that is going on.
    pub fn open_run(&self) -> Option<RunId> {
        self.run()
    }

    /// Returns the requests of the agent's that nobody has answered, oldest first.
    pub fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.facts.asks.values()
    }

    /// Returns the tool calls that have begun and not ended.
    pub fn open_tools(&self) -> &[UncertainTool] {
        &self.facts.tools
    }

    /// Returns the agent's own session id.
    pub fn cursor(&self) -> Option<&str> {
        self.facts.ready.as_ref().and_then(|ready| ready.cursor.as_deref())
    }

    /// Returns what the agent said of itself, as soon as it was greeted.
    pub fn info(&self) -> Option<&Raw<'static>> {
        let ready = self.facts.ready.as_ref().map(|ready| ready.info.as_ref());
        ready.unwrap_or_else(|| self.partial.greeting.as_ref().and_then(|greeting| greeting.info.as_ref()))
    }

    /// Returns what can be done with the agent, as soon as it was greeted.
    pub fn capabilities(&self) -> Capabilities {
        let ready = self.facts.ready.as_ref().map(|ready| ready.capabilities.as_ref());
        let greeting = self.partial.greeting.as_ref();
        let raw = ready.unwrap_or_else(|| greeting.and_then(|greeting| greeting.capabilities.as_ref()));
        self.profile.capabilities(raw.map(Raw::as_json))
    }

    /// Returns how one signs in, while there is no session yet.
    pub fn auth_methods(&self) -> Option<&Raw<'static>> {
        self.partial.greeting.as_ref().and_then(|greeting| greeting.auth_methods.as_ref())
    }

    /// Returns the modes and options that the agent's session offered.
    pub fn options(&self) -> Option<&SessionOptions> {
        self.facts.options.as_ref()
    }

    /// Returns what has been said of a message that is not in the log yet: for a subscriber that comes late.
    pub fn half_message(&self) -> Option<Delta> {
        let half = self.partial.half.as_ref().filter(|half| half.voice != Voice::Summary)?;
        let (message_id, voice) = (half.id, half.voice);
        Some(Delta { run_id: self.run(), message_id, voice, at: 0, text: half.text(), said_at: self.time })
    }

    /// Returns the answer to a request of the agent's.
    pub fn answer(&self, key: RequestKey, answer: Answer<'_>) -> Option<Result<Outgoing, AnswerError>> {
        let ask = self.facts.asks.get(&key.seq).filter(|ask| ask.key == key)?;
        Some(self.profile.answer(&ask.request, answer))
    }

    /// Returns all that cancels a turn, in order: `cancelled` to every open request, then the cancel itself.
    pub fn cancel(&self) -> Vec<(Option<RequestKey>, Outgoing)> {
        let answer =
            |ask: &Ask| Some((Some(ask.key), self.profile.answer(&ask.request, Answer::Cancelled).ok()?));
        let cancel = self.profile.cancel(self.cursor()).map(|out| (None, out));
        self.asks().filter_map(answer).chain(cancel).collect()
    }
}

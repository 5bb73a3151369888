//! Setting up: an agent is greeted, and a session is made or brought back.

use std::borrow::Cow;

use rekindle_domain::event::{AgentReady, Raw};

use super::facts::{OPTIONS, REFUSED, Ready, capabilities_with};
use super::fold::FoldResult;
use super::{Connection, Greeted, Refused, Restored};
use crate::acp::{MAX_NAME, SessionOptions};
use crate::json::{parse_raw, to_raw};
use crate::known::Quirk;
use crate::said::{Failure, Greeting, Request};

impl Connection {
    pub(super) fn greeted(&mut self, greeting: &Greeting<'_>, first: u64, out: &mut FoldResult) {
        if self.partial.greeting.is_some() || self.facts.ready.is_some() {
            return self.notice(
                "duplicate_reply",
                Some("the greeting was answered before".into()),
                None,
                out,
            );
        }
        self.partial.greeting = Some(Greeted {
            first,
            version: greeting.version,
            info: greeting.info.map(to_raw),
            capabilities: capabilities_with(greeting.version, greeting.capabilities.map(|raw| raw.get())),
            auth_methods: greeting.auth_methods.map(to_raw),
        });
        self.set_quirks(greeting.info.map(to_raw).as_ref());
    }

    pub(super) fn opened(
        &mut self,
        input: u64,
        cursor: Option<Cow<'_, str>>,
        options: Option<Raw<'static>>,
        out: &mut FoldResult,
    ) {
        let loading = self.partial.loading.take_if(|loading| loading.input == input);
        let Some(sent) = self.facts.inputs.get(&input).map(|input| input.sent.clone()) else { return };
        if self.facts.ready.is_some() {
            return self.notice("duplicate_reply", Some("there is a session already".into()), None, out);
        }
        // What a fork goes on from is not what comes of it.
        let asked_for = sent.cursor.filter(|_| sent.request != Request::Fork);
        let cursor = cursor.filter(|cursor| !cursor.is_empty()).map(Cow::into_owned).or(asked_for);
        let Some(cursor) = cursor.filter(|cursor| cursor.len() <= MAX_NAME) else {
            let message = "the agent gave its session no usable id".to_owned();
            return self.refused(input, Failure { code: 0, message }, out);
        };
        self.become_ready(Some(cursor), sent.request, out);
        if let Some(raw) = options {
            self.facts.options = SessionOptions::parse(raw.as_json());
            self.notice(OPTIONS, None, Some(raw), out);
        }
        if sent.request != Request::New {
            let replay = loading.map(|loading| loading.replay).unwrap_or_default();
            let goes_on = self.quirks.has(Quirk::ReplaysAfterLoad);
            out.taken.restored = Some(Restored { method: sent.request, replay, goes_on });
        }
    }

    pub(super) fn become_ready(&mut self, cursor: Option<String>, opened: Request, out: &mut FoldResult) {
        // It stays until the log has it: an agent may answer what it was not asked yet.
        let greeting = self.partial.greeting.clone();
        let version = greeting.as_ref().map_or(1, |greeting| greeting.version);
        let (info, capabilities) =
            greeting.map_or((None, None), |greeting| (greeting.info, greeting.capabilities));
        out.push(AgentReady {
            holder_id: self.holder,
            info: info.clone(),
            capabilities: capabilities.clone(),
            cursor: cursor.clone().map(Into::into),
        });
        self.facts.ready = Some(Ready { at: out.seq, info, capabilities, cursor, version, opened });
    }

    pub(super) fn refused(&mut self, number: u64, failure: Failure, out: &mut FoldResult) {
        self.partial.loading.take_if(|loading| loading.input == number);
        let Some(input) = self.facts.inputs.get_mut(&number) else { return };
        let request = input.sent.request;
        if input.over || (self.facts.ready.is_some() && !matches!(request, Request::Set | Request::Other)) {
            return self.notice("duplicate_reply", Some(failure.to_string().into()), None, out);
        }
        (input.over, input.refused) = (true, Some(failure.to_string()));
        let message = Raw::text(&failure.message);
        let raw = format!(r#"{{"input":{number},"code":{},"message":{}}}"#, failure.code, message.as_json());
        self.notice(REFUSED, Some(failure.to_string().into()), parse_raw(&raw), out);
        out.taken.refused = Some(Refused { input_seq: number, request, failure });
    }
}

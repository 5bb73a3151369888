//! One line of an ACP agent: request, notification, response or noise.
//!
//! A message is told by what it has: `method` and `id` make a request, `method` alone a notification, `id`
//! alone a response, whatever its `result` is. Nothing an agent writes is an error of ours.

use std::borrow::Cow;

use rekindle_holder::journal::OutFlags;
use serde_json::value::RawValue;

use super::{MAX_NAME, answer, update, write};
use crate::json::{Object, cut, short};
use crate::said::{Failure, Greeting, PromptOutcome, Request, Said};

/// How much is shown of a line that cannot be read: what a person wants to see of it.
const MAX_SHOWN: usize = 4 << 10;
/// Longest error message that is kept: agents put whole answers of their providers into them.
const MAX_ERROR: usize = 16 << 10;
/// Longest stop reason that is kept.
const MAX_REASON: usize = 256;

/// Reads a line.
pub(super) fn line<'a>(
    line: &'a str,
    flags: OutFlags,
    asked: &dyn Fn(u64) -> Option<Request>,
) -> Vec<Said<'a>> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    let whole = serde_json::from_str::<&'a RawValue>(line);
    let (false, Ok(whole), Some(object)) = (flags.truncated, whole, Object::parse(line)) else {
        let what = match flags {
            OutFlags { truncated: true, .. } => "truncated_line",
            OutFlags { unterminated: true, .. } => "unterminated_line",
            OutFlags { .. } => "noise",
        };
        return vec![Said::Notice { what, text: Some(cut(line, MAX_SHOWN)), raw: None, update: false }];
    };
    match (object.text("method"), object.raw("id")) {
        (Some(method), Some(id)) => request(method, id, whole, &object),
        (Some(method), None) => notification(method, whole, &object),
        (None, Some(id)) => response(id, whole, &object, asked),
        (None, None) => {
            let what = if object.raw("error").is_some() { "protocol_error" } else { "noise" };
            vec![Said::Notice { what, text: None, raw: Some(whole), update: false }]
        }
    }
}

fn request<'a>(
    method: Cow<'a, str>,
    id: &'a RawValue,
    whole: &'a RawValue,
    object: &Object<'a>,
) -> Vec<Said<'a>> {
    if let Some(asked) = answer::asked(object) {
        return vec![Said::Asked(asked)];
    }
    // Files and terminals are never offered to an agent; some ask for things of no protocol at all.
    let reply = if answer::is_served(&method) {
        write::failure(id.get(), -32_602, "the request cannot be read")
    } else {
        write::failure(id.get(), -32_601, "this client does not serve the method")
    };
    vec![Said::Unserved { method: short(method, MAX_NAME), raw: whole, reply }]
}

fn notification<'a>(method: Cow<'a, str>, whole: &'a RawValue, object: &Object<'a>) -> Vec<Said<'a>> {
    match method.as_ref() {
        "session/update" => return update::read(object.object("params"), whole),
        "$/cancel_request" => {
            let params = object.object("params");
            let Some(id) = params.raw("requestId") else { return Vec::new() };
            let reply = write::failure(id.get(), -32_800, "the request was cancelled");
            return vec![Said::Withdrew { wire_id: id.get(), reply }];
        }
        _ if method.starts_with("$/") => return Vec::new(),
        _ => {}
    }
    let what = if method == "elicitation/complete" { "elicitation_complete" } else { "unknown_notification" };
    vec![Said::Notice { what, text: Some(short(method, MAX_NAME)), raw: Some(whole), update: false }]
}

fn response<'a>(
    id: &'a RawValue,
    whole: &'a RawValue,
    object: &Object<'a>,
    asked: &dyn Fn(u64) -> Option<Request>,
) -> Vec<Said<'a>> {
    let input = id.get().parse().ok();
    let Some((input, request)) = input.and_then(|input| Some((input, asked(input)?))) else {
        return vec![Said::Stray { input, raw: whole }];
    };
    if let Some(error) = object.raw("error") {
        let failure = failure(error);
        return vec![match request {
            Request::Prompt => Said::Answered { input, outcome: PromptOutcome::Failed(failure), raw: whole },
            _ => Said::Refused { input, failure },
        }];
    }
    let result = object.object("result");
    match request {
        Request::Greet => vec![Said::Greeted(input, greeting(&result))],
        Request::New | Request::Load | Request::Resume | Request::Fork => {
            let named = ["modes", "configOptions", "models"].iter().any(|name| result.raw(name).is_some());
            let options = object.raw("result").filter(|_| named);
            vec![Said::Opened { input, cursor: result.text("sessionId"), options }]
        }
        Request::Prompt => {
            let stopped = result.text("stopReason").map(|reason| cut(&reason, MAX_REASON).into_owned());
            let answered = Said::Answered { input, outcome: PromptOutcome::Stopped(stopped), raw: whole };
            let usage = result.raw("usage").map(|raw| {
                let usage = result.object("usage");
                let (input, output) = (usage.number("inputTokens"), usage.number("outputTokens"));
                Said::Usage { input, output, cost: None, raw }
            });
            std::iter::once(answered).chain(usage).collect()
        }
        Request::Set => vec![Said::Set { input }],
        Request::Other => Vec::new(),
    }
}

fn greeting<'a>(result: &Object<'a>) -> Greeting<'a> {
    Greeting {
        version: result.number("protocolVersion").unwrap_or(super::VERSION),
        info: result.raw("agentInfo").or_else(|| result.raw("info")),
        capabilities: result.raw("agentCapabilities").or_else(|| result.raw("capabilities")),
        auth_methods: result.raw("authMethods"),
    }
}

fn failure(error: &RawValue) -> Failure {
    let object = Object::parse(error.get()).unwrap_or_default();
    let code = object.raw("code").and_then(|code| code.get().parse().ok()).unwrap_or_default();
    let mut message = object.text("message").unwrap_or_default().into_owned();
    // The message is often no more than "Internal error"; what happened is in the details.
    if let Some(data) = object.raw("data") {
        let details = object.text("data").or_else(|| object.object("data").text("details"));
        let details = details.unwrap_or(Cow::Borrowed(data.get()));
        message = format!("{message}: {details}");
    }
    if message.is_empty() {
        message = error.get().to_owned();
    }
    Failure { code, message: cut(&message, MAX_ERROR).into_owned() }
}

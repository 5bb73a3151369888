//! Payloads that are too large for a log: which they are, and how a reference takes their place.
//!
//! Drafts come with their whole payload. Before a caller appends one it asks for what is too large, stores that
//! as a blob, and puts the reference in its place, until nothing is too large any more.

use rekindle_domain::event::{Event, Raw};
use rekindle_domain::line::Draft;
use serde_json::value::RawValue;

use crate::json::{Object, parse_raw};

/// Largest payload that stands in a log itself, as JSON text.
pub const INLINE_LIMIT: usize = 256 << 10;

/// Returns the JSON text that must be kept as a blob before the draft can be appended.
///
/// Of an agent's request it is the largest of its parameters: id, method and options stay in the log, so that
/// the request can be answered from there.
pub fn oversize(draft: &Draft) -> Option<&str> {
    match &draft.event {
        Event::RunWaiting(waiting) => {
            let request =
                waiting.request.as_ref().filter(|request| request.as_json().len() > INLINE_LIMIT)?;
            let largest = largest_parameter(request);
            Some(largest.map_or(request.as_json(), |(_, raw)| raw.get()))
        }
        event => field(event).map(Raw::as_json).filter(|json| json.len() > INLINE_LIMIT),
    }
}

/// Puts a reference (`{"blob":…,"size":…}`) in the place of what [`oversize`] returned.
pub fn replace_with_reference(draft: &mut Draft, reference: Raw<'static>) {
    if oversize(draft).is_none() {
        return;
    }
    match &mut draft.event {
        Event::RunWaiting(waiting) => {
            let Some(request) = &mut waiting.request else { return };
            *request = with_reference(request, &reference).unwrap_or(reference);
        }
        event => {
            if let Some(field) = field_mut(event) {
                *field = reference;
            }
        }
    }
}

/// Returns the parameter of a request that takes the most room, if it takes more than a reference would.
fn largest_parameter<'a>(request: &'a Raw<'_>) -> Option<(String, &'a RawValue)> {
    const REFERENCE: usize = 128;
    let params = Object::parse(request.as_json())?.object("params");
    let largest = params.members().max_by_key(|(_, raw)| raw.get().len())?;
    (largest.1.get().len() > REFERENCE).then(|| (largest.0.to_owned(), largest.1))
}

/// Writes a request again with a reference for its largest parameter; the other members stay verbatim.
fn with_reference(request: &Raw<'_>, reference: &Raw<'_>) -> Option<Raw<'static>> {
    let (largest, _) = largest_parameter(request)?;
    let object = Object::parse(request.as_json())?;
    let params = object.object("params").with(&largest, reference.as_json());
    parse_raw(&object.with("params", &params))
}

/// Returns the payload of a record that may be large.
fn field<'e>(event: &'e Event<'static>) -> Option<&'e Raw<'static>> {
    match event {
        Event::MessageUser(message) => Some(&message.content),
        Event::MessageAgent(message) => Some(&message.content),
        Event::MessageThought(message) => Some(&message.0.content),
        Event::ToolCall(call) => call.raw.as_ref(),
        Event::ToolUpdate(update) => update.raw.as_ref(),
        Event::PlanUpdated(plan) => Some(&plan.entries),
        Event::UsageUpdated(usage) => usage.raw.as_ref(),
        Event::AgentNotice(notice) => notice.raw.as_ref(),
        Event::InputQueued(input) => Some(&input.line),
        _ => None,
    }
}

fn field_mut<'e>(event: &'e mut Event<'static>) -> Option<&'e mut Raw<'static>> {
    match event {
        Event::MessageUser(message) => Some(&mut message.content),
        Event::MessageAgent(message) => Some(&mut message.content),
        Event::MessageThought(message) => Some(&mut message.0.content),
        Event::ToolCall(call) => call.raw.as_mut(),
        Event::ToolUpdate(update) => update.raw.as_mut(),
        Event::PlanUpdated(plan) => Some(&mut plan.entries),
        Event::UsageUpdated(usage) => usage.raw.as_mut(),
        Event::AgentNotice(notice) => notice.raw.as_mut(),
        Event::InputQueued(input) => Some(&mut input.line),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rekindle_domain::event::{AgentNotice, RunWaiting, WaitKind};

    use super::*;

    fn reference() -> Raw<'static> {
        parse_raw(r#"{"blob":"ab","size":9}"#).expect("JSON")
    }

    #[test]
    fn a_large_payload_is_replaced_and_a_small_one_stays() {
        let notice = |text: &str| AgentNotice {
            run_id: None,
            what: "x".into(),
            text: None,
            raw: Some(Raw::text(text)),
        };
        let mut small = Draft::from(notice("hello"));
        replace_with_reference(&mut small, reference());
        assert_eq!(small, Draft::from(notice("hello")));
        let mut large = Draft::from(notice(&"y".repeat(INLINE_LIMIT)));
        assert_eq!(oversize(&large).map(str::len), Some(INLINE_LIMIT + 2));
        replace_with_reference(&mut large, reference());
        assert!(matches!(&large.event, Event::AgentNotice(notice) if notice.raw == Some(reference())));
        assert_eq!(oversize(&large), None);
    }

    #[test]
    fn of_a_request_only_the_largest_parameter_goes() {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":"7","method":"m","params":{{"options":[{{"optionId":"a"}}],"toolCall":{{"diff":"{}"}}}},"x":1}}"#,
            "z".repeat(INLINE_LIMIT)
        );
        let mut draft = Draft::from(RunWaiting {
            run_id: "run_1".parse().expect("an id"),
            wait_id: "wait_1".parse().expect("an id"),
            wait_kind: WaitKind::Permission,
            resume_token_id: "rt_1".parse().expect("an id"),
            deadline_at: None,
            tool_call_id: None,
            request: parse_raw(&request),
            by: None,
            idempotency_key: None,
        });
        assert!(oversize(&draft).is_some_and(|json| json.starts_with(r#"{"diff":"#)));
        replace_with_reference(&mut draft, reference());
        assert_eq!(oversize(&draft), None);
        let Event::RunWaiting(waiting) = draft.event else { panic!("another event") };
        insta::assert_snapshot!(waiting.request.expect("a request").as_json(), @r#"{"jsonrpc":"2.0","id":"7","method":"m","params":{"options":[{"optionId":"a"}],"toolCall":{"blob":"ab","size":9}},"x":1}"#);
    }
}

//! The text of a record that is searched: what people and agents said, commands, and names of files. What an agent thought, what its
//! tools answered and what is kept apart from the log is not looked at.

use serde_json::Value;

use super::FoundIn;
use crate::event::{Event, Raw};

/// Returns the text of an event, if it has one that is searched.
pub(super) fn of(event: &Event<'_>) -> Option<(FoundIn, String)> {
    let joined = |parts: &[&str], files: &[std::borrow::Cow<'_, str>]| {
        let files = files.iter().map(|file| &**file);
        parts.iter().copied().filter(|part| !part.is_empty()).chain(files).collect::<Vec<_>>().join(" · ")
    };
    let (found_in, text) = match event {
        Event::MessageUser(said) => (FoundIn::Prompt, said.content.plain_text()),
        Event::MessageAgent(said) => (FoundIn::Agent, said.content.plain_text()),
        Event::ToolCall(call) => {
            let input = call.input.as_deref().filter(|input| *input != call.title);
            (FoundIn::Tool, joined(&[&call.title, input.unwrap_or_default()], &call.files))
        }
        Event::ToolUpdate(update) => {
            let parts = [update.title.as_deref(), update.input.as_deref()].map(Option::unwrap_or_default);
            (FoundIn::Tool, joined(&parts, &update.files))
        }
        Event::RunWaiting(waiting) => (FoundIn::Question, asked(waiting.request.as_ref()?)),
        Event::RunCheckpoint(checkpoint) => {
            let touched = checkpoint.files_touched.as_deref()?;
            let paths: Vec<String> = touched.first.iter().filter_map(|file| file.path.path.clone()).collect();
            (FoundIn::Files, paths.join(" · "))
        }
        _ => return None,
    };
    (!text.is_empty()).then_some((found_in, text))
}

/// Returns what a request asks: its title, and the command that it is about.
fn asked(request: &Raw<'_>) -> String {
    let request: Value = serde_json::from_str(request.as_json()).unwrap_or_default();
    let params = request.get("params").unwrap_or(&request);
    let places =
        ["/toolCall/title", "/toolCall/rawInput/command", "/title", "/question", "/message", "/text"];
    let mut found: Vec<&str> = places.iter().filter_map(|place| params.pointer(place)?.as_str()).collect();
    found.dedup();
    found.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(record: &str, expected: Option<(FoundIn, &str)>) {
        let value: Value = serde_json::from_str(record).expect("JSON");
        let event = Event::read(value["kind"].as_str().expect("a kind"), record).expect("an event");
        assert_eq!(of(&event), expected.map(|(found_in, text)| (found_in, text.to_owned())), "{record}");
    }

    #[test]
    fn what_was_said_done_and_changed_is_searched() {
        let user =
            r#"{"kind":"message.user","message_id":"msg_1","content":[{"type":"text","text":"fix it"}]}"#;
        check(user, Some((FoundIn::Prompt, "fix it")));
        let agent = r#"{"kind":"message.agent","message_id":"msg_1","content":"done"}"#;
        check(agent, Some((FoundIn::Agent, "done")));
        let call =
            r#"{"kind":"tool.call","tool_call_id":"t","title":"Shell","input":"make test","files":["a.rs"]}"#;
        check(call, Some((FoundIn::Tool, "Shell · make test · a.rs")));
        check(
            r#"{"kind":"tool.call","tool_call_id":"t","title":"ls","input":"ls"}"#,
            Some((FoundIn::Tool, "ls")),
        );
        let asks = r#"{"kind":"run.waiting","run_id":"run_1","wait_id":"wait_1","wait_kind":"permission","resume_token_id":"rt_1",
            "request":{"params":{"toolCall":{"title":"Shell","rawInput":{"command":"rm -r x"}}}}}"#;
        check(asks, Some((FoundIn::Question, "Shell · rm -r x")));
        check(r#"{"kind":"message.thought","message_id":"msg_1","content":"hm"}"#, None);
        check(r#"{"kind":"tool.update","tool_call_id":"t","status":"completed"}"#, None);
    }
}

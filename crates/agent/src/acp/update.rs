//! `session/update`: what an agent does while it works. Updates this version does not know are kept whole.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::MAX_NAME;
use super::tool_call::summarize;
use crate::json::{Object, short, text};
use crate::said::{Content, Said, ToolSummary, Voice};

/// Longest title that is kept beside the whole update.
const MAX_TITLE: usize = 4 << 10;

/// Reads the parameters of an update; `whole` is kept of one that cannot be read.
pub(super) fn read<'a>(params: Object<'a>, whole: &'a RawValue) -> Vec<Said<'a>> {
    let raw = params.raw("update").unwrap_or(whole);
    let update = params.object("update");
    let name = update.text("sessionUpdate").unwrap_or_default();
    let said = match name.as_ref() {
        "user_message_chunk" => chunk(Voice::User, &update, "messageId"),
        "agent_message_chunk" => chunk(Voice::Agent, &update, "messageId"),
        "agent_thought_chunk" => chunk(Voice::Thought, &update, "messageId"),
        "compaction_summary_chunk" => chunk(Voice::Summary, &update, "compactionId"),
        "user_message" => message(Voice::User, &update),
        "agent_message" => message(Voice::Agent, &update),
        "agent_thought" => message(Voice::Thought, &update),
        "tool_call" => tool(true, &update, raw),
        "tool_call_update" => tool(false, &update, raw),
        "plan" => update.raw("entries").map(Said::Plan),
        "current_mode_update" => {
            update.text("currentModeId").filter(|id| id.len() <= MAX_NAME).map(Said::Mode)
        }
        "usage_update" => {
            let cost = update.object("cost").raw("amount").and_then(|amount| amount.get().parse().ok());
            Some(Said::Usage { input: None, output: None, cost, raw })
        }
        "state_update" => match update.text("state").as_deref() {
            Some("idle") => Some(Said::Idle { stop_reason: update.text("stopReason").map(String::from) }),
            // The others say what the updates around them say too.
            Some(_) => return Vec::new(),
            None => None,
        },
        "available_commands_update" => Some(notice("available_commands", None, raw)),
        "config_option_update" => Some(notice("config_options", None, raw)),
        "session_info_update" => Some(notice("session_info", update.text("title"), raw)),
        "compaction_update" => Some(notice("compaction", update.text("status"), raw)),
        "notice" => {
            let title = update.text("title").unwrap_or_default();
            let text = match update.text("description") {
                Some(description) => format!("{title}: {description}").into(),
                None => title,
            };
            Some(notice("notice", Some(text), raw))
        }
        _ => None,
    };
    vec![said.unwrap_or_else(|| notice("unknown_update", Some(name.into_owned().into()), raw))]
}

fn notice<'a>(what: &'static str, text: Option<Cow<'a, str>>, raw: &'a RawValue) -> Said<'a> {
    Said::Notice { what, text: text.map(|text| short(text, MAX_NAME)), raw: Some(raw), update: true }
}

fn chunk<'a>(voice: Voice, update: &Object<'a>, id: &str) -> Option<Said<'a>> {
    let content = vec![content(update.raw("content")?)];
    Some(Said::Chunk { voice, message: update.text(id), content, replaces: false })
}

/// A whole message, as version 2 sends them: absent content keeps what was said before.
fn message<'a>(voice: Voice, update: &Object<'a>) -> Option<Said<'a>> {
    update.text("messageId")?;
    let replaces = update.raw("content").is_some();
    let content = update.list("content").into_iter().map(content).collect();
    Some(Said::Chunk { voice, message: update.text("messageId"), content, replaces })
}

fn content(block: &RawValue) -> Content<'_> {
    let object = Object::parse(block.get()).unwrap_or_default();
    match (object.text("type").as_deref(), object.text("text")) {
        (Some("text"), Some(text)) => Content::Text(text),
        _ => match text(block) {
            Some(text) => Content::Text(text),
            None => Content::Block(block),
        },
    }
}

fn tool<'a>(begins: bool, update: &Object<'a>, raw: &'a RawValue) -> Option<Said<'a>> {
    let id = update.text("toolCallId").filter(|id| id.len() <= MAX_NAME)?;
    let title = update.text("title");
    // The record of an update has no place for a kind.
    let modelled = update.has_only(match begins {
        true => &["sessionUpdate", "toolCallId", "title", "status", "kind"],
        false => &["sessionUpdate", "toolCallId", "title", "status"],
    });
    let fits = title.as_ref().is_none_or(|title| title.len() <= MAX_TITLE);
    let plain = modelled && fits && texts_are_plain(update);
    Some(Said::Tool {
        begins,
        id,
        title: title.map(|title| short(title, MAX_TITLE)),
        kind: update.text("kind").map(|kind| short(kind, MAX_NAME)),
        status: update.text("status").map(|status| short(status, MAX_NAME)),
        gist: if plain { ToolSummary::default() } else { summarize(update) },
        raw: (!plain).then_some(raw),
    })
}

/// Tells whether the members that are modelled as words are words: of others only the whole says anything.
fn texts_are_plain(update: &Object<'_>) -> bool {
    ["title", "kind", "status"].iter().all(|name| match update.raw(name) {
        Some(_) => update.text(name).is_some_and(|text| text.len() <= MAX_NAME),
        None => true,
    })
}

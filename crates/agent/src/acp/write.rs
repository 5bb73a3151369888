//! What we say to an ACP agent, as exact bytes: the members in a fixed order, one line, its newline.

use rekindle_domain::event::{InputKind, Raw};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{Object, parse_raw};
use crate::profile::{Open, Outgoing, Setting};

/// The members of an object, in their order.
struct Members<'a>(&'a [(&'a str, Raw<'a>)]);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Writes an object whose members have this order.
pub(super) fn object(members: &[(&str, Raw<'_>)]) -> Raw<'static> {
    raw(&Members(members))
}

/// Writes something that is always JSON.
fn raw(value: &impl Serialize) -> Raw<'static> {
    Raw::from_value(value).unwrap_or_else(|error| unreachable!("texts and numbers are always JSON: {error}"))
}

/// Writes a request, or a notification if it has no number.
fn call(what: InputKind, id: Option<u64>, method: &str, params: &[(&str, Raw<'_>)]) -> Outgoing {
    let mut members = vec![("jsonrpc", Raw::text("2.0"))];
    members.extend(id.map(|id| ("id", raw(&id))));
    members.extend([("method", Raw::text(method)), ("params", object(params))]);
    Outgoing { what, line: line(object(&members).as_json()) }
}

/// Returns JSON as a line. What came from elsewhere may contain line breaks, but only between its values.
fn line(json: &str) -> Vec<u8> {
    json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).chain([b'\n']).collect()
}

/// No files and no terminals: an agent's own tools work while nobody is attached.
pub(super) fn initialize(input_seq: u64, name: &str, version: &str) -> Outgoing {
    const CAPABILITIES: &str = concat!(
        r#"{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"#,
        r#""session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}},"#,
        r#""elicitation":{"form":{},"url":{}},"auth":{"terminal":false}}"#
    );
    let capabilities =
        parse_raw(CAPABILITIES).unwrap_or_else(|| unreachable!("our capabilities are JSON: {CAPABILITIES}"));
    let info = [("name", Raw::text(name)), ("title", Raw::text("Rekindle")), ("version", Raw::text(version))];
    let params = [
        ("protocolVersion", raw(&super::VERSION)),
        ("clientInfo", object(&info)),
        ("clientCapabilities", capabilities),
    ];
    call(InputKind::Setup, Some(input_seq), "initialize", &params)
}

/// The list of MCP servers is sent each time, and is empty.
pub(super) fn open(input_seq: u64, how: Open<'_>, cwd: &str) -> Outgoing {
    let (method, session_id) = match how {
        Open::New => ("session/new", None),
        Open::Load(id) => ("session/load", Some(id)),
        Open::Resume(id) => ("session/resume", Some(id)),
        Open::Fork(id) => ("session/fork", Some(id)),
    };
    let session = session_id.map(|id| ("sessionId", Raw::text(id)));
    let params = session.into_iter().chain([("cwd", Raw::text(cwd)), ("mcpServers", raw(&[(); 0]))]);
    call(InputKind::Setup, Some(input_seq), method, &params.collect::<Vec<_>>())
}

pub(super) fn set(input_seq: u64, session_id: &str, setting: Setting<'_>) -> Outgoing {
    let mut params = vec![("sessionId", Raw::text(session_id))];
    let method = match &setting {
        Setting::Mode(mode_id) => {
            params.push(("modeId", Raw::text(mode_id)));
            "session/set_mode"
        }
        Setting::Model(model_id) => {
            params.push(("modelId", Raw::text(model_id)));
            "session/set_model"
        }
        Setting::Choose(config_id, value) => {
            params.extend([("configId", Raw::text(config_id)), ("value", Raw::text(value))]);
            "session/set_config_option"
        }
        Setting::Switch(config_id, value) => {
            params.extend([("configId", Raw::text(config_id)), ("type", Raw::text("boolean"))]);
            params.push(("value", raw(value)));
            "session/set_config_option"
        }
    };
    call(InputKind::Setup, Some(input_seq), method, &params)
}

/// Reads what [`set`] wrote.
pub(super) fn setting(params: &Object<'_>) -> Option<Setting<'static>> {
    let own = |name: &str| params.text(name).map(|text| text.into_owned().into());
    if let Some(mode) = own("modeId") {
        return Some(Setting::Mode(mode));
    }
    if let Some(model) = own("modelId") {
        return Some(Setting::Model(model));
    }
    let config = own("configId")?;
    match (own("value"), params.raw("value").map(RawValue::get)) {
        (Some(value), _) => Some(Setting::Choose(config, value)),
        (None, Some("true")) => Some(Setting::Switch(config, true)),
        (None, Some("false")) => Some(Setting::Switch(config, false)),
        _ => None,
    }
}

/// A text becomes one block; blocks are passed on as they are.
pub(super) fn prompt(input_seq: u64, session_id: &str, content: &Raw<'_>) -> Outgoing {
    let json = content.as_json();
    let blocks = match json.as_bytes().first() {
        Some(b'[') => json.to_owned(),
        Some(b'{') => format!("[{json}]"),
        Some(b'"') => format!(r#"[{{"type":"text","text":{json}}}]"#),
        _ => format!(r#"[{{"type":"text","text":"{json}"}}]"#),
    };
    let blocks = parse_raw(&blocks)
        .unwrap_or_else(|| unreachable!("content is JSON, and so is a list of it: {blocks}"));
    let params = [("sessionId", Raw::text(session_id)), ("prompt", blocks)];
    call(InputKind::Prompt, Some(input_seq), "session/prompt", &params)
}

pub(super) fn cancel(session_id: &str) -> Outgoing {
    call(InputKind::Cancel, None, "session/cancel", &[("sessionId", Raw::text(session_id))])
}

/// Answers a request of the agent's; `wire_id` is the text that its id was.
pub(super) fn result(wire_id: &str, result: &[(&str, Raw<'_>)]) -> Outgoing {
    let result = object(result);
    let json = format!(r#"{{"jsonrpc":"2.0","id":{wire_id},"result":{}}}"#, result.as_json());
    Outgoing { what: InputKind::Answer, line: line(&json) }
}

/// Answers a request of the agent's with an error.
pub(super) fn failure(wire_id: &str, code: i64, message: &str) -> Vec<u8> {
    line(&format!(r#"{{"jsonrpc":"2.0","id":{wire_id},"error":{{"code":{code},"message":"{message}"}}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &Outgoing) -> &str {
        std::str::from_utf8(&out.line).expect("text")
    }

    #[test]
    fn every_line_is_written_to_the_byte() {
        let lines = [
            initialize(1, "sup", "0.1.0"),
            open(2, Open::New, "/re\"po"),
            open(2, Open::Load("s1"), "/repo"),
            open(2, Open::Resume("s1"), "/repo"),
            open(2, Open::Fork("s1"), "/repo"),
            set(3, "s1", Setting::Mode("plan".into())),
            set(3, "s1", Setting::Model("large".into())),
            set(3, "s1", Setting::Choose("model".into(), "large".into())),
            set(3, "s1", Setting::Switch("web".into(), true)),
            prompt(4, "s1", &Raw::text("fix\nit")),
            cancel("s1"),
            result("\"7\"", &[("n", raw(&1))]),
        ];
        let all: String = lines.iter().map(text).collect();
        insta::assert_snapshot!(all, @r#"
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"sup","title":"Rekindle","version":"0.1.0"},"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}},"elicitation":{"form":{},"url":{}},"auth":{"terminal":false}}}}
        {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/re\"po","mcpServers":[]}}
        {"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"s1","cwd":"/repo","mcpServers":[]}}
        {"jsonrpc":"2.0","id":2,"method":"session/resume","params":{"sessionId":"s1","cwd":"/repo","mcpServers":[]}}
        {"jsonrpc":"2.0","id":2,"method":"session/fork","params":{"sessionId":"s1","cwd":"/repo","mcpServers":[]}}
        {"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"plan"}}
        {"jsonrpc":"2.0","id":3,"method":"session/set_model","params":{"sessionId":"s1","modelId":"large"}}
        {"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":"s1","configId":"model","value":"large"}}
        {"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":"s1","configId":"web","type":"boolean","value":true}}
        {"jsonrpc":"2.0","id":4,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"fix\nit"}]}}
        {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}
        {"jsonrpc":"2.0","id":"7","result":{"n":1}}
        "#);
    }

    #[test]
    fn blocks_stay_as_they_are_but_for_line_breaks_between_values() {
        let blocks: Raw<'_> = serde_json::from_str(
            "[\n {\"type\":\"image\",\"n\":1.10},{\"type\":\"text\",\"text\":\"a\\nb\"}\r\n]",
        )
        .expect("blocks");
        let out = prompt(9, "s", &blocks);
        assert!(
            text(&out).contains(r#""prompt":[  {"type":"image","n":1.10},{"type":"text","text":"a\nb"}"#)
        );
        assert_eq!(text(&out).matches('\n').count(), 1);
        let one: Raw<'_> = serde_json::from_str(r#"{"type":"text","text":"x"}"#).expect("a block");
        assert!(text(&prompt(9, "s", &one)).contains(r#""prompt":[{"type":"text","text":"x"}]"#));
        let odd: Raw<'_> = serde_json::from_str("12").expect("a number");
        assert!(text(&prompt(9, "s", &odd)).contains(r#""text":"12""#));
    }
}

//! Tables of answers: what is written, and what is refused with which words.

use super::*;

fn raw(json: &str) -> Raw<'_> {
    serde_json::from_str(json).expect("JSON")
}

fn answered(request: &str, answer: Answer<'_>) -> String {
    match write(&raw(request), answer) {
        Ok(out) => String::from_utf8(out.line).expect("text").trim_end().to_owned(),
        Err(error) => error.to_string(),
    }
}

const PERMIT: &str = r#"{"jsonrpc":"2.0","id":"7","method":"session/request_permission","params":{"sessionId":"s1",
 "toolCall":{"toolCallId":"c1"},"options":[{"optionId":"z","name":"Never","kind":"reject_always"},
 {"optionId":"a","name":"Allow","kind":"allow_once"},{"bad":1},{"optionId":"b","name":"Always","kind":"allow_always"}]}}"#;

#[test]
fn permissions_are_answered_by_kind_or_id() {
    let table = [
        Answer::Kind("allow_once"),
        Answer::OptionId("b"),
        Answer::Decline,
        Answer::Cancelled,
        Answer::Kind("reject_once"),
        Answer::OptionId("1"),
        Answer::Text("yes"),
    ];
    let all: Vec<String> = table.into_iter().map(|answer| answered(PERMIT, answer)).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    {"jsonrpc":"2.0","id":"7","result":{"outcome":{"outcome":"selected","optionId":"a"}}}
    {"jsonrpc":"2.0","id":"7","result":{"outcome":{"outcome":"selected","optionId":"b"}}}
    {"jsonrpc":"2.0","id":"7","result":{"outcome":{"outcome":"selected","optionId":"z"}}}
    {"jsonrpc":"2.0","id":"7","result":{"outcome":{"outcome":"cancelled"}}}
    there is no option "reject_once"; choose from z (reject_always), a (allow_once), b (allow_always)
    there is no option "1"; choose from z (reject_always), a (allow_once), b (allow_always)
    the question does not take text: choose an option
    "#);
}

fn form(schema: &str) -> String {
    format!(
        r#"{{"id":3,"method":"elicitation/create","params":{{"mode":"form","message":"?","requestedSchema":{schema}}}}}"#
    )
}

#[test]
fn questions_are_answered_by_text_choice_or_form() {
    let one = form(r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#);
    let pick =
        form(r#"{"properties":{"c":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g"}]}}}"#);
    let two = form(r#"{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}"#);
    let many = form(r#"{"properties":{"a":{},"b":{}}}"#);
    let url =
        r#"{"id":3,"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"?"}}"#;
    let fields = raw(r#"{"a":1,"b":"x"}"#);
    let table = [
        (one.as_str(), Answer::Text("Zoë")),
        (&one, Answer::Kind("accept")),
        (&pick, Answer::OptionId("g")),
        (&pick, Answer::Kind("r")),
        (&pick, Answer::Text("blue")),
        (&two, Answer::Text("12")),
        (&two, Answer::Text("twelve")),
        (&many, Answer::Text("x")),
        (&many, Answer::Form(&fields)),
        (&many, Answer::Kind("accept")),
        (url, Answer::Kind("accept")),
        (url, Answer::Text("x")),
        (url, Answer::Decline),
        (url, Answer::Cancelled),
    ];
    let all: Vec<String> = table.into_iter().map(|(request, answer)| answered(request, answer)).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"name":"Zoë"}}}
    the question does not take a bare yes: it has fields to fill in
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"c":"g"}}}
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"c":"r"}}}
    the question does not take this text as a value
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"a":12}}}
    the question does not take this text as a value
    the question does not take one text: it has several fields
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{"a":1,"b":"x"}}}
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept","content":{}}}
    {"jsonrpc":"2.0","id":3,"result":{"action":"accept"}}
    the question does not take text: it only asks to open an address
    {"jsonrpc":"2.0","id":3,"result":{"action":"decline"}}
    {"jsonrpc":"2.0","id":3,"result":{"action":"cancel"}}
    "#);
}

#[test]
fn the_options_of_a_request_come_back_from_the_log() {
    let object = Object::parse(PERMIT).expect("an object");
    let asked = asked(&object).expect("a permission");
    assert_eq!((asked.wire_id.as_ref(), asked.kind), ("\"7\"", WaitKind::Permission));
    assert_eq!(
        asked.options.iter().map(|option| option.name.as_str()).collect::<Vec<_>>(),
        ["Never", "Allow", "Always"]
    );
    let other = Object::parse(r#"{"id":1,"method":"fs/read_text_file","params":{}}"#).expect("an object");
    assert!(super::asked(&other).is_none());
}

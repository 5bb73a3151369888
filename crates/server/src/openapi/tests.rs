//! No code is missing in the document, and what it says hangs together. That it says what the router does is shown in
//! `tests/http/described.rs`.

use std::collections::BTreeSet;

use rekindle_wire::code::Code;

use super::*;

fn parsed() -> Value {
    serde_json::from_slice(document()).expect("JSON")
}

/// Calls back for every object in a value, with the path to it.
fn each(value: &Value, place: &str, look: &mut impl FnMut(&str, &Value)) {
    look(place, value);
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each(value, &format!("{place}/{name}"), look));
        }
        Value::Array(values) => values.iter().for_each(|value| each(value, place, look)),
        _ => {}
    }
}

#[test]
fn every_code_is_named_and_belongs_to_an_operation() {
    let document = parsed();
    let words = &document["components"]["schemas"]["ErrorCode"]["enum"];
    let words: BTreeSet<&str> = words.as_array().expect("words").iter().filter_map(Value::as_str).collect();
    let all: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).chain([REFUSED]).collect();
    assert_eq!(words, all);
    let api = api();
    let declared: BTreeSet<&str> = api
        .described
        .iter()
        .flat_map(|(_, _, operation)| &operation.refusals)
        .map(|code| code.as_str())
        .collect();
    // These belong to requests that no operation answers; the last one says in a log why a run failed.
    let nobodys =
        [REFUSED, Code::NoSuchMethod.as_str(), Code::TlsExpected.as_str(), Code::AgentMissing.as_str()];
    let nobodys = nobodys.into();
    assert_eq!(all.difference(&declared).copied().collect::<BTreeSet<_>>(), nobodys);
}

#[test]
fn names_are_good_for_programs_and_every_reference_leads_somewhere() {
    let document = parsed();
    let mut ids = BTreeSet::new();
    for (_, path, operation) in &api().described {
        let id = operation.id;
        assert!(ids.insert(id), "{id} is there twice");
        assert!(
            id.starts_with(|c: char| c.is_ascii_lowercase()) && id.bytes().all(|b| b.is_ascii_alphanumeric())
        );
        assert_eq!(
            path.contains("{id}"),
            operation_of(&document, id)["parameters"][0]["in"] == "path",
            "{id}"
        );
    }
    each(&document, "", &mut |place, value| {
        if let Some(reference) = value["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').expect("within the document");
            assert!(document.pointer(pointer).is_some(), "{place}: {reference}");
        }
        if let Some(operation) = value["operationId"].as_str() {
            assert!(ids.contains(operation), "{place}: {operation}");
        }
    });
}

fn operation_of<'a>(document: &'a Value, id: &str) -> &'a Value {
    let all = document["paths"].as_object().expect("paths").values();
    let mut all = all.flat_map(|path| path.as_object().expect("operations").values());
    all.find(|operation| operation["operationId"] == id).expect("an operation")
}

#[test]
fn parameters_and_bodies_say_their_limits() {
    let document = parsed();
    let list = operation_of(&document, "listSessions");
    let parameter = |name: &str| {
        let all = list["parameters"].as_array().expect("parameters");
        all.iter().find(|one| one["name"] == name).expect("a parameter").clone()
    };
    assert_eq!(parameter("limit")["schema"]["minimum"], 1);
    assert_eq!(parameter("limit")["schema"]["maximum"], u64::MAX);
    assert_eq!(parameter("limit")["schema"]["type"], "integer");
    assert!(parameter("status")["schema"]["pattern"].as_str().is_some_and(|one| one.contains("|waiting|")));
    assert!(parameter("cursor")["description"].is_string());
    let new = &document["components"]["schemas"]["NewSession"];
    assert_eq!(new["additionalProperties"], false);
    assert_eq!(new["required"], json!(["working_dir", "agent"]));
    let session = &document["components"]["schemas"]["Session"];
    let required = session["required"].as_array().expect("fields").len();
    assert_eq!(required, session["properties"].as_object().expect("fields").len(), "a null is written");
    let stream = &operation_of(&document, "followSession")["responses"]["200"]["content"];
    assert!(stream["text/event-stream"].is_object());
    let security = &operation_of(&document, "answerWait")["security"];
    assert_eq!(*security, json!([{}, {"token": ["answer"]}]));
}

#[test]
fn the_document_asks_for_the_scope_that_the_guard_asks_for() {
    for (method, path, operation) in &api().described {
        let path = path.replace("{id}", "x").replace("{name}", "1-1");
        // The guard does not even look at tokens there.
        let Some(scope) = operation.scope else {
            assert!(matches!(path.as_str(), "/healthz" | "/answer"), "{path}");
            continue;
        };
        assert_eq!(scope, crate::guard::needed(method, &path), "{method} {path}");
    }
}

#[test]
fn what_is_not_declared_is_known() {
    let path = "/api/sessions/{id}";
    assert!(declares(&Method::GET, path, StatusCode::NOT_FOUND, "session_unknown"));
    assert!(declares(&Method::HEAD, path, StatusCode::NOT_FOUND, "session_unknown"));
    assert!(!declares(&Method::GET, path, StatusCode::CONFLICT, "still_running"));
    assert!(declares(&Method::DELETE, path, StatusCode::CONFLICT, "still_running"));
    assert!(declares(&Method::PUT, path, StatusCode::METHOD_NOT_ALLOWED, "no_such_method"));
}

#[test]
fn the_page_for_people_has_every_code_beside_its_status() {
    let page = include_str!("../../../../docs/http-api.md");
    for (status, word) in Code::ALL.iter().map(|code| (code.status(), code.as_str())) {
        let start = format!("| {status} |");
        let row = page.lines().find(|line| line.starts_with(&start)).expect("a row for the status");
        assert!(row.contains(&format!("`{word}`")), "docs/http-api.md lacks {word} at {status}");
    }
}

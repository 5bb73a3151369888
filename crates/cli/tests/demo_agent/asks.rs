//! What the agent asks, and what becomes of it: allowed, rejected, cancelled, withdrawn.

use serde_json::{Value, json};

use crate::driver::{World, said, updates};

const PERMISSION: &str = "session/request_permission";

#[test]
fn a_permission_decides_whether_the_turn_goes_on() {
    let world = World::new();
    let mut agent = world.session(&[]);
    for (option, expected) in
        [("allow_once", "one\n"), ("reject_once", "one\n"), ("allow_always", "one\none\n")]
    {
        let id = agent.prompt("ask really?\nappend log one");
        let asked = agent.asked(PERMISSION);
        assert_eq!(asked["params"]["toolCall"]["title"], "really?");
        let kinds: Vec<&Value> =
            asked["params"]["options"].as_array().expect("options").iter().map(|o| &o["kind"]).collect();
        assert_eq!(json!(kinds), json!(["allow_once", "allow_always", "reject_once", "reject_always"]));
        agent.choose(&asked, option);
        let (before, reply) = agent.reply(id);
        assert_eq!(reply["result"]["stopReason"], "end_turn");
        assert_eq!(said(&before), if option == "reject_once" { "Rejected: really?" } else { "" });
        assert_eq!(world.file("log"), expected, "{option}");
    }
    // Always is always, for the same question.
    let (before, _) = agent.turn("ask really?\nappend log one");
    assert!(before.iter().all(|message| message["method"] != PERMISSION));
    assert_eq!(world.file("log"), "one\none\none\n");
}

#[test]
fn in_yolo_mode_nothing_is_asked() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let session = agent.session.clone();
    let set = agent.call("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    assert!(set["result"].is_object());
    agent.turn("ask really?\nappend log one");
    assert_eq!(world.file("log"), "one\n");
}

#[test]
fn two_permissions_are_open_at_once_and_answered_in_any_order() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let id = agent.prompt("ask-two first? | second?\nappend log both");
    let (first, second) = (agent.asked(PERMISSION), agent.asked(PERMISSION));
    assert_ne!(first["id"], second["id"]);
    agent.choose(&second, "allow_once");
    let changed = agent.asked("session/update");
    assert_eq!(changed["params"]["update"]["toolCallId"], second["params"]["toolCall"]["toolCallId"]);
    assert_eq!(world.file("log"), "");
    agent.choose(&first, "allow_once");
    agent.reply(id);
    assert_eq!(world.file("log"), "both\n");
}

#[test]
fn a_cancel_ends_the_turn_after_open_permissions_are_answered() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let id = agent.prompt("ask-two first? | second?\nappend log both");
    let (first, second) = (agent.asked(PERMISSION), agent.asked(PERMISSION));
    agent.cancel();
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    agent.send(&json!({"jsonrpc": "2.0", "id": first["id"], "result": cancelled}));
    // One is still open, so another request is answered first.
    let other = agent.request("session/list", json!({}));
    let (before, _) = agent.reply(other);
    assert!(before.iter().all(|message| message["id"] != id), "{before:?}");
    agent.send(&json!({"jsonrpc": "2.0", "id": second["id"], "result": cancelled}));
    assert_eq!(agent.reply(id).1["result"]["stopReason"], "cancelled");
    assert_eq!(world.file("log"), "");
}

#[test]
fn a_cancel_ends_pauses_streams_commands_and_silence() {
    let world = World::new();
    let mut agent = world.session(&[]);
    for script in ["sleep 10m", "words 100000 every 5ms", "run sleep 60", "hang", "barrier never"] {
        let id = agent.prompt(&format!("say begun\n{script}\nappend log {script}"));
        agent.heard("begun");
        agent.cancel();
        assert_eq!(agent.reply(id).1["result"]["stopReason"], "cancelled", "{script}");
    }
    assert_eq!(world.file("log"), "");

    let id = agent.prompt("say begun\nhang");
    agent.heard("begun");
    agent.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(agent.reply(id).1["error"]["code"], -32800);

    let id = agent.prompt("say begun\nhang deaf");
    agent.heard("begun");
    agent.cancel();
    let other = agent.request("session/list", json!({}));
    let (before, _) = agent.reply(other);
    assert!(before.iter().all(|message| message["id"] != id));
}

#[test]
fn ids_begin_again_in_every_turn_if_a_script_says_so() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let mut ids = Vec::new();
    for script in ["ask a?\nask b?", "repeat-ids\nask c?\nask d?", "ask e?"] {
        let prompt = agent.prompt(script);
        for _ in 0..script.matches("ask").count() {
            let asked = agent.asked(PERMISSION);
            ids.push(asked["id"].clone());
            agent.choose(&asked, "allow_once");
        }
        agent.reply(prompt);
    }
    assert_eq!(json!(ids), json!([0, 1, 0, 1, 0]));
}

#[test]
fn a_question_can_be_withdrawn() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let id = agent.prompt("withdraw 1ms never mind");
    let asked = agent.asked(PERMISSION);
    let withdrawn = agent.asked("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    let error = json!({"code": -32800, "message": "cancelled"});
    agent.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    let (before, reply) = agent.reply(id);
    assert_eq!(said(&before), "Withdrawn: never mind");
    assert_eq!(reply["result"]["stopReason"], "end_turn");
}

#[test]
fn a_form_is_answered_declined_or_refused() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let answers = [
        (json!({"result": {"action": "accept", "content": {"answer": "blue"}}}), "You answered: blue"),
        (json!({"result": {"action": "decline"}}), "You declined: colour?"),
        (json!({"error": {"code": -32601, "message": "no forms"}}), "Not answered: colour? (no forms)"),
    ];
    for (mut answer, expected) in answers {
        let id = agent.prompt("question colour?");
        let asked = agent.asked("elicitation/create");
        assert_eq!(asked["params"]["mode"], "form");
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = asked["id"].clone();
        agent.send(&answer);
        let (before, _) = agent.reply(id);
        assert_eq!(said(&before), expected);
        assert!(updates(&before, "tool_call").is_empty());
    }
}

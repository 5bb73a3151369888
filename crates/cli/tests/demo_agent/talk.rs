//! Turns that go well, messages that make no sense, and output that is hard to swallow.

use std::fs;

use serde_json::{Value, json};

use crate::driver::{World, said, text_of, updates};

#[test]
fn a_session_streams_words_and_ends_its_turn() {
    let world = World::new();
    let mut agent = world.spawn(&[]);
    let reply = agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let result = &reply["result"];
    assert_eq!(result["agentInfo"]["name"], "rekindle-demo-agent");
    assert_eq!(result["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(capabilities["sessionCapabilities"], json!({"list": {}, "resume": {}, "close": {}}));

    let mut agent = world.session(&[]);
    let (before, reply) =
        agent.turn("think hm\nsay Hello world, this is streamed\nplan a; b\ntool read src/main.rs");
    assert_eq!(reply["result"], json!({"stopReason": "end_turn"}));
    assert_eq!(said(&before), "Hello world, this is streamed");
    assert_eq!(text_of(&before, "agent_thought_chunk"), "hm");
    let chunks = updates(&before, "agent_message_chunk");
    assert_eq!(chunks.len(), 5);
    assert!(chunks.iter().all(|chunk| chunk["messageId"] == chunks[0]["messageId"]));
    let plans: Vec<String> = updates(&before, "plan").iter().map(|plan| states(&plan["entries"])).collect();
    assert_eq!(plans, ["in_progress pending", "completed in_progress", "completed completed"]);
    assert_eq!(updates(&before, "tool_call")[0]["status"], "pending");
    let changes = updates(&before, "tool_call_update");
    assert_eq!(states(&json!(changes)), "in_progress completed");
}

fn states(entries: &Value) -> String {
    let states = entries.as_array().expect("a list").iter().map(|entry| entry["status"].as_str());
    states.map(|state| state.expect("a status")).collect::<Vec<_>>().join(" ")
}

#[test]
fn tools_really_write_and_run_below_the_session_and_nowhere_else() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let script = "write a/b.txt two words\nappend log one\nappend log two\nrun echo hi; echo there >&2; exit 3\n\
                  write ../outside no\nwrite /tmp/rekindle-demo-outside no";
    let (before, _) = agent.turn(script);
    assert_eq!(world.file("a/b.txt"), "two words\n");
    assert_eq!(world.file("log"), "one\ntwo\n");
    assert!(!world.path("outside").exists());
    let ended: Vec<&Value> =
        updates(&before, "tool_call_update").into_iter().filter(|u| u["status"] != "in_progress").collect();
    assert_eq!(states(&json!(ended)), "completed completed completed failed failed failed");
    assert_eq!(ended[3]["content"][0]["content"]["text"], "hi\nthere\n");
}

#[test]
fn messages_that_make_no_sense_are_answered_or_ignored() {
    let world = World::new();
    let mut agent = world.session(&[]);
    for (line, code) in [("nonsense\n", -32700), ("\n", -32700), ("[]\n", -32600), ("\"text\"\n", -32600)] {
        agent.raw(line.as_bytes());
        let message = agent.message();
        assert_eq!((&message["id"], &message["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    agent.notify("session/unheard_of", json!({}));
    agent.send(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}));
    assert_eq!(agent.call("session/unheard_of", json!({}))["error"]["code"], -32601);
    assert_eq!(agent.call("session/new", json!({}))["error"]["code"], -32602);
    assert_eq!(
        agent.call("session/prompt", json!({"sessionId": "x", "prompt": []}))["error"]["code"],
        -32002
    );

    let first = agent.prompt("poke");
    // The refusal itself is the line that the first turn waits for.
    let second = agent.prompt("say no");
    let (before, refused) = agent.until(|message| message["id"] == second);
    assert!(refused["error"].is_object(), "{refused}");
    assert!(said(&before).is_empty());
    assert_eq!(agent.reply(first).1["result"]["stopReason"], "end_turn");
}

#[test]
fn settings_change_and_sessions_are_listed_and_closed() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let session = agent.session.clone();
    let set = json!({"sessionId": session, "configId": "model", "value": "demo-large"});
    let reply = agent.call("session/set_config_option", set);
    assert_eq!(reply["result"]["configOptions"][0]["currentValue"], "demo-large");
    let wrong = json!({"sessionId": session, "modeId": "wrong"});
    assert_eq!(agent.call("session/set_mode", wrong)["error"]["code"], -32602);
    agent.turn("title A name");
    let listed = agent.call("session/list", json!({}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], json!(session));
    assert_eq!(listed["result"]["sessions"][0]["title"], "A name");
    assert_eq!(agent.call("session/list", json!({"cwd": "/else"}))["result"]["sessions"], json!([]));
    assert!(agent.call("session/close", json!({"sessionId": session}))["result"].is_object());
    assert_eq!(agent.turn("say gone").1["error"]["code"], -32002);
}

#[test]
fn every_kind_of_update_comes_through_and_reasons_are_as_asked_for() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let script = "usage 1200 300 0.05\nmode yolo\ntitle T\nnotice N\ncommands\nunknown-update\ntool-between\nstop-reason weird";
    let (before, reply) = agent.turn(script);
    assert_eq!(reply["result"]["stopReason"], "weird");
    assert_eq!(reply["result"]["usage"]["totalTokens"], 1500);
    let kinds = [
        "usage_update",
        "current_mode_update",
        "session_info_update",
        "notice",
        "available_commands_update",
        "demo_unheard_of",
    ];
    for kind in kinds {
        assert_eq!(updates(&before, kind).len(), 1, "{kind}");
    }
    let last: Vec<&Value> = before.iter().rev().take(3).map(|message| &message["params"]["update"]).collect();
    assert_eq!(last[0]["messageId"], last[2]["messageId"]);
    assert_eq!(last[1]["sessionUpdate"], "tool_call_update");

    let (_, reply) = agent.turn("refuse -32000 log in\nsay never");
    assert_eq!(reply["error"], json!({"code": -32000, "message": "log in"}));
}

#[test]
fn noise_stands_between_messages() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let id =
        agent.prompt("noise hello there\nnoise binary\nnoise blank\nnoise escape\nnoise string\nsay done");
    let lines: Vec<Vec<u8>> = (0..5).map(|_| agent.line().expect("a line")).collect();
    assert_eq!(lines[0], b"hello there\n");
    assert!(String::from_utf8(lines[1].clone()).is_err());
    assert_eq!(lines[2], b"\n");
    assert!(lines[3].starts_with(b"\x1b]0;"));
    assert_eq!(serde_json::from_slice::<Value>(&lines[4]).expect("JSON"), json!("just a string"));
    let (before, _) = agent.reply(id);
    assert_eq!(said(&before), "done");
}

#[test]
fn a_huge_line_has_its_size_and_the_text_that_can_be_recomputed() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.prompt("huge 3MiB\nstderr 1MB");
    let line = agent.line().expect("a line");
    assert_eq!(line.len(), 3 << 20);
    let message: Value = serde_json::from_slice(&line).expect("JSON");
    let id = message["params"]["update"]["messageId"].as_str().expect("an id");
    assert!(line == rekindle_demo_agent::huge_line(&agent.session, id, 3 << 20).as_bytes());
    assert_eq!(agent.message()["result"]["stopReason"], "end_turn");
    assert_eq!(fs::metadata(world.path("stderr")).expect("a file").len(), 1_000_000);

    let session = agent.session.clone();
    let (replayed, _) = agent.load(&session);
    assert_eq!(
        said(&replayed).len(),
        message["params"]["update"]["content"]["text"].as_str().map_or(0, str::len)
    );
}

#[test]
fn a_plain_prompt_looks_like_work_and_changes_nothing() {
    let world = World::new();
    let mut agent = world.session(&[]);
    let (before, reply) = agent.turn("fix the flaky test");
    assert_eq!(reply["result"]["stopReason"], "end_turn");
    assert!(said(&before).contains("fix the flaky test"));
    assert!(!updates(&before, "plan").is_empty());
    assert_eq!(updates(&before, "tool_call")[0]["kind"], "read");
    assert_eq!(fs::read_dir(world.path("work")).expect("a directory").count(), 0);
}

#[test]
fn version_two_answers_a_prompt_at_once_and_says_when_it_is_idle() {
    let world = World::new();
    let mut agent = world.spawn(&["--protocol", "2"]);
    let reply = agent.call("initialize", json!({"protocolVersion": 2, "capabilities": {}}));
    assert_eq!(reply["result"]["protocolVersion"], 2);
    let reply = agent.call("session/new", json!({"cwd": world.path("work")}));
    agent.session = reply["result"]["sessionId"].as_str().expect("a session").to_owned();
    let (before, reply) = agent.turn("say hello");
    assert!(before.is_empty() && reply["result"]["messageId"].is_string(), "{reply}");
    let (before, idle) = agent.until(|message| message["params"]["update"]["state"] == "idle");
    assert_eq!(said(&before), "hello");
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
}

//! What a later process knows of a conversation: all of it, a part, nothing, or more than it should.

use std::fs;

use serde_json::{Value, json};

use crate::driver::{Agent, World, said, text_of, updates, wait_for};

/// Runs a turn, begins another, and kills the agent at a barrier in it; returns the session.
fn killed_at_barrier(world: &World, script: &str) -> String {
    let mut agent = world.session(&[]);
    agent.turn("say first answer");
    agent.prompt(script);
    wait_for("the barrier is reached", || world.path("barriers/here.reached").exists());
    fs::remove_file(world.path("barriers/here.reached")).expect("it is there");
    let session = agent.session.clone();
    agent.kill_nine();
    session
}

const SCRIPT: &str = "say second answer\nappend log one\nbarrier here\nappend log two";

#[test]
fn killed_in_mid_stream_the_conversation_is_replayed_by_the_next_process() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.turn("say first answer\ntool read x");
    agent.prompt("say second answer\nwords 1000000 every 1ms");
    agent.heard("w5 ");
    let session = agent.session.clone();
    agent.kill_nine();

    let mut agent = world.start(&[]);
    let (replayed, reply) = agent.load(&session);
    assert_eq!(reply["result"]["modes"]["currentModeId"], "default", "{reply}");
    assert_eq!(said(&replayed), "first answersecond answer");
    let prompts = text_of(&replayed, "user_message_chunk");
    assert!(prompts.starts_with("say first answer") && prompts.ends_with("words 1000000 every 1ms"));
    assert_eq!(updates(&replayed, "tool_call")[0]["status"], "completed");

    let (before, _) = agent.turn("Your last turn was interrupted. What is done?\nappend log again");
    assert_eq!(
        said(&before),
        "I remember 2 prompts, 2 messages of mine and 1 tool call. The last turn was interrupted at step 2 of 2. \
         The last prompt began: say second answer"
    );
    assert_eq!(world.file("log"), "");
}

#[test]
fn told_to_carry_on_it_does_what_was_never_begun_and_nothing_twice() {
    let world = World::new();
    let session = killed_at_barrier(&world, SCRIPT);
    let mut agent = world.start(&["--carry-on"]);
    agent.load(&session);
    let (before, _) = agent.turn("Your last turn was interrupted. Go on.");
    assert!(said(&before).contains("interrupted at step 3 of 4"), "{}", said(&before));
    assert_eq!(world.file("log"), "one\ntwo\n");
}

#[test]
fn a_resume_replays_nothing_and_remembers_all() {
    let world = World::new();
    let session = killed_at_barrier(&world, SCRIPT);
    let mut agent = world.start(&[]);
    let id = agent.request("session/resume", json!({"sessionId": session, "cwd": world.path("work")}));
    let (before, reply) = agent.reply(id);
    assert!(before.is_empty() && reply["result"].is_object());
    agent.session = session;
    let (before, _) = agent.turn("[Resume Context]\nappend log one");
    assert!(said(&before).contains("interrupted at step 3 of 4"), "{}", said(&before));
    assert_eq!(world.file("log"), "one\n");
}

#[test]
fn what_was_never_prompted_is_unknown_or_was_forgotten_cannot_be_loaded() {
    let world = World::new();
    let code = |agent: &mut Agent, session: &str| agent.load(session).1["error"]["code"].clone();
    let mut agent = world.session(&[]);
    let never_prompted = agent.session.clone();
    assert_eq!(code(&mut agent, &never_prompted), -32002);
    assert_eq!(code(&mut agent, "unheard-of"), -32002);
    assert_eq!(code(&mut agent, "../state/x"), -32002);
    let mut agent = world.session(&[]);
    agent.turn("say one\nforget\nsay two");
    let forgotten = agent.session.clone();
    assert_eq!(code(&mut agent, &forgotten), -32002);
    let mut next = world.start(&[]);
    assert_eq!(code(&mut next, &forgotten), -32002);
    let mut lost = world.session(&[]);
    lost.prompt("crash-before");
    lost.ended();
    assert_eq!(code(&mut next, &lost.session), -32002);
}

#[test]
fn loads_are_refused_emptied_or_cut_by_flags() {
    let world = World::new();
    let session = killed_at_barrier(&world, SCRIPT);
    let (replayed, reply) = world.start(&["--refuse-load"]).load(&session);
    assert_eq!((replayed.len(), &reply["error"]["code"]), (0, &json!(-32603)));

    let mut empty = world.start(&["--load-empty"]);
    let (replayed, reply) = empty.load("unheard-of");
    assert!(replayed.is_empty() && reply["result"].is_object());
    let (before, _) = empty.turn("[Resume Context]");
    assert_eq!(said(&before), "I remember nothing of an earlier conversation.");

    let (replayed, _) = world.start(&["--load-short", "3"]).load(&session);
    assert_eq!(replayed.len(), 3);
    assert_eq!(said(&replayed), "first answer");
    let (replayed, _) = world.start(&[]).load(&session);
    assert_eq!(replayed.len(), 5);
    assert_eq!(world.file("log"), "one\n");
}

#[test]
fn a_load_can_run_the_rest_of_the_turn_but_repeats_no_step() {
    let world = World::new();
    let session = killed_at_barrier(&world, SCRIPT);
    let mut agent = world.start(&["--load-continues"]);
    let (before, reply) = agent.load(&session);
    assert!(reply["result"].is_object());
    assert_eq!(world.file("log"), "one\ntwo\n");
    assert!(!updates(&before, "tool_call_update").is_empty());
    // The turn is over now: another load finds nothing to do.
    agent.load(&session);
    assert_eq!(world.file("log"), "one\ntwo\n");
}

#[test]
fn a_command_outlives_its_agent_and_is_shown_as_failed() {
    let world = World::new();
    let mut agent = world.session(&[]);
    agent.prompt(
        "run touch begun; for i in $(seq 3000); do test -e go && break; sleep 0.01; done; touch ended",
    );
    wait_for("the command runs", || world.path("work/begun").exists());
    let session = agent.session.clone();
    agent.kill_nine();
    fs::write(world.path("work/go"), "").expect("a file");
    wait_for("the command ends", || world.path("work/ended").exists());
    let (replayed, _) = world.start(&[]).load(&session);
    assert_eq!(updates(&replayed, "tool_call")[0]["status"], "failed");
}

#[test]
fn what_is_not_offered_does_not_exist_and_logging_in_comes_first() {
    let world = World::new();
    let mut agent = world.spawn(&["--no-load", "--no-resume", "--auth-required", "--slow-start", "50ms"]);
    let reply = agent.call("initialize", json!({"protocolVersion": 1}));
    let capabilities = &reply["result"]["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], false);
    assert_eq!(capabilities["sessionCapabilities"]["resume"], Value::Null);
    let params = json!({"sessionId": "x", "cwd": "/"});
    for method in ["session/load", "session/resume"] {
        assert_eq!(agent.call(method, params.clone())["error"]["code"], -32601);
    }
    let new = json!({"cwd": world.path("work"), "mcpServers": []});
    assert_eq!(agent.call("session/new", new.clone())["error"]["code"], -32000);
    let method = reply["result"]["authMethods"][0]["id"].clone();
    assert!(agent.call("authenticate", json!({ "methodId": method }))["result"].is_object());
    assert!(agent.call("session/new", new)["result"]["sessionId"].is_string());
}

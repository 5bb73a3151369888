//! What is recorded of each conversation, to the letter: kind, journal record and number, `low`, payload.

use crate::conversations::{self, Conversation};
use crate::stage::Stage;

/// Plays a conversation and returns what was derived from its journal.
fn log(conversation: Conversation) -> String {
    let mut stage = Stage::acp(Default::default());
    stage.play(&conversation.steps);
    let text = stage.text();
    let derived: Vec<&str> = text.lines().filter(|line| line.contains(" low ")).collect();
    derived
        .join("\n")
        .replace(r#""holder_id":"h_00112233445566778899aabbccddeeff","#, "")
        .replace("msg_7gqx940hp5wntc5nnfjqz19", "msg_…")
}

#[test]
fn pieces_are_passed_on_live_with_their_place_in_the_message() {
    let mut stage = Stage::acp(Default::default());
    stage.play(&conversations::stream().steps);
    assert_eq!(stage.deltas, "Hmm.I look.All good.Bye.No.");
    let killed = conversations::killed();
    let mut stage = Stage::acp(Default::default());
    stage.play(&killed.steps[..killed.steps.len() - 1]);
    let half = stage.connection.half_message().expect("half a message");
    assert_eq!((half.text.as_str(), half.at), ("Half a message", 0));
    stage.die();
    stage.read();
    assert_eq!(stage.connection.half_message(), Some(half), "a later supervisor has it too");
}

#[test]
fn a_turn_with_tools_plan_usage_and_unknown_things() {
    insta::assert_snapshot!(log(conversations::stream()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    agent.notice 6.0 low 7 {"what":"available_commands","raw":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"init"}]}}
    message.thought 11.0 low 11 {"run_id":"run_1","message_id":"msg_…qqh","content":"Hmm."}
    usage.updated 12.0 low 11 {"input_tokens":0,"output_tokens":0,"cost":0.5,"raw":{"sessionUpdate":"usage_update","used":10,"size":200,"cost":{"amount":0.5,"currency":"USD"}}}
    message.agent 14.0 low 15 {"run_id":"run_1","message_id":"msg_…qqk","content":"I look."}
    tool.call 14.1 low 15 {"run_id":"run_1","tool_call_id":"t1","title":"cargo test","tool_kind":"execute","status":"pending","raw":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cargo test","kind":"execute","status":"pending","rawInput":{"x":1.50}}}
    tool.update 15.0 low 16 {"run_id":"run_1","tool_call_id":"t1","status":"in_progress"}
    tool.update 17.0 low 18 {"run_id":"run_1","tool_call_id":"t1","status":"completed","raw":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}]}}
    plan.updated 18.0 low 19 {"run_id":"run_1","entries":[{"content":"look","priority":"high","status":"pending"}]}
    tool.update 21.0 low 19 {"run_id":"run_1","tool_call_id":"t0","status":"in_progress"}
    message.agent 23.0 low 23 {"run_id":"run_1","message_id":"msg_…qqv","content":"All good."}
    mode.updated 25.0 low 23 {"mode_id":"code"}
    agent.notice 26.0 low 23 {"run_id":"run_1","what":"unknown_update","text":"wholly_new","raw":{"sessionUpdate":"wholly_new","x":[1,2]}}
    message.agent 27.0 low 28 {"run_id":"run_1","message_id":"msg_…qqz","content":[{"type":"text","text":"Bye."},{"type":"image","data":"aGk=","mimeType":"image/png"}]}
    usage.updated 27.1 low 28 {"input_tokens":20,"output_tokens":10,"cost":0.5,"raw":{"totalTokens":30,"inputTokens":20,"outputTokens":10}}
    run.completed 27.2 low 28 {"run_id":"run_1","stop_reason":"end_turn","usage":{"input_tokens":20,"output_tokens":10,"cost":0.5}}
    message.agent 30.0 low 31 {"run_id":"run_2","message_id":"msg_…qr5","content":"No."}
    run.completed 30.1 low 31 {"run_id":"run_2","stop_reason":"refusal"}
    "##);
}

#[test]
fn permissions_with_ids_that_come_again() {
    insta::assert_snapshot!(log(conversations::permissions()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    message.agent 8.0 low 9 {"run_id":"run_1","message_id":"msg_…qqf","content":"May I?"}
    tool.call 8.1 low 9 {"run_id":"run_1","tool_call_id":"t1","title":"rm","status":"pending"}
    run.waiting 8.2 low 9 {"run_id":"run_1","wait_id":"wait_8","wait_kind":"permission","resume_token_id":"rt_8","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    tool.update 9.0 low 10 {"run_id":"run_1","tool_call_id":"t1","status":"in_progress"}
    tool.update 11.0 low 12 {"run_id":"run_1","tool_call_id":"t1","status":"completed"}
    tool.call 12.0 low 13 {"run_id":"run_1","tool_call_id":"t1","title":"rm","status":"pending"}
    run.waiting 12.1 low 13 {"run_id":"run_1","wait_id":"wait_12","wait_kind":"permission","resume_token_id":"rt_12","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    run.waiting 13.0 low 14 {"run_id":"run_1","wait_id":"wait_13","wait_kind":"permission","resume_token_id":"rt_13","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":"a","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    run.resumed 14.0 low 15 {"run_id":"run_1","wait_id":"wait_13","how":"withdrawn"}
    input.queued 14.1 low 15 {"run_id":"run_1","input_seq":6,"what":"answer","line":"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32800,\"message\":\"the request was cancelled\"}}\n","sha256":""}
    agent.notice 17.0 low 18 {"run_id":"run_1","what":"unserved_request","text":"craft/drainMidTurnQueue","raw":{"jsonrpc":"2.0","id":7,"method":"craft/drainMidTurnQueue","params":{}}}
    input.queued 17.1 low 18 {"run_id":"run_1","input_seq":7,"what":"answer","line":"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32601,\"message\":\"this client does not serve the method\"}}\n","sha256":""}
    agent.notice 19.0 low 20 {"run_id":"run_1","what":"unserved_request","text":"fs/read_text_file","raw":{"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{"path":"/x"}}}
    input.queued 19.1 low 20 {"run_id":"run_1","input_seq":8,"what":"answer","line":"{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":{\"code\":-32601,\"message\":\"this client does not serve the method\"}}\n","sha256":""}
    agent.notice 21.0 low 22 {"run_id":"run_1","what":"unserved_request","text":"session/request_permission","raw":{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{}}}
    input.queued 21.1 low 22 {"run_id":"run_1","input_seq":9,"what":"answer","line":"{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32602,\"message\":\"the request cannot be read\"}}\n","sha256":""}
    run.waiting 22.0 low 23 {"run_id":"run_1","wait_id":"wait_22","wait_kind":"permission","resume_token_id":"rt_22","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":10,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    message.agent 24.0 low 25 {"run_id":"run_1","message_id":"msg_…qqz","content":"Done."}
    run.resumed 24.1 low 25 {"run_id":"run_1","wait_id":"wait_22","how":"withdrawn"}
    run.completed 24.2 low 25 {"run_id":"run_1","stop_reason":"end_turn"}
    agent.notice 25.0 low 26 {"what":"late_reply","raw":{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}}
    agent.notice 26.0 low 27 {"what":"unknown_reply","raw":{"jsonrpc":"2.0","id":99,"result":null}}
    agent.notice 27.0 low 28 {"what":"protocol_error","raw":{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}}
    "##);
}

#[test]
fn a_cancel_and_a_run_given_up() {
    insta::assert_snapshot!(log(conversations::cancelled()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    tool.call 7.0 low 8 {"run_id":"run_1","tool_call_id":"t1","title":"cargo test","tool_kind":"execute","status":"in_progress","raw":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cargo test","kind":"execute","status":"in_progress","rawInput":{"x":1.50}}}
    message.agent 9.0 low 10 {"run_id":"run_1","message_id":"msg_…qqg","content":"Work"}
    run.waiting 9.1 low 10 {"run_id":"run_1","wait_id":"wait_9","wait_kind":"permission","resume_token_id":"rt_9","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    run.waiting 10.0 low 11 {"run_id":"run_1","wait_id":"wait_10","wait_kind":"permission","resume_token_id":"rt_10","tool_call_id":"t1","request":{"jsonrpc":"2.0","id":4,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
    tool.update 15.0 low 11 {"run_id":"run_1","tool_call_id":"t1","status":"failed"}
    message.agent 16.0 low 17 {"run_id":"run_1","message_id":"msg_…qqk","content":"ing"}
    run.cancelled 16.1 low 17 {"run_id":"run_1","by":"user"}
    agent.notice 20.0 low 18 {"what":"late_reply","raw":{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}}
    message.agent 21.0 low 22 {"message_id":"msg_…qqt","content":"Yes, well","partial":true}
    agent.exited 21.1 low 22 {"code":0}
    "##);
}

#[test]
fn a_load_is_kept_apart_and_compared() {
    insta::assert_snapshot!(log(conversations::load()), @r##"
    agent.ready 14.0 low 15 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    session.restored 14.1 low 15 {"method":"load","verdict":"continued","counts":{"expected":4,"found":4,"prompts":3,"answers":2,"tools":1}}
    message.agent 17.0 low 18 {"run_id":"run_3","message_id":"msg_…qqr","content":"Here I am."}
    run.completed 17.1 low 18 {"run_id":"run_3","stop_reason":"end_turn"}
    "##);
}

#[test]
fn a_replay_after_the_answer_is_kept_apart_too() {
    insta::assert_snapshot!(log(conversations::late_replay()), @r##"
    agent.ready 6.0 low 7 {"info":{"name":"gemini-cli","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    session.restored 6.1 low 7 {"method":"load","verdict":"unverified","counts":{"expected":2,"found":1,"prompts":1,"answers":0,"tools":0}}
    usage.updated 13.0 low 10 {"input_tokens":0,"output_tokens":0,"cost":0.5,"raw":{"sessionUpdate":"usage_update","used":10,"size":200,"cost":{"amount":0.5,"currency":"USD"}}}
    tool.update 14.0 low 15 {"run_id":"run_2","tool_call_id":"t1","status":"in_progress"}
    message.agent 16.0 low 17 {"run_id":"run_2","message_id":"msg_…qqq","content":"new"}
    run.completed 16.1 low 17 {"run_id":"run_2","stop_reason":"end_turn"}
    "##);
}

#[test]
fn a_question_and_a_turn_that_fails() {
    insta::assert_snapshot!(log(conversations::elicitation()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    message.agent 8.0 low 6 {"message_id":"msg_…qqf","content":"Between turns."}
    message.agent 10.0 low 11 {"run_id":"run_1","message_id":"msg_…qqh","content":"Which?"}
    run.waiting 10.1 low 11 {"run_id":"run_1","wait_id":"wait_10","wait_kind":"question","resume_token_id":"rt_10","request":{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"Colour?","requestedSchema":{"type":"object","properties":{"c":{"type":"string","enum":["red","green"]}},"required":["c"]}}}}
    agent.notice 12.0 low 13 {"run_id":"run_1","what":"elicitation_complete","text":"elicitation/complete","raw":{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}}
    run.failed 13.0 low 14 {"run_id":"run_1","error":"Internal error: model gone (-32603)"}
    message.agent 17.0 low 15 {"message_id":"msg_…qqp","content":"After the end. Still after."}
    message.agent 19.0 low 20 {"run_id":"run_2","message_id":"msg_…qqt","content":"Sure."}
    run.completed 19.1 low 20 {"run_id":"run_2","stop_reason":"end_turn"}
    "##);
}

#[test]
fn noise_of_all_sorts() {
    insta::assert_snapshot!(log(conversations::noise()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    agent.notice 8.0 low 7 {"run_id":"run_1","what":"noise","text":"Loading plugins..."}
    agent.notice 9.0 low 7 {"run_id":"run_1","what":"noise","text":"\u001b[31mred\u001b[0m ��"}
    agent.notice 12.0 low 7 {"run_id":"run_1","what":"noise","text":"\"a bare string\""}
    agent.notice 13.0 low 7 {"run_id":"run_1","what":"noise","text":"[{\"jsonrpc\":\"2.0\"}]"}
    agent.notice 14.0 low 7 {"run_id":"run_1","what":"truncated_line","text":"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"upd"}
    agent.notice 15.0 low 7 {"run_id":"run_1","what":"noise","raw":{"hello":1}}
    agent.notice 17.0 low 7 {"run_id":"run_1","what":"unknown_notification","text":"_x/y","raw":{"jsonrpc":"2.0","method":"_x/y","params":{"a":1}}}
    agent.notice 18.0 low 7 {"run_id":"run_1","what":"unknown_update","text":"tool_call","raw":{"sessionUpdate":"tool_call"}}
    agent.notice 19.0 low 7 {"run_id":"run_1","what":"unknown_update","text":"agent_message_chunk","raw":{"sessionUpdate":"agent_message_chunk"}}
    agent.notice 20.0 low 7 {"run_id":"run_1","what":"unknown_update","text":"","raw":{"jsonrpc":"2.0","method":"session/update"}}
    agent.notice 21.0 low 7 {"run_id":"run_1","what":"notice","text":"Careful: hot","raw":{"sessionUpdate":"notice","severity":"warning","title":"Careful","description":"hot"}}
    message.agent 23.0 low 24 {"run_id":"run_1","message_id":"msg_…qqf","content":"Hello"}
    run.completed 23.1 low 24 {"run_id":"run_1","stop_reason":"end_turn"}
    agent.notice 24.0 low 25 {"what":"unterminated_line","text":"{\"jsonrpc\":\"2.0\",\"id\":3,\"res"}
    agent.exited 25.0 low 26 {"signal":9}
    "##);
}

#[test]
fn a_tools_update_between_two_pieces_and_a_death() {
    insta::assert_snapshot!(log(conversations::killed()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s1"}
    agent.notice 5.1 low 6 {"what":"session_options","raw":{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}}
    tool.call 7.0 low 8 {"run_id":"run_1","tool_call_id":"t1","title":"cargo test","tool_kind":"execute","status":"in_progress","raw":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cargo test","kind":"execute","status":"in_progress","rawInput":{"x":1.50}}}
    tool.call 8.0 low 9 {"run_id":"run_1","tool_call_id":"t2","title":"cargo test","tool_kind":"execute","status":"pending","raw":{"sessionUpdate":"tool_call","toolCallId":"t2","title":"cargo test","kind":"execute","status":"pending","rawInput":{"x":1.50}}}
    tool.update 9.0 low 10 {"run_id":"run_1","tool_call_id":"t2","status":"completed"}
    tool.update 11.0 low 10 {"run_id":"run_1","tool_call_id":"t1","status":"in_progress"}
    usage.updated 12.0 low 10 {"input_tokens":0,"output_tokens":0,"cost":0.5,"raw":{"sessionUpdate":"usage_update","used":10,"size":200,"cost":{"amount":0.5,"currency":"USD"}}}
    message.agent 14.0 low 15 {"run_id":"run_1","message_id":"msg_…qqj","content":"Half a message","partial":true}
    run.interrupted 14.1 low 15 {"run_id":"run_1","reason":"agent_exit","uncertain":[{"tool_call_id":"t1","title":"cargo test","kind":"execute"}]}
    "##);
}

#[test]
fn an_agent_that_refuses_and_repeats_itself_before_it_is_ready() {
    insta::assert_snapshot!(log(conversations::setup_noise()), @r##"
    agent.notice 4.0 low 3 {"what":"duplicate_reply","text":"the greeting was answered before"}
    message.agent 6.0 low 3 {"message_id":"msg_…qqd","content":"Welcome"}
    agent.notice 8.0 low 3 {"what":"request_refused","text":"Session not found (-32002)","raw":{"input":2,"code":-32002,"message":"Session not found"}}
    agent.ready 11.0 low 9 {"info":{"name":"x","version":"1.2.3"},"capabilities":{"loadSession":true},"cursor":"s2"}
    message.agent 12.0 low 12 {"message_id":"msg_…qqh","content":" to you"}
    agent.notice 13.0 low 12 {"what":"duplicate_reply","text":"there is a session already"}
    message.thought 14.0 low 14 {"message_id":"msg_…qqm","content":"ready"}
    usage.updated 15.0 low 14 {"input_tokens":0,"output_tokens":0,"cost":0.5,"raw":{"sessionUpdate":"usage_update","used":10,"size":200,"cost":{"amount":0.5,"currency":"USD"}}}
    agent.exited 16.0 low 17 {"code":1}
    run.interrupted 16.1 low 17 {"run_id":"run_2","reason":"agent_exit"}
    "##);
}

#[test]
fn version_two_ends_a_turn_when_idle() {
    insta::assert_snapshot!(log(conversations::second()), @r##"
    agent.ready 5.0 low 6 {"info":{"name":"x","version":"2"},"capabilities":{"protocolVersion":2,"session":{}},"cursor":"s1"}
    agent.notice 9.0 low 10 {"run_id":"run_1","what":"prompt_accepted","raw":{"jsonrpc":"2.0","id":3,"result":{"messageId":"u1"}}}
    tool.update 13.0 low 11 {"run_id":"run_1","tool_call_id":"t1","title":"ls","status":"in_progress"}
    tool.update 14.0 low 11 {"run_id":"run_1","tool_call_id":"t1","status":"completed"}
    message.agent 15.0 low 16 {"run_id":"run_1","message_id":"msg_…qqk","content":"Working."}
    run.completed 15.1 low 16 {"run_id":"run_1","stop_reason":"end_turn"}
    run.failed 18.0 low 19 {"run_id":"run_2","error":"no (-32600)"}
    "##);
}

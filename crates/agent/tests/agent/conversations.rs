//! Conversations with agents, written by hand after what real ones send.

use rekindle_holder::journal::OutFlags;

use crate::stage::Step::{
    self, Accept, AcceptAround, Answer, Cancel, Exit, GiveUp, Greet, Open, Past, Prompt, Say, SayInParts,
    SayOddly, Settle, Start, Vanish,
};

/// A conversation with an agent.
pub(crate) struct Conversation {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
}

/// An update.
fn update(fields: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{{fields}}}}}}}"#
    )
}

fn chunk(kind: &str, text: &str) -> String {
    update(&format!(r#""sessionUpdate":"{kind}_chunk","content":{{"type":"text","text":"{text}"}}"#))
}

fn named(text: &str, id: &str) -> Step {
    let fields =
        r#""sessionUpdate":"agent_message_chunk","messageId":"ID","content":{"type":"text","text":"TEXT"}"#;
    Say(update(&fields.replace("ID", id).replace("TEXT", text)))
}

fn agent(text: &str) -> Step {
    Say(chunk("agent_message", text))
}

fn thought(text: &str) -> Step {
    Say(chunk("agent_thought", text))
}

fn user(text: &str) -> Step {
    Say(chunk("user_message", text))
}

fn tool(id: &str, status: &str) -> Step {
    let fields = r#""sessionUpdate":"tool_call","toolCallId":"ID","title":"cargo test","kind":"execute","status":"STATUS","rawInput":{"x":1.50}"#;
    Say(update(&fields.replace("ID", id).replace("STATUS", status)))
}

fn tool_update(id: &str, status: &str) -> Step {
    let fields = r#""sessionUpdate":"tool_call_update","toolCallId":"ID","status":"STATUS""#;
    Say(update(&fields.replace("ID", id).replace("STATUS", status)))
}

fn usage() -> Step {
    Say(update(
        r#""sessionUpdate":"usage_update","used":10,"size":200,"cost":{"amount":0.5,"currency":"USD"}"#,
    ))
}

fn reply(result: &str) -> Step {
    Say(format!(r#"{{"jsonrpc":"2.0","id":$,"result":{result}}}"#))
}

fn done() -> Step {
    reply(r#"{"stopReason":"end_turn"}"#)
}

fn permission(id: &str) -> Step {
    let request = r#"{"jsonrpc":"2.0","id":ID,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"rm"},"options":[{"optionId":"n","name":"No","kind":"reject_once"},{"optionId":"y","name":"Yes","kind":"allow_once"}]}}"#;
    Say(request.replace("ID", id))
}

fn greeting() -> Vec<Step> {
    greeting_of("x")
}

fn greeting_of(name: &str) -> Vec<Step> {
    let greeted = r#"{"protocolVersion":1,"agentInfo":{"name":"NAME","version":"1.2.3"},"agentCapabilities":{"loadSession":true},"authMethods":[]}"#;
    vec![Start, Greet, Accept, reply(&greeted.replace("NAME", name))]
}

fn new_session() -> Vec<Step> {
    let opened = r#"{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[]}}"#;
    [greeting(), vec![Open("new"), Accept, reply(opened)]].concat()
}

fn conversation(name: &'static str, begin: Vec<Step>, steps: Vec<Step>) -> Conversation {
    Conversation { name, steps: [begin, steps].concat() }
}

/// All of them.
pub(crate) fn all() -> Vec<Conversation> {
    vec![
        stream(),
        permissions(),
        cancelled(),
        load(),
        late_replay(),
        elicitation(),
        noise(),
        killed(),
        setup_noise(),
        second(),
        settings(),
    ]
}

pub(crate) fn stream() -> Conversation {
    let steps = vec![
        Say(update(r#""sessionUpdate":"available_commands_update","availableCommands":[{"name":"init"}]"#)),
        Prompt("run tests"),
        Accept,
        user("run tests"),
        thought("Hm"),
        thought("m."),
        agent("I "),
        usage(),
        agent("look."),
        tool("t1", "pending"),
        tool_update("t1", "in_progress"),
        SayInParts(update(
            r#""sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}]"#,
        )),
        Say(update(
            r#""sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"pending"}]"#,
        )),
        named("Al", "m1"),
        named("l ", "m1"),
        tool_update("t0", "in_progress"),
        named("good.", "m1"),
        named("Bye.", "m2"),
        Say(update(
            r#""sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"image","data":"aGk=","mimeType":"image/png"}"#,
        )),
        Say(update(r#""sessionUpdate":"current_mode_update","currentModeId":"code""#)),
        Say(update(r#""sessionUpdate":"wholly_new","x":[1,2]"#)),
        reply(r#"{"stopReason":"end_turn","usage":{"totalTokens":30,"inputTokens":20,"outputTokens":10}}"#),
        Prompt("again"),
        Accept,
        agent("No."),
        reply(r#"{"stopReason":"refusal"}"#),
    ];
    conversation("stream", new_session(), steps)
}

pub(crate) fn permissions() -> Conversation {
    let steps = vec![
        Prompt("delete it"),
        Accept,
        agent("May I?"),
        permission("0"),
        Answer("allow_once"),
        tool_update("t1", "in_progress"),
        Accept,
        tool_update("t1", "completed"),
        // The same id again, and two at once.
        permission("0"),
        permission("\"a\""),
        Answer("reject_once"),
        // `$` is a placeholder here, but may be escaped.
        Say(r#"{"jsonrpc":"2.0","method":"\u0024/cancel_request","params":{"requestId":"a"}}"#.into()),
        Accept,
        Say(r#"{"jsonrpc":"2.0","id":7,"method":"craft/drainMidTurnQueue","params":{}}"#.into()),
        Accept,
        Say(r#"{"jsonrpc":"2.0","id":8,"method":"fs/read_text_file","params":{"path":"/x"}}"#.into()),
        Accept,
        Say(r#"{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{}}"#.into()),
        permission("10"),
        agent("Done."),
        Say(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#.into()),
        Say(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#.into()),
        Say(r#"{"jsonrpc":"2.0","id":99,"result":null}"#.into()),
        Say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#.into()),
    ];
    conversation("permissions", new_session(), steps)
}

pub(crate) fn cancelled() -> Conversation {
    let steps = vec![
        Prompt("work"),
        Accept,
        tool("t1", "in_progress"),
        agent("Work"),
        permission("3"),
        permission("4"),
        Cancel,
        agent("ing"),
        Accept,
        tool_update("t1", "failed"),
        Say(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#.into()),
        Prompt("more"),
        Accept,
        agent("Yes"),
        GiveUp,
        agent(", well"),
        done(),
        Exit(Some(0), None),
    ];
    conversation("cancelled", new_session(), steps)
}

pub(crate) fn load() -> Conversation {
    let begin = [vec![Past("one", "First  answer"), Past("two", "second")], greeting()].concat();
    let steps = vec![
        Open("load s1"),
        Accept,
        user("one"),
        thought("hm"),
        tool("old", "completed"),
        agent("First answer"),
        user("two"),
        Say(update(r#""sessionUpdate":"available_commands_update","availableCommands":[]"#)),
        agent("second"),
        usage(),
        user("cut"),
        reply("null"),
        Prompt("go on"),
        Accept,
        agent("Here I am."),
        done(),
    ];
    conversation("load", begin, steps)
}

pub(crate) fn late_replay() -> Conversation {
    // By its own word it is one that answers first and replays afterwards.
    let begin = [vec![Past("one", "first")], greeting_of("gemini-cli")].concat();
    let steps = vec![
        Open("load s1"),
        Accept,
        user("one"),
        reply("{}"),
        agent("first"),
        tool("old", "completed"),
        agent("more of old"),
        Prompt("a prompt in two parts"),
        AcceptAround(chunk("agent_message", "still old")),
        usage(),
        tool_update("t1", "in_progress"),
        agent("new"),
        done(),
    ];
    conversation("late replay", begin, steps)
}

pub(crate) fn elicitation() -> Conversation {
    let steps = vec![
        Prompt("ask me"),
        AcceptAround(chunk("agent_message", "Between turns.")),
        agent("Which?"),
        Say(r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"Colour?","requestedSchema":{"type":"object","properties":{"c":{"type":"string","enum":["red","green"]}},"required":["c"]}}}"#.into()),
        Answer("green"),
        Accept,
        Say(r#"{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}"#.into()),
        Say(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"model gone"}}}"#.into()),
        agent("After the end."),
        Prompt("go on"),
        AcceptAround(chunk("agent_message", " Still after.")),
        agent("Sure."),
        done(),
    ];
    conversation("elicitation", new_session(), steps)
}

pub(crate) fn noise() -> Conversation {
    let odd = |unterminated, noise, truncated| OutFlags { unterminated, noise, truncated };
    let steps = vec![
        Prompt("hello"),
        Accept,
        agent("He"),
        SayOddly(b"Loading plugins...", odd(false, true, false)),
        SayOddly(b"\x1b[31mred\x1b[0m \xff\xfe", odd(false, true, false)),
        SayOddly(b"", odd(false, true, false)),
        SayOddly(b"   \r", odd(false, true, false)),
        SayOddly(b"\"a bare string\"", odd(false, true, false)),
        SayOddly(b"[{\"jsonrpc\":\"2.0\"}]", odd(false, true, false)),
        SayOddly(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"upd",
            odd(false, false, true),
        ),
        SayOddly(b"{\"hello\":1}", odd(false, false, false)),
        Say(r#"{"jsonrpc":"2.0","method":"\u0024/progress"}"#.into()),
        Say(r#"{"jsonrpc":"2.0","method":"_x/y","params":{"a":1}}"#.into()),
        Say(update(r#""sessionUpdate":"tool_call""#)),
        Say(update(r#""sessionUpdate":"agent_message_chunk""#)),
        Say(r#"{"jsonrpc":"2.0","method":"session/update"}"#.into()),
        Say(update(r#""sessionUpdate":"notice","severity":"warning","title":"Careful","description":"hot""#)),
        agent("llo"),
        done(),
        SayOddly(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"res", odd(true, false, false)),
        Exit(None, Some(9)),
    ];
    conversation("noise", new_session(), steps)
}

/// A tool's update between two pieces of a message, and then a death.
pub(crate) fn killed() -> Conversation {
    let steps = vec![
        Prompt("work"),
        Accept,
        tool("t1", "in_progress"),
        tool("t2", "pending"),
        tool_update("t2", "completed"),
        agent("Half a "),
        tool_update("t1", "in_progress"),
        usage(),
        agent("message"),
        Vanish,
    ];
    conversation("killed", new_session(), steps)
}

/// An agent that talks, refuses and repeats itself before it is ready.
pub(crate) fn setup_noise() -> Conversation {
    let begin = [vec![Past("one", "first")], greeting()].concat();
    let steps = vec![
        reply(r#"{"protocolVersion":1,"agentInfo":{"name":"again"}}"#),
        agent("Welcome"),
        Open("load s1"),
        Accept,
        agent("part of a replay"),
        Say(r#"{"jsonrpc":"2.0","id":$,"error":{"code":-32002,"message":"Session not found"}}"#.into()),
        agent(" to you"),
        Open("new"),
        Accept,
        reply(r#"{"sessionId":"s2"}"#),
        thought("ready"),
        Say(r#"{"jsonrpc":"2.0","id":3,"result":{"sessionId":"s3"}}"#.into()),
        Prompt("go"),
        Accept,
        usage(),
        Exit(Some(1), None),
    ];
    conversation("setup noise", begin, steps)
}

/// Version 2: the prompt is answered at once, and the turn ends when the agent is idle.
pub(crate) fn second() -> Conversation {
    let greeted = r#"{"protocolVersion":2,"info":{"name":"x","version":"2"},"capabilities":{"session":{}}}"#;
    let begin =
        vec![Start, Greet, Accept, reply(greeted), Open("new"), Accept, reply(r#"{"sessionId":"s1"}"#)];
    let steps = vec![
        Say(update(r#""sessionUpdate":"state_update","state":"idle""#)),
        Prompt("work"),
        Accept,
        Say(update(r#""sessionUpdate":"state_update","state":"idle","stopReason":"end_turn""#)),
        reply(r#"{"messageId":"u1"}"#),
        Say(update(r#""sessionUpdate":"state_update","state":"running""#)),
        named("Wor", "a1"),
        Say(update(
            r#""sessionUpdate":"agent_message","messageId":"a1","content":[{"type":"text","text":"Working."}]"#,
        )),
        Say(update(
            r#""sessionUpdate":"tool_call_update","toolCallId":"t1","title":"ls","status":"in_progress""#,
        )),
        tool_update("t1", "completed"),
        Say(update(r#""sessionUpdate":"state_update","state":"idle","stopReason":"end_turn""#)),
        Say(update(r#""sessionUpdate":"state_update","state":"idle""#)),
        Prompt("fail"),
        Accept,
        Say(r#"{"jsonrpc":"2.0","id":$,"error":{"code":-32600,"message":"no"}}"#.into()),
    ];
    conversation("version 2", begin, steps)
}

/// What an agent with two modes and two models says when its session is there.
const OFFERED: &str = r#"{"sessionId":"s1","modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"plan"}]},"models":{"availableModels":[{"modelId":"small"},{"modelId":"large","name":"Large"}]}}"#;

/// Mode and model are set, changed while a turn goes on, and refused.
pub(crate) fn settings() -> Conversation {
    let begin = [greeting(), vec![Open("new"), Accept, reply(OFFERED)]].concat();
    let steps = vec![
        Settle("plan", "Large"),
        Accept,
        agent("Hello."),
        reply("{}"),
        Settle("plan", "Large"),
        Accept,
        reply("null"),
        Prompt("work"),
        Accept,
        agent("I "),
        Settle("ask", "Large"),
        Accept,
        agent("work."),
        reply("{}"),
        Say(r#"{"jsonrpc":"2.0","id":$,"result":{}}"#.into()),
        Say(r#"{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}"#.into()),
        Settle("ask", "small"),
        Accept,
        Say(r#"{"jsonrpc":"2.0","id":$,"error":{"code":-32603,"message":"not on your plan"}}"#.into()),
    ];
    conversation("settings", begin, steps)
}

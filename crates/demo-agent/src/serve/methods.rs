//! What each message means. Everything is answered at once except prompts, and loads that go on with a turn: those
//! are answered by the turn.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Shared;
use super::rpc_error::{
    AUTH_REQUIRED, Answer, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
    RpcError, text,
};
use super::settings;
use super::setup::{self, LOGIN};
use crate::LoadOptions;
use crate::record::{Record, first, interrupted, merge, replay, without_cut};
use crate::script::{Crash, Prompt, Step, parse};
use crate::sessions::{Session, random_id};
use crate::turn::{self, Carried, Job, Reply, Signal};
use crate::wire::lock;

/// Handles one line; tells whether it is an answer that a turn waited for.
pub(super) fn handle(shared: &Arc<Shared>, line: &[u8]) -> bool {
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            shared.wire.refuse(&Value::Null, PARSE_ERROR, &format!("parse error: {error}"));
            return false;
        }
    };
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").unwrap_or(&Value::Null);
    match (method, message.get("id")) {
        (Some(method), Some(id)) => match request(shared, id, method, params) {
            Ok(Some(result)) => shared.wire.reply(id, &result),
            Ok(None) => {}
            Err(RpcError(code, text)) => shared.wire.refuse(id, code, &text),
        },
        (Some(method), None) => notified(shared, method, params),
        (None, Some(id)) => return answered(shared, id, &message),
        (None, None) => shared.wire.refuse(&Value::Null, INVALID_REQUEST, "this is no message"),
    }
    false
}

fn request(shared: &Arc<Shared>, id: &Value, method: &str, params: &Value) -> Answer {
    match method {
        "initialize" => Ok(Some(initialize(shared, params))),
        "authenticate" => authenticate(shared, params),
        "session/new" => new_session(shared, params),
        "session/load" if !shared.options.no_load => load(shared, id, params, true),
        "session/resume" if !shared.options.no_resume => load(shared, id, params, wants_replay(params)?),
        "session/list" => Ok(Some(list(shared, params))),
        "session/close" => close(shared, params),
        "session/set_mode" | "session/set_model" | "session/set_config_option" => {
            settings::set(shared, id, method, params)
        }
        "session/prompt" => prompt(shared, id, params),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("method not found: {method}"))),
    }
}

fn notified(shared: &Shared, method: &str, params: &Value) {
    let turns = lock(&shared.turns);
    match method {
        "session/cancel" => {
            if let Some(turn) = params["sessionId"].as_str().and_then(|id| turns.get(id)) {
                let _ = turn.signals.send(Signal::Cancel);
            }
        }
        "$/cancel_request" => {
            let meant = turns.values().filter(|turn| turn.request == params["requestId"]);
            for turn in meant {
                let _ = turn.signals.send(Signal::RequestCancelled);
            }
        }
        _ => {}
    }
}

fn answered(shared: &Shared, id: &Value, message: &Value) -> bool {
    // An answer to nothing we asked is dropped, as the SDKs do.
    let Some(session) = lock(&shared.asked).remove(&id.to_string()) else { return false };
    let outcome = match message.get("error") {
        Some(error) => Err(error["message"].as_str().unwrap_or("an error").to_owned()),
        None => Ok(message.get("result").cloned().unwrap_or_default()),
    };
    if let Some(turn) = lock(&shared.turns).get(&session) {
        let _ = turn.signals.send(Signal::Answer(id.to_string(), outcome));
    }
    true
}

fn initialize(shared: &Shared, params: &Value) -> Value {
    let asked = params["protocolVersion"].as_u64().unwrap_or(1);
    let version = if asked >= 2 && shared.options.protocol >= 2 { 2 } else { 1 };
    lock(&shared.process).protocol = version;
    if version == 2 { setup::initialized_v2(&shared.options) } else { setup::initialized(&shared.options) }
}

fn authenticate(shared: &Shared, params: &Value) -> Answer {
    if params["methodId"] != LOGIN {
        return Err(RpcError::new(INVALID_PARAMS, "there is no such way to log in"));
    }
    lock(&shared.process).logged_in = true;
    Ok(Some(json!({})))
}

fn may_begin(shared: &Shared) -> Result<(), RpcError> {
    if shared.options.auth_required && !lock(&shared.process).logged_in {
        return Err(RpcError::new(AUTH_REQUIRED, "authentication required"));
    }
    Ok(())
}

fn new_session(shared: &Shared, params: &Value) -> Answer {
    may_begin(shared)?;
    let id = random_id();
    if shared.options.load.load_destroys_within.is_some() {
        shared.sessions.opened(&id);
    }
    shared.sessions.insert(&id, Session::new(text(params, "cwd")?, Vec::new()));
    let mut result = setup_result(shared, &id);
    result["sessionId"] = json!(id);
    Ok(Some(result))
}

/// Returns what setting up a session is answered with.
pub(crate) fn setup_result(shared: &Shared, session: &str) -> Value {
    shared
        .sessions
        .with(session, |session| setup::settings(&shared.options, session))
        .unwrap_or_else(|| json!({}))
}

/// Tells what a resume in version 2 asks for; in version 1 nobody asks.
fn wants_replay(params: &Value) -> Result<bool, RpcError> {
    match (params.get("replayFrom"), params["replayFrom"]["type"].as_str()) {
        (None | Some(Value::Null), _) => Ok(false),
        (_, Some("start")) => Ok(true),
        _ => Err(RpcError::new(INVALID_PARAMS, "`replayFrom` is not known")),
    }
}

fn load(shared: &Arc<Shared>, request: &Value, params: &Value, show: bool) -> Answer {
    may_begin(shared)?;
    let (id, cwd) = (text(params, "sessionId")?, text(params, "cwd")?);
    if lock(&shared.turns).contains_key(id) {
        return Err(RpcError::new(INTERNAL_ERROR, "a turn is running in this session"));
    }
    let kept = || shared.sessions.load(id).ok_or_else(|| RpcError::no_session(id));
    let history = match shared.options.load {
        LoadOptions { refuse_load: true, .. } => {
            return Err(RpcError::new(INTERNAL_ERROR, "the session cannot be loaded"));
        }
        LoadOptions { load_empty: true, .. } => Vec::new(),
        LoadOptions { load_short: Some(most), .. } => first(kept()?, most),
        LoadOptions { forget_cut: true, .. } => without_cut(kept()?, false),
        LoadOptions { forget_first: true, .. } => without_cut(kept()?, true),
        LoadOptions { load_hangs: true, .. } => return Ok(None),
        LoadOptions { load_destroys_within: Some(limit), .. } => {
            if shared.sessions.opened(id).is_some_and(|ago| ago < limit) {
                shared.sessions.forget(id);
                return Err(RpcError::new(INTERNAL_ERROR, "no previous sessions found"));
            }
            kept()?
        }
        _ => kept()?,
    };
    let shown = if show { replay(&history) } else { Vec::new() };
    let shown = if shared.options.merge_messages { merge(shown) } else { shown };
    match shared.options.replay_late {
        None => shown.into_iter().for_each(|update| shared.wire.update(id, update)),
        Some(late) => {
            let (shared, id) = (shared.clone(), id.to_owned());
            std::thread::spawn(move || {
                std::thread::sleep(late);
                shown.into_iter().for_each(|update| shared.wire.update(&id, update));
            });
        }
    }
    let rest = interrupted(&history).map(|(text, at)| (text.to_owned(), at.map_or(0, |at| at + 1)));
    let quiet = shared.options.quiet_after_load;
    shared.sessions.insert(id, Session { quiet, ..Session::new(cwd, history) });
    if shared.options.load.load_continues
        && let Some((text, from)) = rest
    {
        let reply = Reply::Load(request.clone());
        turn::start(shared, Job { session: id.to_owned(), reply, text, from, carried: Carried::default() });
        return Ok(None);
    }
    if lock(&shared.process).protocol == 2 {
        shared.wire.update(id, json!({"sessionUpdate": "state_update", "state": "idle"}));
    }
    Ok(Some(setup_result(shared, id)))
}

fn list(shared: &Shared, params: &Value) -> Value {
    let wanted = params["cwd"].as_str();
    let mut rows = shared.sessions.list();
    rows.retain(|row| wanted.is_none_or(|cwd| row["cwd"] == cwd));
    json!({ "sessions": rows })
}

fn close(shared: &Shared, params: &Value) -> Answer {
    let id = text(params, "sessionId")?;
    if let Some(turn) = lock(&shared.turns).get(id) {
        let _ = turn.signals.send(Signal::Cancel);
    }
    if shared.sessions.close(id) { Ok(Some(json!({}))) } else { Err(RpcError::no_session(id)) }
}

fn prompt(shared: &Arc<Shared>, request: &Value, params: &Value) -> Answer {
    let id = text(params, "sessionId")?;
    let Some(blocks) = params["prompt"].as_array() else {
        return Err(RpcError::new(INVALID_PARAMS, "`prompt` is not a list"));
    };
    let parts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let text = parts.join("\n");
    if shared.sessions.with(id, |_| ()).is_none() {
        return Err(RpcError::no_session(id));
    }
    if lock(&shared.turns).contains_key(id) {
        return Err(RpcError::new(INVALID_REQUEST, "a turn is already running in this session"));
    }
    if let Prompt::Script(steps) = parse(&text)
        && steps.contains(&Step::Crash(Crash::Before))
    {
        std::process::exit(1);
    }
    let message_id = random_id();
    shared.sessions.record(id, Record::User { message_id: message_id.clone(), text: text.clone() });
    let reply = if lock(&shared.process).protocol == 2 {
        // In version 2 the answer says that the prompt was taken, and an update that the turn is over.
        shared.wire.reply(request, &json!({"messageId": message_id}));
        shared.wire.update(id, json!({"sessionUpdate": "state_update", "state": "running"}));
        Reply::Idle
    } else {
        Reply::Prompt(request.clone())
    };
    turn::start(shared, Job { session: id.to_owned(), reply, text, from: 0, carried: Carried::default() });
    Ok(None)
}

//! Changes of a session's mode and model: taken or refused, at once or after a while. While one is not answered, other
//! messages are: a client that does not wait for the answer is found out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Shared;
use super::rpc_error::{Answer, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError, text};
use super::setup::{self, MODEL_OPTION, MODELS, MODES};
use crate::Models;
use crate::turn::reach_barrier;

/// How long a held setting waits for its test before it is answered all the same.
const HELD: Duration = Duration::from_secs(60);

/// How often it looks.
const TICK: Duration = Duration::from_millis(2);

/// Answers a setting, or has it answered later.
pub(super) fn set(shared: &Arc<Shared>, request: &Value, method: &str, params: &Value) -> Answer {
    let options = &shared.options;
    if options.slow_settings.is_zero() && options.hold_settings.is_none() {
        return apply_setting(shared, method, params);
    }
    let (at, request, method, params) =
        (Arc::clone(shared), request.clone(), method.to_owned(), params.clone());
    let later = move || {
        std::thread::sleep(at.options.slow_settings);
        wait_at_barrier(&at);
        match apply_setting(&at, &method, &params) {
            Ok(answer) => at.wire.reply(&request, &answer.unwrap_or_default()),
            Err(RpcError(code, text)) => at.wire.refuse(&request, code, &text),
        }
    };
    let spawned = std::thread::Builder::new().name("setting".into()).spawn(later);
    spawned.map(|_| None).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

/// Meets a test, if one is to be met.
fn wait_at_barrier(shared: &Shared) {
    let Some(name) = &shared.options.hold_settings else { return };
    let Ok(go) = reach_barrier(&shared.options, name) else { return };
    let until = Instant::now() + HELD;
    while !go.exists() && Instant::now() < until {
        std::thread::sleep(TICK);
    }
}

fn apply_setting(shared: &Shared, method: &str, params: &Value) -> Answer {
    let id = text(params, "sessionId")?;
    let models = shared.options.models;
    let set = match method {
        "session/set_mode" if !shared.options.no_modes => {
            let mode = chosen(shared, text(params, "modeId")?, &MODES, "mode")?;
            shared.sessions.with(id, |session| mode.clone_into(&mut session.mode)).map(|()| json!({}))
        }
        "session/set_model" if models == Models::Field => {
            let model = chosen(shared, text(params, "modelId")?, &MODELS, "model")?;
            shared.sessions.with(id, |session| model.clone_into(&mut session.model)).map(|()| json!({}))
        }
        "session/set_config_option" if models == Models::Option => {
            let value = text(params, "value")?;
            if text(params, "configId")? != MODEL_OPTION {
                return Err(RpcError::new(INVALID_PARAMS, "there is no such option"));
            }
            let model = chosen(shared, value, &MODELS, "model")?;
            shared.sessions.with(id, |session| {
                model.clone_into(&mut session.model);
                json!({"configOptions": setup::config_options(session)})
            })
        }
        _ => return Err(RpcError::new(METHOD_NOT_FOUND, format!("method not found: {method}"))),
    };
    set.map(Some).ok_or_else(|| RpcError::no_session(id))
}

fn chosen<'a>(shared: &Shared, wanted: &'a str, offered: &[&str], what: &str) -> Result<&'a str, RpcError> {
    if shared.options.refuse_settings {
        return Err(RpcError::new(INTERNAL_ERROR, format!("the {what} cannot be changed")));
    }
    if !offered.contains(&wanted) {
        return Err(RpcError::new(INVALID_PARAMS, format!("there is no {what} {wanted}")));
    }
    Ok(wanted)
}

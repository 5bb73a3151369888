//! What the agent says of itself and of a session's settings: capabilities, modes and options.

use serde_json::{Value, json};

use crate::sessions::{DEFAULT_MODE, DEFAULT_MODEL, Session};
use crate::{Models, Options};

/// The only way to log in.
pub(super) const LOGIN: &str = "demo-login";

/// Modes: in the second one nothing is asked.
pub(super) const MODES: [&str; 2] = [DEFAULT_MODE, "yolo"];

/// Models of a config option that changes nothing else.
pub(super) const MODELS: [&str; 2] = [DEFAULT_MODEL, "demo-large"];

/// The config option.
pub(super) const MODEL_OPTION: &str = "model";

/// Returns the answer to `initialize` in version 1.
pub(super) fn initialized(options: &Options) -> Value {
    let mut sessions = json!({"list": {}, "close": {}});
    if !options.no_resume {
        sessions["resume"] = json!({});
    }
    let login = json!({"id": LOGIN, "name": "Log in", "description": "Always succeeds"});
    json!({
        "protocolVersion": 1,
        "agentInfo": info(options),
        "agentCapabilities": {
            "loadSession": !options.no_load,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": false, "sse": false},
            "sessionCapabilities": sessions,
        },
        "authMethods": if options.auth_required { vec![login] } else { Vec::new() },
    })
}

/// Returns the answer to `initialize` in version 2.
pub(super) fn initialized_v2(options: &Options) -> Value {
    json!({
        "protocolVersion": 2,
        "info": info(options),
        "capabilities": {"session": {"prompt": {"embeddedContext": {}}}},
        "authMethods": [],
    })
}

fn info(options: &Options) -> Value {
    json!({"name": options.name, "title": "Demo agent", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns the settings of a session.
pub(super) fn settings(options: &Options, session: &Session) -> Value {
    let mut settings = json!({});
    if !options.no_modes {
        let modes: Vec<Value> = MODES.iter().map(|id| json!({"id": id, "name": id})).collect();
        settings["modes"] = json!({"currentModeId": session.mode, "availableModes": modes});
    }
    match options.models {
        Models::Option => settings["configOptions"] = config_options(session),
        Models::Field => {
            let models: Vec<Value> = MODELS.iter().map(|id| json!({"modelId": id, "name": id})).collect();
            settings["models"] = json!({"currentModelId": session.model, "availableModels": models});
        }
        Models::None => {}
    }
    settings
}

/// Returns the config options of a session.
pub(super) fn config_options(session: &Session) -> Value {
    let models: Vec<Value> = MODELS.iter().map(|value| json!({"value": value, "name": value})).collect();
    json!([{
        "id": MODEL_OPTION,
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": session.model,
        "options": models,
    }])
}

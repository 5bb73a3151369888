//! `rekindle stop` of a daemon elsewhere: it is asked to leave, and has left when nobody listens there any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_client::Client;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::server::Server;
use serde_json::json;

use super::Context;
use crate::acknowledge::acknowledge;

/// How often it is looked whether it has left.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(
    context: &Context,
    server: &Arc<Server>,
    all: bool,
    within: Duration,
) -> Result<Exit, Failure> {
    let client = Client::elsewhere(Arc::clone(server))?;
    client.shut_down(all)?;
    let deadline = Instant::now() + within;
    loop {
        match Client::elsewhere(Arc::clone(server)) {
            Err(failure) if failure.exit == Exit::NoDaemon => break,
            // Another has taken its place already.
            Ok(next) if next.target().pid() != client.target().pid() => break,
            _ if Instant::now() >= deadline => {
                let error =
                    anyhow::anyhow!("the daemon at {} was asked to leave and is still there", server.url);
                return Err(Failure::failed("daemon_stays", error).hint("its log may say why"));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
    let text = if all { "stopped, with its agents" } else { "stopped; its agents work on" };
    acknowledge(context.json, json!({"stopped": true}).to_string().as_bytes(), text)
}

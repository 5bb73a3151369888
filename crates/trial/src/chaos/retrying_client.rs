//! A client that retries: it asks whichever daemon serves, again and again until one answers, as a program would that must get through.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rekindle_client::daemon_file::{self, DaemonState};
use rekindle_client::failure::Failure;
use rekindle_client::http::{self, Ask};
use rekindle_client::target::Target;
use rekindle_lab::look_for;
use serde_json::Value;
use tokio::runtime::Runtime;

/// How long one answer may take: a daemon that is stopped never gives one.
const ANSWER: Duration = Duration::from_secs(3);

/// How long anything may take over which daemons come and go.
pub(super) const PATIENCE: Duration = rekindle_lab::PATIENCE.saturating_mul(2);

/// How often it is tried.
const AGAIN: Duration = Duration::from_millis(15);

/// A cancel token: everything is to end, because of Ctrl-C, or a part of it.
#[derive(Debug, Clone, Default)]
pub(super) struct CancelToken {
    own: Arc<AtomicBool>,
    all: Option<Arc<AtomicBool>>,
}

impl CancelToken {
    /// Returns one that can be cancelled alone, and is cancelled with this one.
    pub(super) fn child(&self) -> CancelToken {
        CancelToken { own: Arc::default(), all: Some(self.own.clone()) }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        let all = self.all.as_ref().is_some_and(|all| all.load(Ordering::Relaxed));
        all || self.own.load(Ordering::Relaxed)
    }

    pub(super) fn cancel(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Pauses; tells whether to go on.
    pub(super) fn pause(&self, millis: u64) -> bool {
        let until = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < until && !self.is_cancelled() {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        !self.is_cancelled()
    }

    /// Looks until something is there; none if it takes too long, or everything is to end.
    pub(super) fn wait_for<T>(&self, within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        look_for(within, AGAIN, || look().map(Some).or_else(|| self.is_cancelled().then_some(None))).flatten()
    }
}

/// An answer: its status and body.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn is_yes(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the code of a refusal.
    pub(super) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// Returns a field of the body that is text.
    pub(super) fn text(&self, field: &str) -> Option<String> {
        self.body[field].as_str().map(str::to_owned)
    }
}

/// Asks a home's daemons.
pub(super) struct RetryingClient {
    runtime: Runtime,
    home: PathBuf,
    cancel: CancelToken,
}

impl RetryingClient {
    pub(super) fn new(home: &Path, cancel: CancelToken) -> Result<RetryingClient, Failure> {
        let runtime = http::runtime().map_err(|error| Failure::failed("runtime", error))?;
        Ok(RetryingClient { runtime, home: home.to_owned(), cancel })
    }

    /// Asks once; none if nobody answers.
    pub(super) fn once(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<Reply> {
        let DaemonState::Lives(place) = daemon_file::find_daemon(&self.home) else { return None };
        let headers = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let body = body.map(Value::to_string);
        let ask = Ask { method, path: path.to_owned(), body, headers, within: Some(ANSWER) };
        let (status, body) = http::call(&self.runtime, &Target::local(&self.home, place), &ask).ok()?;
        Some(Reply { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
    }

    /// Asks until somebody answers for good; none if that takes too long.
    pub(super) fn insist(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Option<Reply> {
        self.cancel.wait_for(PATIENCE, || {
            let reply = self.once(method, path, body, key)?;
            // Not now: it has just begun, is about to leave, or does not know what came of it.
            let later = reply.status == 503 || reply.code() == "agent_unreachable" || reply.code() == "busy";
            (!later).then_some(reply)
        })
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.insist("GET", path, None, None).filter(Reply::is_yes).map(|reply| reply.body)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Option<Reply> {
        self.insist("POST", path, Some(body), None)
    }
}

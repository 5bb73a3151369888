//! HTTP over the daemon's socket, or to one elsewhere: one request a connection, on a runtime of this thread alone. What goes wrong on
//! the way is told apart by whether the request may have arrived. Whoever answers at a socket first says which home it serves: a
//! copied or moved home names a socket that may be another's, and that one is asked for nothing.

use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rekindle_store::home::HomeId;
use serde::Deserialize;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};

pub use super::request_error::RequestError;
use super::request_error::Stream;
use super::target::Target;

/// How long the daemon may take to take a connection: it listens before it does anything else.
const CONNECT: Duration = Duration::from_secs(5);

/// How often it is looked whether there is room for a caller.
const AGAIN: Duration = Duration::from_millis(20);

/// How long an answer may take that only needs looking: the daemon may have just begun, and has many sessions to list.
const LOOK: Duration = Duration::from_secs(5);

/// How long any other answer may take. Ending every agent takes as long as agents get for it.
pub(super) const ANSWER: Duration = Duration::from_secs(90);

/// What the header Host says at a socket.
const HOST: &str = "rekindle";

/// One request.
#[derive(Debug, Clone, Default)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'static str,
    /// The path and what follows it.
    pub path: String,
    /// The body: JSON.
    pub body: Option<String>,
    /// Further headers.
    pub headers: Vec<(&'static str, &'a str)>,
    /// How long the answer may take, if it is known.
    pub within: Option<Duration>,
}

/// Returns a runtime for one thread.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// Connects; where the queue of callers is full, as soon as there is room in it.
async fn connect(target: &Target) -> Result<Box<dyn Stream>, RequestError> {
    let socket = match target {
        Target::Local { place, .. } => &place.socket,
        Target::Remote { server, .. } => return server.connect().await,
    };
    loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(Box::new(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(AGAIN).await,
            Err(source) => {
                return Err(RequestError::Unreachable { path: socket.display().to_string(), source });
            }
        }
    }
}

/// Asks, and returns the head of the answer; its body is still to come.
pub async fn send(target: &Target, ask: &Ask<'_>) -> Result<Response<Incoming>, RequestError> {
    let stream =
        tokio::time::timeout(CONNECT, connect(target)).await.map_err(|_| RequestError::TimedOut)??;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(RequestError::ConnectionLost)?;
    // Its end is also told to whoever waits for the answer.
    tokio::spawn(connection);
    if let Target::Local { place, .. } = target
        && let Some(refusal) = verify_home(&mut sender, &place.socket, place.home_id).await?
    {
        return Ok(refusal);
    }
    let (host, authorization) = match target {
        Target::Local { .. } => (HOST, None),
        Target::Remote { server, .. } => (server.authority.as_str(), server.authorization()),
    };
    let mut request = Request::builder().method(ask.method).uri(&ask.path).header("host", host);
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    for (name, value) in &ask.headers {
        request = request.header(*name, *value);
    }
    if ask.body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = ask.body.clone().unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(body))).map_err(RequestError::Malformed)?;
    sender.send_request(request).await.map_err(RequestError::ConnectionLost)
}

/// Has whoever answers at a socket say which home it serves. An answer that is no yes is one to whatever is asked next.
async fn verify_home(
    sender: &mut SendRequest<Full<Bytes>>,
    socket: &Path,
    meant: Option<HomeId>,
) -> Result<Option<Response<Incoming>>, RequestError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct About {
        home: String,
        home_id: Option<HomeId>,
    }
    let path = || socket.display().to_string();
    // Nothing was asked yet, so that whoever goes away over this can be looked for again.
    let gone =
        |error: hyper::Error| RequestError::Unreachable { path: path(), source: io::Error::other(error) };
    let request = Request::builder().uri("/api/version").header("host", HOST);
    let request = request.body(Full::default()).map_err(RequestError::Malformed)?;
    let response = sender.send_request(request).await.map_err(gone)?;
    if !response.status().is_success() {
        return Ok(Some(response));
    }
    let body = response.into_body().collect().await.map_err(gone)?.to_bytes();
    let about: About = serde_json::from_slice(&body).unwrap_or_default();
    if meant.is_none() || about.home_id != meant {
        return Err(RequestError::AnotherHome { path: path(), home: about.home });
    }
    sender.ready().await.map_err(gone)?;
    Ok(None)
}

/// Asks, and returns the status and the whole body.
pub fn call(runtime: &Runtime, target: &Target, ask: &Ask<'_>) -> Result<(u16, Bytes), RequestError> {
    runtime.block_on(async {
        let answer = async {
            let response = send(target, ask).await?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.map_err(RequestError::ConnectionLost)?;
            Ok((status, body.to_bytes()))
        };
        let most = ask.within.unwrap_or(if ask.method == "GET" { LOOK } else { ANSWER });
        tokio::time::timeout(most, answer).await.map_err(|_| RequestError::TimedOut)?
    })
}

/// Writes a value into a query or a path: everything but letters, digits and a few marks is escaped.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_queries_are_escaped() {
        assert_eq!(escape("/my repo&x=ü"), "%2Fmy%20repo%26x%3D%C3%BC");
        assert_eq!(escape("sess_01-a.b~"), "sess_01-a.b~");
    }
}

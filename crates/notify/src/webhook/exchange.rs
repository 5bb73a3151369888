//! One request and its answer: the name resolved once, every address it leads to judged, one of these very addresses connected to. No
//! proxy, no redirect, and of the answer little more than its status.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::{Reach, reach};
use super::tls;
use crate::machine::Machine;
use crate::webhook_url::{Scheme, WebhookUrl};

/// How long a delivery may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Resolving the name; and then connecting, with TLS.
    pub(super) connect: Duration,
    /// All of it.
    pub(super) whole: Duration,
    /// Reading what is left of an answer.
    pub(super) body: Duration,
}

impl Limits {
    /// As usual: who takes longer to connect is not there, and nobody is waited for who only has more to say.
    pub(super) const USUAL: Limits = Limits {
        connect: Duration::from_secs(5),
        whole: Duration::from_secs(10),
        body: Duration::from_secs(1),
    };
}

/// How many of the addresses of a name are tried.
const MOST_ADDRESSES: usize = 4;

/// How much of an answer's body is read: enough for whoever answers to be done, and nobody looks at it.
const MOST_BODY: usize = 4 << 10;

/// How much an answer's head may be.
const MOST_HEAD: usize = 16 << 10;

/// What is sent.
pub(super) struct Post {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<String>,
}

/// Why nothing was answered, as it goes on behind the receiver's name.
pub(super) enum Failed {
    /// It may work later.
    Retry(String),
    /// It must not work later either.
    Refused(String),
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What an exchange needs beyond what is sent.
pub(super) struct Way {
    /// Whom to trust, if it goes over TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) machine: Arc<dyn Machine>,
    pub(super) allow_private: bool,
    pub(super) limits: Limits,
}

/// Sends a request and waits for its answer.
pub(super) async fn exchange(url: &WebhookUrl, post: Post, way: Way) -> Result<Answer, Failed> {
    let whole = way.limits.whole;
    let late = |_| Failed::Retry(format!("did not answer within {} s", whole.as_secs()));
    timeout(whole, send(url, post, way)).await.map_err(late)?
}

async fn send(url: &WebhookUrl, post: Post, way: Way) -> Result<Answer, Failed> {
    let Way { tls, machine, allow_private, limits } = way;
    let addresses = resolve(url, machine, limits.connect).await?;
    judge(url, &addresses, allow_private)?;
    let connected = timeout(limits.connect, connect(url, &addresses, tls, limits.connect)).await;
    let stream = connected.map_err(|_| Failed::Retry("could not be connected to in time".to_owned()))??;
    let request = request(url, post)?;
    let lost = |error: hyper::Error| Failed::Retry(format!("did not answer: {}", innermost(&error)));
    let mut builder = http1::Builder::new();
    let builder = builder.max_buf_size(MOST_HEAD);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(lost)?;
    // It goes on with the exchange, and ends with the runtime.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(lost)?;
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let answer = Answer { status, retry_after: retry_after.map(ToOwned::to_owned) };
    // The status says it all: how the rest ends is no matter.
    let _ = timeout(limits.body, drain(response.into_body())).await;
    Ok(answer)
}

async fn resolve(
    url: &WebhookUrl,
    machine: Arc<dyn Machine>,
    limit: Duration,
) -> Result<Vec<SocketAddr>, Failed> {
    let (host, port) = (url.host.clone(), url.port);
    let asked = tokio::task::spawn_blocking(move || machine.resolve(&host, port));
    match timeout(limit, asked).await {
        Ok(Ok(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
        Ok(Ok(Ok(_))) => Err(Failed::Retry("has no address".to_owned())),
        Ok(Ok(Err(error))) => Err(Failed::Retry(format!("cannot be resolved: {error}"))),
        Ok(Err(_)) | Err(_) => Err(Failed::Retry("could not be resolved in time".to_owned())),
    }
}

/// Refuses a name of which any address is none to speak to: the next time it could be this one.
pub(super) fn judge(url: &WebhookUrl, addresses: &[SocketAddr], allow_private: bool) -> Result<(), Failed> {
    let refused = |why: &str| Err(Failed::Refused(why.to_owned()));
    for address in addresses {
        match (reach(address.ip()), url.scheme) {
            (Reach::Never, _) => {
                return refused(
                    "leads to an address that Rekindle never sends to (link-local, multicast, metadata or the like)",
                );
            }
            (Reach::Private, _) if !allow_private => {
                return refused(
                    "leads to an address of this machine or a private network: if that is intended, set allow_private = true",
                );
            }
            (Reach::Public, Scheme::Http) => {
                return refused(
                    "leads to the internet, and nothing is sent there without TLS: write https://",
                );
            }
            (Reach::Private | Reach::Public, _) => {}
        }
    }
    Ok(())
}

/// Connects to the first address that takes it. Each has its share of the time, so that one that is silent keeps no other.
async fn connect(
    url: &WebhookUrl,
    addresses: &[SocketAddr],
    config: Option<Arc<ClientConfig>>,
    limit: Duration,
) -> Result<Box<dyn Stream>, Failed> {
    let tried = &addresses[..addresses.len().min(MOST_ADDRESSES)];
    let share = limit / u32::try_from(tried.len()).unwrap_or(1).max(1);
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for address in tried {
        let stream = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                last = error;
                continue;
            }
            Err(_) => {
                last = io::ErrorKind::TimedOut.into();
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let Some(config) = config else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(url.host.clone());
        let name =
            name.map_err(|_| Failed::Refused("has a host name that no certificate can be for".to_owned()))?;
        let secured = TlsConnector::from(config).connect(name, stream).await;
        return Ok(Box::new(secured.map_err(|error| Failed::Retry(tls::explain(&error)))?));
    }
    Err(Failed::Retry(format!("cannot be connected to: {last}")))
}

fn request(url: &WebhookUrl, post: Post) -> Result<Request<Full<Bytes>>, Failed> {
    let wrong = || Failed::Refused("has an address that no request can be made from".to_owned());
    let length = post.body.len();
    let mut request = Request::new(Full::new(Bytes::from(post.body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = post.path.parse().map_err(|_| wrong())?;
    *request.headers_mut() = post.headers;
    let host = HeaderValue::from_str(&url.authority).map_err(|_| wrong())?;
    request.headers_mut().insert(HOST, host);
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(request)
}

/// Reads a little of a body.
async fn drain(mut body: Incoming) {
    let mut read = 0;
    while read < MOST_BODY {
        match body.frame().await {
            Some(Ok(frame)) => read += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => return,
        }
    }
}

/// Returns what an error is about; what is around it says only that it is one.
fn innermost(error: &hyper::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

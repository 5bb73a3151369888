//! Speaking to programs: the daemon's services as HTTP/JSON and server-sent events, on a unix socket and on TCP. Requests are
//! translated, answers are written down; nothing is decided and nothing is kept here.

mod answer_page;
mod app;
mod body;
mod caller;
mod connections;
pub mod error;
mod extract;
mod failure_limit;
mod guard;
mod hint_text;
mod hosts;
mod middleware;
mod openapi;
mod rate_limit;
mod reserved_descriptors;
mod respond;
mod router;
mod routes;
mod serve;
pub mod sse;
mod stop;
mod tls;
mod turns;

pub use extract::MAX_BODY;
pub use serve::{Listeners, TcpListeners, serve};
pub use stop::Ending;
pub use tls::{Tls, TlsError};

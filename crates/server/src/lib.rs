//! Speaking to programs: the daemon's services as HTTP/JSON and server-sent events on a unix socket. Requests are
//! translated, answers are written down; nothing is decided and nothing is kept here.

mod around;
mod connections;
pub mod error;
mod extract;
mod respond;
mod router;
mod routes;
mod serve;
pub mod sse;
mod stop;

pub use extract::MAX_BODY;
pub use serve::serve;
pub use stop::Ending;

//! Speaking with agents: what goes through a holder's journal becomes records of a session's log, and what we
//! want to say becomes exact bytes.
//!
//! Everything here is a pure function or a fold, except [`find`], [`npx_cache`] and [`probe`], which look at the machine.
//! A [`profile::Profile`] knows one protocol; [`connection::Connection`] folds a journal with it; [`known`] is what
//! is known of particular agents, as data. Nothing here writes to a log or to an agent: callers do.

pub mod acp;
pub mod blob;
pub mod connection;
pub mod environment;
pub mod exec;
pub mod find;
mod json;
pub mod known;
mod message_id;
pub mod ndjson;
pub mod npx_cache;
pub mod probe;
pub mod profile;
pub mod replay;
pub mod said;

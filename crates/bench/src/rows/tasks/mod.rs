//! The rows about tasks: records of them in a real store, rows of them in real databases, decisions about them, and daemons
//! that have many.

pub(crate) mod accept;
pub(crate) mod claim;
pub(crate) mod decision;
pub(crate) mod million;
pub(crate) mod projection;
mod projection_postgres;
mod projection_source;
mod recording;

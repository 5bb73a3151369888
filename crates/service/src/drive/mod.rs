//! Agents driven: what is launched for a session and with which environment, one connection to a living agent, and the worker
//! that carries out what the domain decides.

pub(crate) mod agents;
pub(crate) mod answer;
mod capped_list;
pub(crate) mod checkpoints;
pub(crate) mod connection_state;
mod env_file;
pub(crate) mod environment;
pub(crate) mod holders;
pub mod live;
pub(crate) mod provider;
pub(crate) mod sign_in;
pub(crate) mod worker;
pub(crate) mod workspace_files;

pub use holders::look_for_holder;

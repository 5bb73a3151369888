//! The daemon as a process: it reads the configuration, becomes the home's owner, listens, recovers, and leaves in order. What
//! it does is in the service crate, how it is spoken to in the server crate, and who starts it in the client crate.

pub mod config;
mod listen;
mod logging;
mod panic_hook;
mod process;
mod service_manager;
mod tcp;

pub use process::{Start, run};

//! The daemon over TCP, as programs and commands elsewhere have it: who is let in, what is refused and logged, and that
//! nobody from elsewhere keeps others out.

mod answer_links;
mod client;
mod commands;
#[path = "../daemon/hook_receiver.rs"]
mod hook_receiver;
#[path = "../daemon/lab.rs"]
#[expect(dead_code, reason = "the laboratory of the daemon's tests, of which not everything is needed here")]
mod lab;
mod listening;
mod load;
mod refusals;
mod sent_links;
mod streams;
mod tls;
mod tokens;

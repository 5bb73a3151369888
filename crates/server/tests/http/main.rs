//! The server on a real socket, up to where the daemon would be asked: what is refused before, and how serving ends.

mod client;
mod described;
mod disk_gate;
mod ends;
mod refusals;
mod stuck_disk;

//! The daemon as users have it: a real process that is killed, real agents that are killed, and what is there afterwards.

mod api;
mod crash_points;
mod kills;
mod lab;
mod waits;

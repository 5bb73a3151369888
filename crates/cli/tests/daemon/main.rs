//! The daemon as users have it: a real process that is killed, real agents that are killed, and what is there afterwards.

mod agents_here;
mod any_command;
mod api;
mod commands;
mod crash_everywhere;
mod crash_points;
mod environment;
mod exits;
mod expiry;
mod homes;
mod kills;
mod lab;
mod middle;
mod newer;
mod once;
mod power;
mod pty;
mod ran;
mod restored;
mod scale;
mod screen;
mod silent;
mod statuses;
mod sweep;
mod terminal;
mod waits;

//! A session as it happens: the agent's answer on stdout, everything else on stderr, questions on the terminal.

mod ask;
mod course;
pub(crate) mod diff;
mod end;
mod goal;
mod keys;
mod messages;
mod over;
mod picture;
mod piece;
mod questions;
mod screen;
mod tools;
mod watch;

pub(crate) use ask::{Ask, pick};
pub(crate) use end::exit_of_state;
pub(crate) use goal::Goal;
pub(crate) use keys::{Pressed, Terminal, is_ours};
pub(crate) use over::Over;
pub(crate) use questions::{chosen, given, how_to_answer};
pub(crate) use watch::{Watch, watch};

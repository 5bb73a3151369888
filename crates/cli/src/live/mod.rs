//! A session as it happens: the agent's answer on stdout, everything else on stderr, questions on the terminal.

mod ask;
pub(crate) mod diff;
mod goal;
mod keys;
mod messages;
mod picture;
mod piece;
mod question_end;
mod questions;
mod run_end;
mod run_lines;
mod screen;
mod tools;
mod watch;

pub(crate) use ask::{Ask, pick};
pub(crate) use goal::Goal;
pub(crate) use keys::{Pressed, Terminal, is_foreground};
pub(crate) use question_end::QuestionEnd;
pub(crate) use questions::{answer_text, how_to_answer, short_answer_text};
pub(crate) use watch::watch;

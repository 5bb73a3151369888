//! A session as it happens: the agent's answer on stdout, everything else on stderr, questions on the terminal.

mod ask;
pub mod diff;
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

pub use ask::{Ask, pick};
pub use goal::Goal;
pub use keys::{Pressed, take_keys};
pub use picture::{Picture, echo};
pub use piece::{Piece, drift_lines};
pub use question_end::QuestionEnd;
pub use questions::{answer_text, how_to_answer, short_answer_text};
pub use run_end::RunEnd;
pub use watch::{Watch, stays_text, watch};

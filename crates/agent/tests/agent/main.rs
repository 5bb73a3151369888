//! Whole conversations: what is recorded of them, and that a crash at any point changes nothing.

mod conversations;
mod cut;
mod golden;
mod noise;
mod probe;
mod resume;
mod settings;
mod stage;

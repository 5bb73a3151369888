//! The records of one append, composed: which ones, and in which order, for everything that is asked of a run or happens to it.
//!
//! An append is all or nothing, so whatever must never be seen apart stands in one list: a wait and its token, an answer and
//! the end of the other tokens, a cancel and the end of every wait. Every list is composed here and nowhere else. Pure: ids,
//! secrets and times come in as arguments, and whoever has a list appends it.

pub mod answer;
pub mod answer_links;
pub mod begin;
pub mod cancel;
pub mod checkpoint;
pub mod environment;
pub mod expire;
pub mod import;
pub mod interrupt;
pub mod launch;
pub mod wait;

#[cfg(test)]
mod tests;

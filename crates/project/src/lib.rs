//! A project's `rekindle.toml`: read, checked, and everything that is wrong with it told by line and column; and the file that
//! people begin with. What it means is in the domain, what is done with it is left to others.

mod check;
#[cfg(test)]
mod documented;
pub mod programs;
mod read;
mod spans;
pub mod starting_file;
mod string_offset;

pub use check::{Located, check, parse};
pub use read::{FILE, ReadError, ReadFile, read};

//! The scripted agent as a real process, driven over pipes as a supervisor would do it.

mod asks;
mod driver;
mod ends;
mod loads;
mod talk;

//! Trying Rekindle out on the user's own machine: a demonstration, a self-test, and what both stand on. Daemons and agents are
//! real processes, and whatever is started here is ended here.

pub mod chaos;
pub mod damage;
pub mod demo;
mod ground;

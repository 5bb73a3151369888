//! Situations of pipeline runs, tried in memory: the real workers of runs and sessions, holders and agents that follow a script, and a
//! directory that is a map.

mod cache;
mod care;
mod courses;
mod cuts;
mod deaths;
mod drift;
mod home;
mod limits;
mod ndjson;
mod starts;
mod starts_over;
pub(crate) mod trees;
mod wishes;

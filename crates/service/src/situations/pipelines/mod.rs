//! Situations of pipeline runs, tried in memory: the real workers of runs and sessions, holders and agents that follow a script, and a
//! directory that is a map.

mod cache;
mod compression;
mod courses;
mod cuts;
mod deaths;
mod drift;
mod ended_runs;
mod home;
mod limits;
mod ndjson;
mod starts;
pub(crate) mod trees;
mod wishes;

//! The store as its users see it: on a simulated disk that fails and crashes, and on a real one.

mod aside;
mod checkpoints;
mod closing;
mod common;
mod crash;
mod damage;
mod earlier;
mod faults;
mod fixtures;
mod forks;
mod homes;
mod kept_snapshots;
mod lagging;
mod long_logs;
mod lost_logs;
mod meter;
mod multi_log_appends;
mod noise;
mod opening;
mod packs;
mod quarantine;
mod reading;
mod repairs;
mod streams;
mod tasks;
mod times;

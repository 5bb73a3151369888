//! Holders as real processes, driven through everything that goes wrong: their supervisors, agents, disks and
//! directories die, freeze, fill up and disappear. Named after the situation; the promise is cited at each.

mod cgroups;
mod descriptors;
mod ends;
mod exec;
mod fencing;
mod golden;
mod home;
mod inputs;
mod kills;
mod lab;
mod lost;
mod output;
mod places;
mod relay;
mod storage;
mod turns;
mod versions;

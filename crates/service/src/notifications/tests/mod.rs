//! Notifications on a simulated disk, had to work by hand: what is told when, what a crash leaves, and what a disk or a target that fails
//! does to others.

mod crashes;
mod lab;
mod settling;
mod targets;
mod troubles;

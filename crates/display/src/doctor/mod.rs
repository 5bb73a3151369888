//! What `doctor` has found as people and programs see it: findings with the commands that do something about them, and where agents
//! live.

mod agents;
mod findings;
mod remedy;

pub use agents::print_agents;
pub use findings::{below, counts, print_findings, summary, to_json};

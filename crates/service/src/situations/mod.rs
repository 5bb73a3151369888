//! Situations of sessions, tried in memory: the real worker and the real store, on a simulated disk, with holders and agents
//! that follow a script and a clock that is moved by hand. No process, no socket, no waiting.

mod adoption;
mod agent;
mod answer_links;
mod cancels;
mod captures;
mod checkpoints;
mod contention;
mod crashes;
mod creates;
mod damage;
mod deaths;
mod drift;
mod forks;
mod holder;
mod home;
mod idle_agents;
mod launches;
mod life;
mod loads;
mod outcomes;
pub(crate) mod pipelines;
mod port;
mod queue;
mod record_summary;
mod restores;
mod rewinds;
mod searches;
mod starts;
mod table;
mod waits;
mod worktrees;

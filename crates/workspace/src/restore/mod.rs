//! Restore: a directory becomes what a tree says, by writing only what differs, with a way back and safe to interrupt.
//!
//! | file             | holds                                                                            |
//! | ---------------- | -------------------------------------------------------------------------------- |
//! | `plan.rs`        | what has to change, decided from the two trees alone                             |
//! | `side.rs`        | a tree with what its capture left out                                            |
//! | `tree_rules.rs`  | what the ignore files of a tree say about paths that it does not have            |
//! | `collision.rs`   | names that a file system without case takes for the same                         |
//! | `complete.rs`    | what a rerun has to know of, although the rules of half-way hide it              |
//! | `survey.rs`      | what the plan means for what is on disk                                          |
//! | `keep.rs`        | the capture of what would be lost                                                |
//! | `undo.rs`        | the tree of the way back                                                         |
//! | `journal.rs`     | what is kept while a restore is at work                                          |
//! | `execute.rs`     | temporaries, their sync, renames and removals                                    |
//! | `temporaries.rs` | temporaries that have to go                                                      |
//! | `run.rs`         | all of it in order: [`restore`]                                                  |
//! | `root.rs`        | the seam to the file system; `dir_root.rs` is the real one                       |
//! | `report.rs`      | what was done, what was left alone, what went wrong                              |
//! | `refusal.rs`     | which errors concern one path, and which everything                              |
//! | `lookup.rs`      | what a tree has at a path                                                        |
//! | `paths.rs`       | paths as bytes, names of temporaries                                             |

mod collision;
mod complete;
mod dir_root;
mod execute;
mod journal;
mod keep;
mod lookup;
mod paths;
mod plan;
mod refusal;
mod report;
mod root;
mod run;
mod side;
mod survey;
mod temporaries;
mod tree_rules;
mod undo;

pub use collision::Collision;
pub use dir_root::DirRoot;
pub use journal::{Journal, JournalFile};
pub use plan::{Change, Plan, plan};
pub use report::{ContentProblem, Done, DoneWhat, Left, LeftWhy, RestoreError, Restored};
pub use root::{Root, Seen, SeenKind};
pub use run::{Tools, restore};
pub use side::{Side, SkippedPaths};
pub use tree_rules::TreeRules;

#[cfg(test)]
mod tests;

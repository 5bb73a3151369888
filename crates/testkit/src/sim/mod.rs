//! A simulated disk: what reads see (*live*) is kept apart from what a power cut leaves (*durable*).
//!
//! | file         | holds                                                                       |
//! | ------------ | --------------------------------------------------------------------------- |
//! | `disk.rs`    | [`SimDisk`], its settings, and the turn each operation takes                |
//! | `tree_ops.rs`| the calls on paths                                                          |
//! | `file.rs`    | the calls on open files                                                     |
//! | `image.rs`   | all that is on the disk: the part that [`SimDisk::fork`] copies             |
//! | `content.rs` | one file: live bytes, durable bytes, what is pending between them           |
//! | `names.rs`   | directories: live names, durable names, pending changes of names            |
//! | `crash.rs`   | [`SimDisk::power_cut`], [`SimDisk::process_kill`]                           |
//! | `physics.rs` | [`Physics`]: how likely their outcomes are                                  |
//! | `survive.rs` | which blocks of one file a power cut or a failed sync leaves                |
//! | `fault.rs`   | [`Fault`]: the nth operation fails                                          |
//! | `op.rs`      | [`Op`]: what an observer is told                                            |
//! | `damage.rs`  | reading and damaging files behind the back of the code under test           |
//! | `errno.rs`   | the numbers of the errors                                                   |
//!
//! The disk is harsher than ext4 wherever the two differ and the store has no right to the difference:
//! a synced file does not bring its name along, and a rename over a file flushes nothing.

mod content;
mod crash;
mod damage;
mod disk;
mod errno;
mod fault;
mod file;
mod image;
mod names;
mod op;
mod physics;
mod survive;
mod tree_ops;

pub use disk::{Observer, SimDisk};
pub use fault::{Fault, FaultKind, Faults};
pub use op::{Op, OpKind};
pub use physics::Physics;

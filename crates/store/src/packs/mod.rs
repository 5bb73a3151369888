//! Packs: many small objects in one file, written by batches that are made durable with three syncs.
//!
//! | file             | holds                                                                             |
//! | ---------------- | --------------------------------------------------------------------------------- |
//! | `format.rs`      | the bytes of a pack, and walking through them without an index                    |
//! | `index.rs`       | the bytes of an index, and looking into it                                        |
//! | `pack.rs`        | one pack: opening it, making its index again, reading an object                   |
//! | `table.rs`       | all packs as one process knows them, and who may change them                      |
//! | `synced_dirs.rs` | which directories have durable names                                              |
//! | `writer.rs`      | writing a pack, and giving it its name                                            |
//! | `compress.rs`    | compression on the caller's thread                                                |
//! | `large.rs`       | contents that are too large for a pack                                            |
//! | `pins.rs`        | what must not be collected yet                                                    |
//! | `merge.rs`       | small packs become one                                                            |
//! | `batch.rs`       | the objects of one capture                                                        |
//! | `collect.rs`     | packs that nobody needs go, those that are mostly dead are written anew           |
//! | `verify.rs`      | every byte of a pack and its index, for `doctor`                                  |

mod batch;
mod collect;
mod compress;
mod format;
mod index;
mod large;
mod merge;
mod pack;
mod pins;
mod synced_dirs;
mod table;
mod verify;
mod writer;

pub use batch::Batch;
pub use collect::CollectedPacks;
pub(crate) use collect::{Rules, collect};
pub(crate) use format::PackId;
pub(crate) use large::{CopyError, copy_verified};
pub use pins::Pins;
pub(crate) use table::{Hold, Packs};
pub(crate) use verify::{PackFinding, PackFindingKind, verify};

//! What a directory contains, apart from where it is kept: tree objects, which paths count, capture, comparison.
//! Objects go to an [`ObjectSink`] and come from an [`ObjectSource`]; this crate owns no storage and writes into no workspace.

pub mod objects;
pub mod tree;

pub use objects::{MemoryObjects, ObjectSink, ObjectSource};

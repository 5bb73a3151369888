//! The write-ahead log: every record of every stream passes here first.
//!
//! [`frame`] is the encoding, [`scan`] reads segments back and tells tail from damage, [`writer`] appends,
//! syncs, and goes on in a new segment when one cannot be trusted any more.

pub(crate) mod frame;
pub(crate) mod scan;
pub(crate) mod writer;

//! Keeps sessions on disk. Owns fsync, atomicity and encoding; synchronous throughout.
pub mod disk;

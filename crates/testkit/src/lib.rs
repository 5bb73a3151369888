//! Tools for tests: a disk that loses what a real one may lose, the seeded numbers that decide what, and made-up homes
//! and sessions; a real Postgres; a terminal's screen; and the commands of documentation.
//!
//! Nothing else here reads a clock or the system's randomness: a failure is reproduced by its seed alone.

pub mod clock;
pub mod documents;
pub mod gated;
pub mod made;
pub mod postgres_server;
pub mod screen;
pub mod session_view;
pub mod sim;
pub mod tapped;

pub use rekindle_seeded as rng;

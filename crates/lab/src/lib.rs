//! A harness for whatever starts a daemon and speaks to it: tests, benchmarks, the demonstration and the self-test. A
//! temporary home whose processes end with it, a guard around the daemon, a blocking HTTP client, a subscriber of events,
//! and waiting with a deadline. It knows a daemon from outside only, and shares no code with the product's own client,
//! which is among what is tested with it.

mod daemon;
mod event_stream;
mod http;
mod logs;
mod processes;
mod temp_home;
mod wait;

pub use self::daemon::{Daemon, Process};
pub use self::event_stream::{Event, EventStream, OwnedEvent};
pub use self::http::{Answer, Connection, HOST, Reply, request};
pub use self::logs::tasks_log;
pub use self::processes::{daemon_file, end_all, ended, is_alive, kill, living, living_holders, marked};
pub use self::temp_home::TempHome;
pub use self::wait::{PATIENCE, look_for, wait_for};

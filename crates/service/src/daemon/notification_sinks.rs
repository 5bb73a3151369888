//! Sinks of notifications, asked about through the daemon's door.

use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::view::SinkTested;

use super::Daemon;
use crate::error::{Result, ServiceError};

impl Daemon {
    /// Sends a test through a sink as this daemon has it, with its variables.
    pub fn test_sink(&self, sink: &str) -> Result<SinkTested> {
        let tested = self.notifications.as_ref().and_then(|notifications| notifications.test(sink));
        tested.ok_or_else(|| {
            let message = "the daemon has no such sink: it reads its configuration when it starts";
            ServiceError::new(Code::SinkUnknown, message).hint(Hint::RestartDaemon)
        })
    }
}

//! The end of a run, and what it means for the command that watched it.

use rekindle_client::failure::Exit;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The agent ended its turn.
    Completed {
        /// The agent's word for it.
        stop_reason: Option<String>,
    },
    /// It failed for good.
    Failed,
    /// Someone wanted it to end.
    Cancelled,
    /// It was cut short, and may go on by itself.
    Interrupted,
}

impl RunEnd {
    /// Returns the exit code for it.
    pub fn exit(&self) -> Exit {
        match self {
            // An agent that will not, or ran out of something, has not done what it was asked.
            RunEnd::Completed { stop_reason } => match stop_reason.as_deref() {
                Some("refusal" | "max_tokens" | "max_turn_requests" | "cancelled") => Exit::Failed,
                // Agents have words of their own; an ended turn is an ended turn.
                _ => Exit::Ok,
            },
            RunEnd::Failed | RunEnd::Cancelled => Exit::Failed,
            RunEnd::Interrupted => Exit::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_becomes_an_exit_code() {
        let completed = |reason: Option<&str>| RunEnd::Completed { stop_reason: reason.map(Into::into) };
        for (end, exit) in [
            (completed(Some("end_turn")), Exit::Ok),
            (completed(None), Exit::Ok),
            (completed(Some("a_word_of_tomorrow")), Exit::Ok),
            (completed(Some("refusal")), Exit::Failed),
            (completed(Some("max_tokens")), Exit::Failed),
            (RunEnd::Failed, Exit::Failed),
            (RunEnd::Cancelled, Exit::Failed),
            (RunEnd::Interrupted, Exit::Interrupted),
        ] {
            assert_eq!(end.exit(), exit, "{end:?}");
        }
    }
}

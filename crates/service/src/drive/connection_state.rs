//! The state of the connection to a session's agent: in memory only, idle at every start, and never taken for the session's
//! status, which is derived.

use rekindle_agent::connection::Phase;
use rekindle_wire::view::Connection;

/// An event in the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEvent {
    /// It is being made.
    Begins,
    /// The agent was heard.
    Heard(Phase),
    /// The agent brings its own session back.
    Loads,
    /// It is gone.
    Ends,
    /// It could not be made.
    Fails,
}

impl ConnectionEvent {
    /// Returns the state of a connection after this has happened to it.
    pub(crate) fn apply(self, before: Connection) -> Connection {
        match self {
            ConnectionEvent::Begins
            | ConnectionEvent::Heard(Phase::Silent | Phase::Greeted | Phase::Opening) => Connection::Starting,
            ConnectionEvent::Loads => Connection::Loading,
            ConnectionEvent::Heard(Phase::Ready) => Connection::Ready,
            ConnectionEvent::Heard(Phase::InTurn) => Connection::Running,
            ConnectionEvent::Fails => Connection::Error,
            ConnectionEvent::Heard(Phase::Exited) | ConnectionEvent::Ends => match before {
                Connection::Starting | Connection::Loading | Connection::Running => Connection::Interrupted,
                Connection::Ready => Connection::Idle,
                before => before,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_idle_and_tells_losing_from_ending() {
        let walk = |turns: &[ConnectionEvent]| {
            turns.iter().fold(Connection::default(), |link, turn| turn.apply(link))
        };
        let (ready, in_turn) = (ConnectionEvent::Heard(Phase::Ready), ConnectionEvent::Heard(Phase::InTurn));
        assert_eq!(walk(&[]), Connection::Idle);
        assert_eq!(walk(&[ConnectionEvent::Begins]), Connection::Starting);
        assert_eq!(walk(&[ConnectionEvent::Begins, ConnectionEvent::Fails]), Connection::Error);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Fails, ConnectionEvent::Begins, ready]),
            Connection::Ready
        );
        assert_eq!(walk(&[ConnectionEvent::Begins, ConnectionEvent::Loads]), Connection::Loading);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Loads, ConnectionEvent::Ends]),
            Connection::Interrupted
        );
        assert_eq!(walk(&[ConnectionEvent::Begins, ready, in_turn]), Connection::Running);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ready, in_turn, ConnectionEvent::Ends]),
            Connection::Interrupted
        );
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ready, in_turn, ready, ConnectionEvent::Ends]),
            Connection::Idle
        );
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Ends, ConnectionEvent::Ends]),
            Connection::Interrupted,
            "until it begins again"
        );
    }
}

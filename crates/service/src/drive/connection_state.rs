//! The state of the connection to a session's agent: in memory only, idle at every start, and never taken for the session's
//! status, which is derived.

use rekindle_agent::connection::Phase;
use rekindle_wire::view::Connection;

/// The state of the connection to an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// There is none.
    #[default]
    Idle,
    /// One is being made: the agent is launched, or taken over, and does not take prompts yet.
    Starting,
    /// The agent brings its own session back.
    Loading,
    /// The agent works on a prompt.
    Running,
    /// It takes prompts.
    Ready,
    /// It was lost in the middle of something.
    Interrupted,
    /// It could not be made.
    Error,
}

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

impl ConnectionState {
    pub(crate) fn after(self, turn: ConnectionEvent) -> ConnectionState {
        match turn {
            ConnectionEvent::Begins
            | ConnectionEvent::Heard(Phase::Silent | Phase::Greeted | Phase::Opening) => {
                ConnectionState::Starting
            }
            ConnectionEvent::Loads => ConnectionState::Loading,
            ConnectionEvent::Heard(Phase::Ready) => ConnectionState::Ready,
            ConnectionEvent::Heard(Phase::InTurn) => ConnectionState::Running,
            ConnectionEvent::Fails => ConnectionState::Error,
            ConnectionEvent::Heard(Phase::Exited) | ConnectionEvent::Ends => match self {
                ConnectionState::Starting
                | ConnectionState::Loading
                | ConnectionState::Running
                | ConnectionState::Interrupted => ConnectionState::Interrupted,
                ConnectionState::Idle | ConnectionState::Ready => ConnectionState::Idle,
                ConnectionState::Error => ConnectionState::Error,
            },
        }
    }
}

impl From<ConnectionState> for Connection {
    fn from(link: ConnectionState) -> Connection {
        match link {
            ConnectionState::Idle => Connection::Idle,
            ConnectionState::Starting => Connection::Starting,
            ConnectionState::Loading => Connection::Loading,
            ConnectionState::Running => Connection::Running,
            ConnectionState::Ready => Connection::Ready,
            ConnectionState::Interrupted => Connection::Interrupted,
            ConnectionState::Error => Connection::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_idle_and_tells_losing_from_ending() {
        let walk = |turns: &[ConnectionEvent]| {
            turns.iter().fold(ConnectionState::default(), |link, turn| link.after(*turn))
        };
        let (ready, in_turn) = (ConnectionEvent::Heard(Phase::Ready), ConnectionEvent::Heard(Phase::InTurn));
        assert_eq!(walk(&[]), ConnectionState::Idle);
        assert_eq!(walk(&[ConnectionEvent::Begins]), ConnectionState::Starting);
        assert_eq!(walk(&[ConnectionEvent::Begins, ConnectionEvent::Fails]), ConnectionState::Error);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Fails, ConnectionEvent::Begins, ready]),
            ConnectionState::Ready
        );
        assert_eq!(walk(&[ConnectionEvent::Begins, ConnectionEvent::Loads]), ConnectionState::Loading);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Loads, ConnectionEvent::Ends]),
            ConnectionState::Interrupted
        );
        assert_eq!(walk(&[ConnectionEvent::Begins, ready, in_turn]), ConnectionState::Running);
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ready, in_turn, ConnectionEvent::Ends]),
            ConnectionState::Interrupted
        );
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ready, in_turn, ready, ConnectionEvent::Ends]),
            ConnectionState::Idle
        );
        assert_eq!(
            walk(&[ConnectionEvent::Begins, ConnectionEvent::Ends, ConnectionEvent::Ends]),
            ConnectionState::Interrupted,
            "until it begins again"
        );
    }
}

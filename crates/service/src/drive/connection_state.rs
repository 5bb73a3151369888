//! The state of the connection to a session's agent: in memory only, idle at every start, and never taken for the session's
//! status, which is derived.

use rekindle_agent::connection::Phase;
use rekindle_wire::view::Connection;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Link {
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

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
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

impl Link {
    pub(crate) fn after(self, turn: Turn) -> Link {
        match turn {
            Turn::Begins | Turn::Heard(Phase::Silent | Phase::Greeted | Phase::Opening) => Link::Starting,
            Turn::Loads => Link::Loading,
            Turn::Heard(Phase::Ready) => Link::Ready,
            Turn::Heard(Phase::InTurn) => Link::Running,
            Turn::Fails => Link::Error,
            Turn::Heard(Phase::Exited) | Turn::Ends => match self {
                Link::Starting | Link::Loading | Link::Running | Link::Interrupted => Link::Interrupted,
                Link::Idle | Link::Ready => Link::Idle,
                Link::Error => Link::Error,
            },
        }
    }
}

impl From<Link> for Connection {
    fn from(link: Link) -> Connection {
        match link {
            Link::Idle => Connection::Idle,
            Link::Starting => Connection::Starting,
            Link::Loading => Connection::Loading,
            Link::Running => Connection::Running,
            Link::Ready => Connection::Ready,
            Link::Interrupted => Connection::Interrupted,
            Link::Error => Connection::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_begins_idle_and_tells_losing_from_ending() {
        let walk = |turns: &[Turn]| turns.iter().fold(Link::default(), |link, turn| link.after(*turn));
        let (ready, in_turn) = (Turn::Heard(Phase::Ready), Turn::Heard(Phase::InTurn));
        assert_eq!(walk(&[]), Link::Idle);
        assert_eq!(walk(&[Turn::Begins]), Link::Starting);
        assert_eq!(walk(&[Turn::Begins, Turn::Fails]), Link::Error);
        assert_eq!(walk(&[Turn::Begins, Turn::Fails, Turn::Begins, ready]), Link::Ready);
        assert_eq!(walk(&[Turn::Begins, Turn::Loads]), Link::Loading);
        assert_eq!(walk(&[Turn::Begins, Turn::Loads, Turn::Ends]), Link::Interrupted);
        assert_eq!(walk(&[Turn::Begins, ready, in_turn]), Link::Running);
        assert_eq!(walk(&[Turn::Begins, ready, in_turn, Turn::Ends]), Link::Interrupted);
        assert_eq!(walk(&[Turn::Begins, ready, in_turn, ready, Turn::Ends]), Link::Idle);
        assert_eq!(walk(&[Turn::Begins, Turn::Ends, Turn::Ends]), Link::Interrupted, "until it begins again");
    }
}

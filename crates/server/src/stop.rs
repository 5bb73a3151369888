//! The end of serving: one word, said once, that the accepting loop, every connection and every stream hear.

use tokio::sync::watch;

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The future that was given to `serve` came to its end.
    Told,
    /// A caller asked for it.
    Asked {
        /// Agents that were to end and did not; none if agents were to be left alone.
        agents_left: Option<usize>,
    },
}

/// Whoever may end it.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Sender<Option<Ending>>);

/// Whoever waits for the end.
#[derive(Debug, Clone)]
pub(crate) struct Stopped(watch::Receiver<Option<Ending>>);

impl Stop {
    /// Makes one that nobody has ended yet.
    pub(crate) fn new() -> Stop {
        Stop(watch::Sender::new(None))
    }

    /// Ends it; the first reason stays.
    pub(crate) fn now(&self, ending: Ending) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(ending);
            first
        });
    }

    /// Returns something to wait with.
    pub(crate) fn listen(&self) -> Stopped {
        Stopped(self.0.subscribe())
    }
}

impl Stopped {
    /// Waits for the end, also when it has come already.
    pub(crate) async fn wait(&mut self) -> Ending {
        let ending = self.0.wait_for(Option::is_some).await.ok().and_then(|ending| *ending);
        // Without anyone who could say it, it has ended.
        ending.unwrap_or(Ending::Told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays_and_latecomers_hear_it() {
        let stop = Stop::new();
        let mut early = stop.listen();
        stop.now(Ending::Asked { agents_left: Some(2) });
        stop.now(Ending::Told);
        assert_eq!(early.wait().await, Ending::Asked { agents_left: Some(2) });
        assert_eq!(stop.listen().wait().await, Ending::Asked { agents_left: Some(2) });
    }
}

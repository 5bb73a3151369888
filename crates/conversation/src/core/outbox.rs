//! Messages that wait: those on their way to the daemon, and those that the session has and that wait for their turn. Pure.

/// A message on its way.
#[derive(Debug)]
struct Sending {
    number: u64,
    text: String,
}

/// Messages that wait.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    sending: Vec<Sending>,
    /// Ids and texts of those that the session has, in their order.
    queued: Vec<(String, String)>,
    numbers: u64,
}

impl Outbox {
    /// Takes a message that is to be sent; returns its number.
    pub(super) fn send(&mut self, text: &str) -> u64 {
        self.numbers += 1;
        self.sending.push(Sending { number: self.numbers, text: text.to_owned() });
        self.numbers
    }

    /// The daemon has said what became of a message; returns its text.
    pub(super) fn acknowledged(&mut self, number: u64) -> Option<String> {
        let at = self.sending.iter().position(|sending| sending.number == number)?;
        Some(self.sending.remove(at).text)
    }

    pub(super) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    /// Returns the texts of which the daemon has said nothing yet.
    pub(super) fn unacknowledged(&self) -> Vec<String> {
        self.sending.iter().map(|sending| sending.text.clone()).collect()
    }

    /// The session has a message that waits for its turn.
    pub(super) fn queue(&mut self, id: String, text: String) {
        if !self.queued.iter().any(|(known, _)| *known == id) {
            self.queued.push((id, text));
        }
    }

    /// A message waits no more; returns its text, if it did.
    pub(super) fn unqueue(&mut self, id: &str) -> Option<String> {
        let at = self.queued.iter().position(|(known, _)| known == id)?;
        Some(self.queued.remove(at).1)
    }

    /// None waits any more; returns the texts of those that did.
    pub(super) fn unqueue_all(&mut self) -> Vec<String> {
        std::mem::take(&mut self.queued).into_iter().map(|(_, text)| text).collect()
    }

    /// Returns the texts of those that wait for their turn.
    pub(super) fn queued(&self) -> impl ExactSizeIterator<Item = &str> {
        self.queued.iter().map(|(_, text)| text.as_str())
    }

    /// Returns the texts of those on their way.
    pub(super) fn sending(&self) -> impl Iterator<Item = &str> {
        self.sending.iter().map(|sending| sending.text.as_str())
    }
}

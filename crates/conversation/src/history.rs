//! What was sent before, to be called back with the arrow keys. Pure.

/// Most texts that are remembered.
const MAX: usize = 1000;

/// Texts that were sent, oldest first, and where one looks among them.
#[derive(Debug, Default)]
pub(crate) struct History {
    sent: Vec<String>,
    /// The one that is looked at.
    at: Option<usize>,
    /// What was being typed when the looking began.
    draft: String,
}

impl History {
    /// Remembers a text, once if it was the last one too.
    pub(crate) fn add(&mut self, text: &str) {
        self.at = None;
        if self.sent.last().map(String::as_str) != Some(text) {
            self.sent.push(text.to_owned());
        }
        self.sent.drain(..self.sent.len().saturating_sub(MAX));
    }

    /// Returns the text before the one that is looked at.
    pub(crate) fn older(&mut self, typed: &str) -> Option<&str> {
        let at = self.at.unwrap_or(self.sent.len()).checked_sub(1)?;
        if self.at.replace(at).is_none() {
            typed.clone_into(&mut self.draft);
        }
        Some(&self.sent[at])
    }

    /// Returns the text behind the one that is looked at; behind the last one is what was being typed.
    pub(crate) fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        self.at = (at < self.sent.len()).then_some(at);
        Some(self.at.map_or(&self.draft, |at| &self.sent[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_back_and_forth_ends_with_what_was_being_typed() {
        let mut history = History::default();
        assert_eq!(history.older("x"), None);
        assert_eq!(history.newer(), None);
        for text in ["one", "two", "two"] {
            history.add(text);
        }
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.older("one"), None, "there is none before it");
        assert_eq!(history.newer(), Some("two"));
        assert_eq!(history.newer(), Some("draft"));
        assert_eq!(history.newer(), None, "it is what is being typed");
    }

    #[test]
    fn it_forgets_the_oldest() {
        let mut history = History::default();
        (0..=MAX).for_each(|number| history.add(&number.to_string()));
        assert_eq!((history.sent.len(), history.sent[0].as_str()), (MAX, "1"));
    }
}

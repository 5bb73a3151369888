//! A capped list: the first files that a record tells of, so that it stays small however many there are.

/// Files that are told.
const MAX_TOLD: usize = 200;

/// Bytes of their paths, likewise.
const MAX_TOLD_BYTES: usize = 32 << 10;

/// A capped list: the first of some files.
#[derive(Debug)]
pub(super) struct CappedList<T> {
    pub(super) first: Vec<T>,
    bytes: usize,
}

impl<T> Default for CappedList<T> {
    fn default() -> CappedList<T> {
        CappedList { first: Vec::new(), bytes: 0 }
    }
}

impl<T> CappedList<T> {
    /// Adds a file with a path of this length, as long as there is room.
    pub(super) fn push(&mut self, path: usize, file: T) {
        self.bytes = self.bytes.saturating_add(path);
        if self.first.len() < MAX_TOLD && self.bytes <= MAX_TOLD_BYTES {
            self.first.push(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_told_than_fit() {
        let told = |count: usize, path: usize| {
            let mut told = CappedList::default();
            (0..count).for_each(|number| told.push(path, number));
            told.first.len()
        };
        assert_eq!([told(3, 10), told(1_000, 10), told(100, 1_000)], [3, MAX_TOLD, 32]);
    }
}

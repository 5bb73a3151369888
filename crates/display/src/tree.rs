//! Lists as trees: what is a part of something else stands below it.

use std::collections::HashMap;
use std::hash::Hash;

/// Returns the entries of a list with how deep each stands: parts of an entry come behind it, in the order of the list. What is part of
/// something that is not in the list stands for itself.
pub(crate) fn tree<T, K: Eq + Hash>(
    entries: &[T],
    key: impl Fn(&T) -> K,
    parent: impl Fn(&T) -> Option<K>,
) -> Vec<(usize, &T)> {
    let places: HashMap<K, usize> = entries.iter().map(&key).zip(0..).collect();
    let parents: Vec<Option<usize>> =
        entries.iter().map(|entry| parent(entry).and_then(|parent| places.get(&parent).copied())).collect();
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (at, parent) in parents.iter().enumerate().rev() {
        if let Some(parts) = parent.and_then(|parent| parts.get_mut(parent)) {
            parts.push(at);
        }
    }
    let mut listed = Vec::with_capacity(entries.len());
    let mut is_listed = vec![false; entries.len()];
    // Whatever leads in a circle stands for itself too: nothing is left out.
    let roots = (0..entries.len()).filter(|at| parents[*at].is_none());
    for root in roots.chain(0..entries.len()) {
        let mut open = vec![(0, root)];
        while let Some((depth, at)) = open.pop() {
            if std::mem::replace(&mut is_listed[at], true) {
                continue;
            }
            listed.push((depth, &entries[at]));
            open.extend(parts[at].iter().map(|part| (depth + 1, *part)));
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_below_what_they_are_parts_of() {
        let shown = |entries: &[(u8, Option<u8>)]| -> Vec<(usize, u8)> {
            let tree = tree(entries, |entry| entry.0, |entry| entry.1);
            tree.into_iter().map(|(depth, entry)| (depth, entry.0)).collect()
        };
        let entries = [(1, Some(3)), (2, None), (3, None), (4, Some(9)), (5, Some(3)), (6, Some(1))];
        assert_eq!(shown(&entries), [(0, 2), (0, 3), (1, 1), (2, 6), (1, 5), (0, 4)]);
        assert_eq!(shown(&[(1, Some(2)), (2, Some(1)), (3, Some(3))]), [(0, 1), (1, 2), (0, 3)], "circles");
    }
}

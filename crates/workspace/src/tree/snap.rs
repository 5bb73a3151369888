//! Short names of tree hashes for people: `snap-` and the first twelve digits, or as many as make it unique.
//! Records, keys and comparisons use the whole hash.

use std::fmt;
use std::str::FromStr;

use rekindle_domain::blob_id::BlobId;

/// What a short name begins with.
const PREFIX: &str = "snap-";

/// Digits of a short name that is shown.
const SHOWN_DIGITS: usize = 12;

/// Fewest digits that are accepted: fewer name nothing in particular.
const FEWEST_DIGITS: usize = 4;

/// How many of the trees that an ambiguous name may mean are told.
const TOLD: usize = 10;

/// Returns the short name of a tree, as it is shown to people.
pub fn short_name(tree: &BlobId) -> String {
    format!("{PREFIX}{}", &tree.to_string()[..SHOWN_DIGITS])
}

/// A tree as somebody named it: its whole hash, or `snap-` and the hash's first digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snap(String);

/// A text that names no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a workspace snapshot: expected `snap-` and 4 to 64 lowercase hex digits, or a tree hash of 64 digits"
)]
pub struct SnapError(String);

/// A name that does not stand for exactly one of the trees there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotResolved {
    /// No tree's hash begins so.
    #[error("there is no workspace snapshot called {0}")]
    NotFound(Snap),
    /// More than one tree's hash begins so: `snap_ambiguous`.
    #[error("{name} is not unique: it may be {}; give more digits", list(.candidates, *.more))]
    Ambiguous {
        /// The name.
        name: Snap,
        /// Some of the trees that it may mean, in order.
        candidates: Vec<BlobId>,
        /// How many more there are.
        more: usize,
    },
}

impl NotResolved {
    /// Returns the code of the interface for this refusal.
    pub fn code(&self) -> &'static str {
        match self {
            NotResolved::NotFound(_) => "snap_not_found",
            NotResolved::Ambiguous { .. } => "snap_ambiguous",
        }
    }
}

impl Snap {
    /// Returns true if a tree's hash begins as the name says.
    pub fn matches(&self, tree: &BlobId) -> bool {
        tree.to_string().starts_with(&self.0)
    }

    /// Returns the tree's hash if the name has all its digits.
    pub fn whole(&self) -> Option<BlobId> {
        self.0.parse().ok()
    }

    /// Returns the one tree of `trees` that the name stands for. A tree that is listed twice is one tree.
    pub fn resolve(&self, trees: impl IntoIterator<Item = BlobId>) -> Result<BlobId, NotResolved> {
        let mut found: Vec<BlobId> = trees.into_iter().filter(|tree| self.matches(tree)).collect();
        found.sort_unstable();
        found.dedup();
        match found[..] {
            [] => Err(NotResolved::NotFound(self.clone())),
            [tree] => Ok(tree),
            _ => {
                let more = found.len().saturating_sub(TOLD);
                found.truncate(TOLD);
                Err(NotResolved::Ambiguous { name: self.clone(), candidates: found, more })
            }
        }
    }
}

impl FromStr for Snap {
    type Err = SnapError;
    fn from_str(text: &str) -> Result<Snap, SnapError> {
        let bad = || SnapError(text.to_owned());
        let (digits, fewest) = match text.strip_prefix(PREFIX) {
            Some(digits) => (digits, FEWEST_DIGITS),
            None => (text, BlobId::DIGITS),
        };
        let is_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hex || !(fewest..=BlobId::DIGITS).contains(&digits.len()) {
            return Err(bad());
        }
        Ok(Snap(digits.to_owned()))
    }
}

impl fmt::Display for Snap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

fn list(candidates: &[BlobId], more: usize) -> String {
    let shown: Vec<String> = candidates.iter().map(BlobId::to_string).collect();
    let rest = if more == 0 { String::new() } else { format!(" or one of {more} more") };
    format!("{}{rest}", shown.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(first: u8, last: u8) -> BlobId {
        let mut bytes = [0xab; 32];
        (bytes[0], bytes[31]) = (first, last);
        BlobId::from_bytes(bytes)
    }

    #[test]
    fn a_short_name_is_shown_with_twelve_digits_and_read_with_any_number_from_four() {
        let id = tree(0x12, 0);
        assert_eq!(short_name(&id), "snap-12ababababab");
        for text in ["snap-12ab", "snap-12ababababab", &format!("snap-{id}"), &id.to_string()] {
            assert!(text.parse::<Snap>().expect(text).matches(&id), "{text}");
        }
        assert_eq!(id.to_string().parse::<Snap>().expect("a hash").whole(), Some(id));
        let bare = &id.to_string()[..12];
        for text in
            ["", "snap-", "snap-12a", "snap-12aG", "snap-12AB", bare, "snap-../x", &format!("snap-{id}0")]
        {
            assert_eq!(text.parse::<Snap>(), Err(SnapError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_name_stands_for_one_tree_or_says_which_it_may_mean() {
        let (one, two, other) = (tree(1, 1), tree(1, 2), tree(2, 0));
        let name: Snap = "snap-01ab".parse().expect("a name");
        assert_eq!(name.resolve([other, one, one]), Ok(one));
        assert_eq!(name.resolve([other]), Err(NotResolved::NotFound(name.clone())));
        let ambiguous = name.resolve([two, other, one]).expect_err("two match");
        assert_eq!(ambiguous.code(), "snap_ambiguous");
        assert_eq!(
            ambiguous,
            NotResolved::Ambiguous { name: name.clone(), candidates: vec![one, two], more: 0 }
        );
        let many = name.resolve((0..30).map(|last| tree(1, last))).expect_err("thirty match");
        assert!(many.to_string().ends_with("or one of 20 more; give more digits"), "{many}");
    }
}

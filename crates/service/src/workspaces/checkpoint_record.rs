//! What records say of captures and comparisons: in words, which outlive the code that found them.

use std::collections::BTreeMap;

use rekindle_domain::event::{FileChange, SkippedPath, SkippedPaths};
use rekindle_workspace::{Change, Skip, SkipReason, Skipped};

/// Returns what a record says of skipped paths.
pub(crate) fn as_recorded(skipped: &Skipped) -> SkippedPaths {
    let told = |skip: &Skip| SkippedPath { path: skip.path.as_slice().into(), reason: word(skip.reason) };
    SkippedPaths {
        totals: skipped.totals.iter().map(|(reason, count)| (word(*reason), *count)).collect(),
        first: skipped.first.iter().map(told).collect(),
        all: skipped.all,
    }
}

/// Returns what a record said. A path is skipped whatever the reason was: one that this version does not know is as good as any.
pub(crate) fn from_record(skipped: &SkippedPaths) -> Skipped {
    let told = |skip: &SkippedPath| Some(Skip { path: skip.path.bytes()?, reason: reason(&skip.reason) });
    let mut totals = BTreeMap::new();
    for (word, count) in &skipped.totals {
        *totals.entry(reason(word)).or_default() += count;
    }
    Skipped { totals, first: skipped.first.iter().filter_map(told).collect(), all: skipped.all }
}

/// Returns what happened to a file, in the words of a record.
pub(crate) fn file_change(change: Change) -> FileChange {
    match change {
        Change::Added => FileChange::Added,
        Change::Deleted => FileChange::Deleted,
        Change::Modified | Change::TypeChanged | Change::ModeChanged => FileChange::Modified,
    }
}

fn word(reason: SkipReason) -> String {
    let word = serde_json::to_value(reason).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn reason(word: &str) -> SkipReason {
    serde_json::from_value(word.into()).unwrap_or(SkipReason::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_recorded_and_read_back() {
        let skipped = Skipped {
            totals: [(SkipReason::TooLarge, 2), (SkipReason::Special, 1)].into(),
            first: vec![Skip { path: b"a\xff".to_vec(), reason: SkipReason::TooLarge }],
            all: None,
        };
        let recorded = as_recorded(&skipped);
        assert_eq!(recorded.totals, [("special".to_owned(), 1), ("too_large".to_owned(), 2)].into());
        assert_eq!(from_record(&recorded), skipped);
        let newer = SkippedPaths { totals: [("haunted".to_owned(), 3)].into(), ..SkippedPaths::default() };
        assert_eq!(from_record(&newer).total(), 3);
    }
}

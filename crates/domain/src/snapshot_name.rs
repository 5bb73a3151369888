//! Names of kept snapshots. Records name them too, so this stands below events.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a snapshot within its session: the record it was taken at, and which one of those taken there it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SnapshotName {
    /// The last record it has taken in.
    pub seq: u64,
    /// Which one at that record, from 1.
    pub number: u32,
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.seq, self.number)
    }
}

/// A text that names no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a snapshot's name is a record number, a hyphen and a count, such as 148-1")]
pub struct BadSnapshotName;

impl FromStr for SnapshotName {
    type Err = BadSnapshotName;
    fn from_str(text: &str) -> Result<SnapshotName, BadSnapshotName> {
        let (seq, number) = text.split_once('-').ok_or(BadSnapshotName)?;
        let name = SnapshotName {
            seq: seq.parse().map_err(|_| BadSnapshotName)?,
            number: number.parse().map_err(|_| BadSnapshotName)?,
        };
        // Written in one way only, so that a file has one name.
        if name.number > 0 && name.to_string() == text { Ok(name) } else { Err(BadSnapshotName) }
    }
}

impl From<SnapshotName> for String {
    fn from(name: SnapshotName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for SnapshotName {
    type Error = BadSnapshotName;
    fn try_from(text: String) -> Result<SnapshotName, BadSnapshotName> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(seq: u64, number: u32) -> SnapshotName {
        SnapshotName { seq, number }
    }

    #[test]
    fn a_name_is_written_in_one_way() {
        for (text, expected) in [("148-1", name(148, 1)), ("0-12", name(0, 12))] {
            assert_eq!(text.parse(), Ok(expected));
            assert_eq!(expected.to_string(), text);
            let json = serde_json::to_string(&expected).expect("JSON");
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<SnapshotName>(&json).expect("a name"), expected);
        }
        for bad in
            ["", "148", "148-", "-1", "148-0", "0148-1", "148-01", "+1-1", "1-1-1", "1-4294967296", "../1-1"]
        {
            assert_eq!(bad.parse::<SnapshotName>(), Err(BadSnapshotName), "{bad}");
        }
        let mut names = vec![name(9, 1), name(10, 2), name(10, 1)];
        names.sort();
        assert_eq!(names, [name(9, 1), name(10, 1), name(10, 2)]);
    }
}

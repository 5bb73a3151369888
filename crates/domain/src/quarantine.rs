//! Quarantine: which sessions a daemon leaves alone because they made daemons crash. One crash may be anything; a second one, in
//! another life of the same version, would be followed by a third.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::BootId;
use crate::time::Timestamp;

/// Lives of a daemon that a session may end before it is left alone: the first crash may have had another cause, or none that
/// comes again.
pub const LIVES: usize = 2;

/// The report of one crash: a daemon panicked while it worked on a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// When.
    pub at: Timestamp,
    /// Which life of a daemon it ended.
    pub boot_id: BootId,
    /// The version of that daemon.
    pub version: String,
    /// What it was doing with the session: `redo`, `load`, `append`, `work`, `request`, `follow`.
    pub doing: String,
    /// The thread that panicked.
    pub thread: String,
    /// Where in the source.
    pub location: String,
    /// What the panic said.
    pub message: String,
}

/// A session's quarantine, and why it is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// How many lives of daemons of this version it has ended.
    pub lives: usize,
    /// When it ended the last one.
    pub last: Timestamp,
    /// What the last panic said.
    pub message: String,
}

impl Quarantine {
    /// Decides whether a session is left alone by a daemon of some version, from the reports of the crashes since it was last
    /// released. Another version may have been mended: its count begins anew.
    pub fn decide(crashes: &[Crash], version: &str) -> Option<Quarantine> {
        let ours = || crashes.iter().filter(|crash| crash.version == version);
        let lives = ours().map(|crash| crash.boot_id).collect::<BTreeSet<BootId>>().len();
        // Clocks are set back: of two reports of one moment the one that was written later counts.
        let last = ours().max_by_key(|crash| crash.at).filter(|_| lives >= LIVES)?;
        Some(Quarantine { lives, last: last.at, message: last.message.clone() })
    }

    /// Returns how often it crashed a daemon, in words.
    pub fn times(&self) -> String {
        match self.lives {
            2 => "twice".to_owned(),
            lives => format!("{lives} times"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash(life: u128, version: &str) -> Crash {
        Crash {
            at: Timestamp::from_millis(life as i64),
            boot_id: BootId::mint(0, life),
            version: version.to_owned(),
            doing: "load".to_owned(),
            thread: "recovery".to_owned(),
            location: "fold.rs:1:1".to_owned(),
            message: format!("the end of life {life}"),
        }
    }

    #[test]
    fn two_lives_of_the_same_version_are_needed() {
        type Row = (&'static str, &'static [(u128, &'static str)], Option<(usize, &'static str)>);
        let table: [Row; 8] = [
            ("nothing happened, or it was released since", &[], None),
            ("one crash", &[(1, "1.0")], None),
            ("several threads of one life", &[(1, "1.0"), (1, "1.0")], None),
            ("two lives", &[(1, "1.0"), (2, "1.0")], Some((2, "the end of life 2"))),
            ("three lives", &[(1, "1.0"), (2, "1.0"), (3, "1.0")], Some((3, "the end of life 3"))),
            ("each of another version", &[(1, "0.9"), (2, "1.0")], None),
            ("both of an older version", &[(1, "0.9"), (2, "0.9")], None),
            (
                "an older version and then ours",
                &[(1, "0.9"), (2, "0.9"), (3, "1.0"), (4, "1.0"), (5, "0.9")],
                Some((2, "the end of life 4")),
            ),
        ];
        for (situation, crashes, expected) in table {
            let crashes: Vec<Crash> = crashes.iter().map(|(life, version)| crash(*life, version)).collect();
            let decided = Quarantine::decide(&crashes, "1.0");
            let decided = decided.as_ref().map(|found| (found.lives, found.message.as_str()));
            assert_eq!(decided, expected, "{situation}");
        }
    }

    #[test]
    fn a_report_is_read_as_it_is_written_and_may_say_more() {
        let crash = crash(1, "1.0");
        let mut written = serde_json::to_value(&crash).expect("JSON");
        written["more"] = serde_json::json!("of a newer version");
        assert_eq!(serde_json::from_value::<Crash>(written).expect("a report"), crash);
    }
}

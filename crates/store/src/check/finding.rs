//! One thing found, and the list of them: bounded, worst first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;
use serde::{Serialize, Serializer};

use super::code::{Code, Severity};

/// Most findings of one kind that are kept: whoever has more learns nothing from the rest, and a broken home
/// must not fill the memory.
pub const MAX_OF_A_KIND: u64 = 1000;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Place {
    /// The byte, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte: Option<u64>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub code: Code,
    /// The session it is about.
    pub session: Option<SessionId>,
    /// The file or directory.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Where in it.
    pub at: Option<Place>,
    /// What is the matter, as a sentence.
    pub what: String,
    /// What to do about it, as a sentence.
    pub remedy: String,
}

/// A path need not be UTF-8, and JSON must be.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl Finding {
    /// Says what is the matter with a path, and what to do about it.
    pub fn new(
        code: Code,
        path: impl Into<PathBuf>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            severity: code.severity(),
            code,
            session: None,
            path: path.into(),
            at: None,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Says which session it is about.
    pub fn of(self, session: SessionId) -> Finding {
        Finding { session: Some(session), ..self }
    }

    pub(super) fn byte(mut self, byte: u64) -> Finding {
        self.place().byte = Some(byte);
        self
    }

    pub(super) fn line(mut self, line: u64) -> Finding {
        self.place().line = Some(line);
        self
    }

    pub(super) fn seq(mut self, seq: u64) -> Finding {
        self.place().seq = Some(seq);
        self
    }

    fn place(&mut self) -> &mut Place {
        self.at.get_or_insert_default()
    }
}

/// Findings as they come in.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    counts: BTreeMap<Code, u64>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.code).or_default();
        *count += 1;
        if *count <= MAX_OF_A_KIND {
            self.kept.push(finding);
        }
    }

    pub(super) fn add_all(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// Tells whether there is anything this bad.
    pub(super) fn has(&self, severity: Severity) -> bool {
        self.counts.keys().any(|code| code.severity() == severity)
    }

    /// Takes up findings that were finished before.
    pub(super) fn again(kept: Vec<Finding>, counts: BTreeMap<Code, u64>) -> Findings {
        Findings { kept, counts }
    }

    /// Returns what was kept, worst first and by kind, session and path, and how many there were of each.
    pub(super) fn finish(mut self) -> (Vec<Finding>, BTreeMap<Code, u64>) {
        let key = |finding: &Finding| (finding.severity, finding.code, finding.session);
        self.kept.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path)));
        (self.kept, self.counts)
    }
}

//! Which notices a sink wants, and when. Pure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use rekindle_domain::time::Timestamp;
use serde::Deserialize;

use crate::notice::{Notice, NoticeKind};
use crate::quiet_hours::QuietHours;

/// What is told unless somebody says otherwise: what needs a person, and what has ended.
const USUAL: [NoticeKind; 7] = [
    NoticeKind::Waiting,
    NoticeKind::Completed,
    NoticeKind::Failed,
    NoticeKind::Interrupted,
    NoticeKind::Stalled,
    NoticeKind::Budget,
    NoticeKind::QueueEmpty,
];

/// Whether a notice is told while somebody looks at its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    /// Only while nobody does.
    #[default]
    Unattended,
    /// Always.
    Always,
}

/// What becomes of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It is not told.
    No,
    /// It is told now.
    Now,
    /// It is held back until then, and told with what else happened, as one summary.
    Later(Timestamp),
}

/// The filters of a sink. A list of agents or directories that is empty lets everything through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The kinds that are told.
    pub(crate) events: BTreeSet<NoticeKind>,
    /// Those that are told in quiet hours too.
    pub(crate) urgent: BTreeSet<NoticeKind>,
    pub(crate) when: When,
    pub(crate) agents: Vec<String>,
    /// Directories in which, or below which, sessions work.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) quiet: Option<QuietHours>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            events: USUAL.into(),
            urgent: BTreeSet::new(),
            when: When::default(),
            agents: Vec::new(),
            directories: Vec::new(),
            quiet: None,
        }
    }
}

impl Rules {
    /// Decides about a notice; `attended` says whether somebody looks at its session.
    pub(crate) fn judge(&self, notice: &Notice, attended: bool, now: Timestamp, zone: &TimeZone) -> Wanted {
        let told = self.events.contains(&notice.kind)
            && (self.when == When::Always || !attended)
            && self.is_of_agents(notice)
            && self.is_in_directories(notice);
        if !told {
            return Wanted::No;
        }
        match self.quiet.and_then(|quiet| quiet.until(now, zone)) {
            Some(end) if !self.urgent.contains(&notice.kind) => Wanted::Later(end),
            _ => Wanted::Now,
        }
    }

    fn is_of_agents(&self, notice: &Notice) -> bool {
        self.agents.is_empty() || notice.agent.as_ref().is_some_and(|agent| self.agents.contains(agent))
    }

    fn is_in_directories(&self, notice: &Notice) -> bool {
        let below =
            |directory: &String| self.directories.iter().any(|above| Path::new(directory).starts_with(above));
        self.directories.is_empty() || notice.directory.as_ref().is_some_and(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn kinds_agents_directories_and_onlookers_decide() {
        let now = Timestamp::from_millis(0);
        let told = |rules: &Rules, notice: &Notice, attended| {
            rules.judge(notice, attended, now, &TimeZone::UTC) == Wanted::Now
        };
        let usual = Rules::default();
        let of_kind = |kind| Notice { kind, ..samples::waiting() };
        assert!(USUAL.iter().all(|kind| told(&usual, &of_kind(*kind), false)));
        for kind in [NoticeKind::Progress, NoticeKind::Resumed] {
            assert!(!told(&usual, &of_kind(kind), false));
        }
        assert!(!told(&usual, &samples::waiting(), true));
        let always = Rules { when: When::Always, ..Rules::default() };
        assert!(told(&always, &samples::waiting(), true));

        let of = |agent: &str| Rules { agents: vec![agent.to_owned()], ..Rules::default() };
        assert!(
            told(&of("claude"), &samples::waiting(), false)
                && !told(&of("codex"), &samples::waiting(), false)
        );
        let below = |directory: &str| Rules { directories: vec![directory.into()], ..Rules::default() };
        for (directory, expected) in [("/repo", true), ("/", true), ("/repo/deeper", false), ("/rep", false)]
        {
            assert_eq!(told(&below(directory), &samples::waiting(), false), expected, "{directory}");
        }
        // The queue as a whole is nobody's.
        let empty = Notice { agent: None, directory: None, ..of_kind(NoticeKind::QueueEmpty) };
        assert!(
            told(&usual, &empty, false)
                && !told(&of("claude"), &empty, false)
                && !told(&below("/"), &empty, false)
        );
    }

    #[test]
    fn quiet_hours_hold_back_what_is_not_urgent() {
        let quiet = Some("22:00-07:00".parse().expect("hours"));
        let rules = Rules { quiet, urgent: [NoticeKind::Failed].into(), ..Rules::default() };
        let judge = |kind, at: &str| {
            let notice = Notice { kind, ..samples::waiting() };
            rules.judge(&notice, false, at.parse().expect("a time"), &TimeZone::UTC)
        };
        let morning = "2026-02-22T07:00:00.000Z".parse().expect("a time");
        assert_eq!(judge(NoticeKind::Completed, "2026-02-21T23:00:00.000Z"), Wanted::Later(morning));
        assert_eq!(judge(NoticeKind::Failed, "2026-02-21T23:00:00.000Z"), Wanted::Now);
        assert_eq!(judge(NoticeKind::Completed, "2026-02-21T12:00:00.000Z"), Wanted::Now);
        // What is not wanted at all is not held back either.
        assert_eq!(judge(NoticeKind::Progress, "2026-02-21T23:00:00.000Z"), Wanted::No);
    }
}

//! The bell. A daemon has no terminal, and those that its user is logged in at are in use for something else: the bell rings in terminals
//! where somebody watches sessions, which ask here whether it should.

use std::sync::Arc;

use rekindle_domain::time::Timestamp;

use crate::machine::Machine;
use crate::notice::Notice;
use crate::rules::{Rules, Wanted};

/// A sink that rings where somebody watches.
#[derive(Debug)]
pub struct Bell {
    name: String,
    rules: Rules,
    machine: Arc<dyn Machine>,
}

impl Bell {
    pub(crate) fn new(name: String, rules: Rules, machine: Arc<dyn Machine>) -> Bell {
        Bell { name, rules, machine }
    }

    /// Returns its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether the bell rings for a notice. Whoever watches is there, so that `when` does not count; in quiet hours it is silent.
    pub fn rings(&self, notice: &Notice, now: Timestamp) -> bool {
        self.rules.judge(notice, false, now, &self.machine.zone()) == Wanted::Now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::FakeMachine;
    use crate::notice::NoticeKind;
    use crate::samples;

    #[test]
    fn it_rings_for_what_it_is_for_and_not_at_night() {
        let quiet = Some("22:00-07:00".parse().expect("hours"));
        let rules = Rules { events: [NoticeKind::Waiting].into(), quiet, ..Rules::default() };
        let bell = Bell::new("bell".to_owned(), rules, Arc::new(FakeMachine::new()));
        let rings =
            |kind, at: &str| bell.rings(&Notice { kind, ..samples::waiting() }, at.parse().expect("a time"));
        assert!(rings(NoticeKind::Waiting, "2026-02-21T12:00:00.000Z"));
        assert!(!rings(NoticeKind::Failed, "2026-02-21T12:00:00.000Z"));
        assert!(!rings(NoticeKind::Waiting, "2026-02-21T23:00:00.000Z"));
    }
}

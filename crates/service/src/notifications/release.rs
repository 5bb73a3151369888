//! Who is told of what was found: decided when a notice is found, or once it has settled.

use std::sync::Arc;
use std::time::Duration;

use rekindle_domain::time::Timestamp;
use rekindle_notify::derive::{Derived, needs_settling};
use rekindle_notify::outbox::{Noticed, Recipients};
use rekindle_notify::{Notice, Wanted};

use super::target::Target;

/// What is older than this when it is found is told with the rest as one summary: after a night nobody wants a hundred messages.
const OLD: Duration = Duration::from_secs(60 * 60);

/// When a notice is looked at again that nobody is told of as long as somebody looks at its session.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Decides who is told of a notice, and whether others may be told later: of what is still so when nobody looks any more.
pub(super) fn recipients(
    targets: &[Arc<dyn Target>],
    told: &[String],
    notice: &Notice,
    attended: bool,
    now: Timestamp,
) -> (Recipients, bool) {
    let (mut to, mut open) = (Recipients::default(), false);
    let is_old = u128::from(now.millis_since(notice.at)) > OLD.as_millis();
    for target in targets.iter().filter(|target| !told.iter().any(|told| told == target.name())) {
        let name = target.name().to_owned();
        match target.wants(notice, attended, now) {
            Wanted::Now if is_old => drop(to.later.insert(name, now)),
            Wanted::Now => to.now.push(name),
            Wanted::Later(until) => drop(to.later.insert(name, until)),
            Wanted::No => {
                let is_only_for_now = attended && target.wants(notice, false, now) != Wanted::No;
                open |= is_only_for_now && needs_settling(notice.kind);
            }
        }
    }
    (to, open)
}

/// Puts a notice that was found into the outbox: to settle, or for whoever is told; nothing if nobody is.
pub(super) fn noticed(
    targets: &[Arc<dyn Target>],
    derived: Derived,
    attended: bool,
    (now, settled_at): (Timestamp, Timestamp),
    n: u64,
) -> Option<Noticed> {
    let Derived { notice, .. } = derived;
    let unwanted = |attended| {
        let mut wants = targets.iter().map(|target| target.wants(&notice, attended, now));
        wants.all(|wanted| wanted == Wanted::No)
    };
    if needs_settling(notice.kind) {
        let due = Some(settled_at);
        let settling =
            Noticed { n, at: now, notice: notice.clone(), due, told: Vec::new(), to: Recipients::default() };
        return (!unwanted(false)).then_some(settling);
    }
    let (to, _) = recipients(targets, &[], &notice, attended, now);
    (!to.is_empty()).then(|| Noticed { n, at: now, notice, due: None, told: Vec::new(), to })
}

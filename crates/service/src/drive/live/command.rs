//! Taking command of a holder, and who may tell us that we have lost it. Before a holder has proven itself its word is
//! anybody's: a stranger on its socket must not make a supervisor step down.

use rekindle_holder::client::ConnectError;
use rekindle_holder::dir::{EpochNote, HolderDir};
use rekindle_holder::wire::Refusal;

use super::error::Result;
use super::{LiveError, STEP, Supervisor};
use crate::drive::holders::{Control, Holders};

/// Commands a holder under the supervisor's epoch.
pub(crate) fn command(
    holders: &dyn Holders,
    dir: &HolderDir,
    supervisor: Supervisor,
) -> Result<Box<dyn Control>> {
    let instance = supervisor.boot_id.to_string();
    match holders.connect(dir, &instance, supervisor.epoch, STEP) {
        Err(ConnectError::Refused(no)) if no.reason == Refusal::Stale => {
            Err(verdict(holders.epoch(dir).as_ref(), &instance, supervisor.epoch, no.epoch))
        }
        outcome => Ok(outcome?),
    }
}

/// Believes that another commands only if the holder's own file says so too.
fn verdict(note: Option<&EpochNote>, instance: &str, epoch: u64, claimed: u64) -> LiveError {
    let outranks = |note: &&EpochNote| note.epoch > epoch || note.epoch == epoch && note.instance != instance;
    match note.filter(outranks) {
        Some(note) => LiveError::Superseded { by: note.epoch },
        None => LiveError::Unconfirmed { claimed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_outranks_us_makes_us_the_old_one() {
        let said = |epoch, instance: &str| {
            let note = EpochNote { epoch, instance: instance.into() };
            matches!(verdict(Some(&note), "boot_us", 7, 99), LiveError::Superseded { by } if by == epoch)
        };
        assert!(said(8, "boot_other") && said(8, "boot_us"), "a higher epoch");
        assert!(said(7, "boot_other"), "the same one of another");
        assert!(!said(7, "boot_us") && !said(6, "boot_other"), "our own, and an older one");
        assert!(matches!(verdict(None, "boot_us", 7, 99), LiveError::Unconfirmed { claimed: 99 }));
    }
}

//! The check of budgets before a run begins: a message is refused while the budget of its session, or of the day, leaves nothing for it.
//! What uses one up later is cancelled by whoever holds runs to their budgets.

use std::sync::Mutex;

use rekindle_domain::budget::nothing_left;
use rekindle_domain::event::{Budget, BudgetNotice, BudgetScope};
use rekindle_domain::session::SessionState;
use rekindle_domain::time::{Now, Timestamp};
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};
use crate::lock::locked;

/// What is known of budgets without looking at other sessions.
#[derive(Debug, Default)]
pub(crate) struct BudgetCheck {
    /// Of each session.
    session: Option<Budget>,
    /// That the day has nothing left, and when the next begins.
    day: Mutex<Option<(BudgetNotice, Timestamp)>>,
}

impl BudgetCheck {
    pub(crate) fn new(session: Option<Budget>) -> BudgetCheck {
        BudgetCheck { session, day: Mutex::default() }
    }

    /// Whoever adds up the day says that nothing is left of its budget, and until when; or that something is.
    pub(crate) fn set_day(&self, spent: Option<(BudgetNotice, Timestamp)>) {
        *locked(&self.day) = spent;
    }

    /// Refuses a run that begins in a session, or in a new one, if nothing is left for it.
    pub(crate) fn check(&self, session: Option<&SessionState>, now: &Now) -> Result<()> {
        let spent = |(state, budget): (&SessionState, &Budget)| {
            nothing_left(BudgetScope::Session, budget, &state.used(now))
        };
        if let Some(notice) = session.zip(self.session.as_ref()).and_then(spent) {
            return Err(refused(&notice.to_string(), Hint::StartSession));
        }
        match *locked(&self.day) {
            Some((notice, end)) if now.wall < end => {
                Err(refused(&format!("{notice}, until {end}"), Hint::RaiseBudget))
            }
            _ => Ok(()),
        }
    }
}

fn refused(why: &str, hint: Hint) -> ServiceError {
    ServiceError::new(Code::BudgetExceeded, why).hint(hint)
}

#[cfg(test)]
mod tests {
    use rekindle_domain::event::BudgetPart;

    use super::*;

    #[test]
    fn a_day_with_nothing_left_refuses_until_it_ends() {
        let gate = BudgetCheck::default();
        let at = |millis: i64| {
            let time = Timestamp::from_millis(millis);
            Now { wall: time, steady: time }
        };
        gate.check(None, &at(1)).expect("nothing is known");
        let (scope, part) = (BudgetScope::Day, BudgetPart::Tokens);
        let notice = BudgetNotice { scope, part, used: 12.0, limit: 10.0, exceeded: true };
        gate.set_day(Some((notice, Timestamp::from_millis(1_000))));
        let refused = gate.check(None, &at(999)).expect_err("refused");
        let told = "the day has used 12 of 10 tokens: nothing is left, until 1970-01-01T00:00:01.000Z";
        assert_eq!((refused.code, refused.text().as_str()), (Code::BudgetExceeded, told));
        gate.check(None, &at(1_000)).expect("the next day");
        gate.set_day(None);
        gate.check(None, &at(999)).expect("more is allowed");
    }
}

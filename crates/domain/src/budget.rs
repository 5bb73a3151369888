//! Budgets: whether what was used is within what may be used, by a run, a session, a task, or everything on one day. What an agent does
//! not tell is unknown, and is not taken for nothing used; what is unknown cannot exceed anything.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::event::{Budget, BudgetNotice, BudgetPart, BudgetScope};

/// From this part of a budget on people are told, in hundredths.
const NOTICE_AT: f64 = 80.0;

/// What was used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Tokens, read and written, if agents tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, if agents tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Milliseconds in which runs went on.
    #[serde(default)]
    pub wall_ms: u64,
    /// Turns.
    #[serde(default)]
    pub turns: u64,
}

impl Used {
    /// Returns what was used since it was so much.
    pub fn since(&self, before: &Used) -> Used {
        Used {
            tokens: self.tokens.map(|tokens| tokens.saturating_sub(before.tokens.unwrap_or(0))),
            cost: self.cost.map(|cost| (cost - before.cost.unwrap_or(0.0)).max(0.0)),
            wall_ms: self.wall_ms.saturating_sub(before.wall_ms),
            turns: self.turns.saturating_sub(before.turns),
        }
    }

    /// Returns what both used.
    pub fn plus(&self, other: &Used) -> Used {
        let tokens = [self.tokens, other.tokens];
        let cost = [self.cost, other.cost];
        Used {
            tokens: tokens.into_iter().flatten().reduce(u64::saturating_add),
            cost: cost.into_iter().flatten().reduce(|one, other| one + other),
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
            turns: self.turns.saturating_add(other.turns),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Used::default()
    }
}

/// Tells of a budget that is used up, or nearly so: by the part of it of which most is used. None if there is enough of everything.
pub fn budget_notice(scope: BudgetScope, budget: &Budget, used: &Used) -> Option<BudgetNotice> {
    let parts = [
        (BudgetPart::Tokens, budget.tokens.map(|most| most as f64), used.tokens.map(|used| used as f64)),
        (BudgetPart::Cost, budget.cost, used.cost),
        (BudgetPart::WallTime, budget.wall_s.map(|most| most as f64), Some(used.wall_ms as f64 / 1000.0)),
        (BudgetPart::Turns, budget.turns.map(|most| most as f64), Some(used.turns as f64)),
    ];
    let shares = parts.into_iter().filter_map(|(part, limit, used)| {
        let (limit, used) = (limit?, used?);
        Some((share(part, used, limit), part, used, limit))
    });
    let (share, part, used, limit) = shares.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let exceeded = share >= 100.0;
    let is_near = share >= NOTICE_AT && part != BudgetPart::Turns;
    (exceeded || is_near).then_some(BudgetNotice { scope, part, used, limit, exceeded })
}

/// Tells of a budget that leaves nothing for another turn.
pub fn nothing_left(scope: BudgetScope, budget: &Budget, used: &Used) -> Option<BudgetNotice> {
    let next = Used { turns: used.turns.saturating_add(1), ..*used };
    let notice = budget_notice(scope, budget, &next).filter(|notice| notice.exceeded)?;
    let is_turns = notice.part == BudgetPart::Turns;
    Some(BudgetNotice { used: if is_turns { used.turns as f64 } else { notice.used }, ..notice })
}

/// Returns how much of something is used, in hundredths; of nothing everything is. The last turn that may be made is not cut short.
fn share(part: BudgetPart, used: f64, limit: f64) -> f64 {
    let limit = if part == BudgetPart::Turns { limit + 1.0 } else { limit };
    if limit > 0.0 { used / limit * 100.0 } else { f64::INFINITY }
}

impl fmt::Display for BudgetNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BudgetNotice { scope, part, used, limit, exceeded } = *self;
        write!(f, "the {} has used ", scope.as_str())?;
        match part {
            BudgetPart::Cost => write!(f, "{used:.2} of {limit:.2} (cost)")?,
            BudgetPart::WallTime => write!(f, "{used:.0} of {limit:.0} s")?,
            part => write!(f, "{used:.0} of {limit:.0} {}", part.name())?,
        }
        f.write_str(if exceeded { ": nothing is left" } else { "" })
    }
}

/// Returns the worst of several notices: the first budget that is used up, or else the first that nearly is.
pub fn worst_notice(notices: impl IntoIterator<Item = BudgetNotice>) -> Option<BudgetNotice> {
    notices.into_iter().reduce(|worst, next| if next.exceeded && !worst.exceeded { next } else { worst })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which part of a budget is told of, and whether nothing of it is left.
    fn told(budget: &Budget, used: Used) -> Option<(BudgetPart, bool)> {
        let notice = budget_notice(BudgetScope::Run, budget, &used);
        notice.map(|notice| (notice.part, notice.exceeded))
    }

    #[test]
    fn what_is_used_most_decides() {
        let budget = Budget { tokens: Some(1_000), cost: Some(2.0), wall_s: Some(60), turns: Some(2) };
        let used = Used { tokens: Some(100), cost: Some(0.1), wall_ms: 1_000, turns: 1 };
        for (used, expected) in [
            (used, None),
            (Used { tokens: Some(799), ..used }, None),
            (Used { tokens: Some(800), ..used }, Some((BudgetPart::Tokens, false))),
            (Used { tokens: Some(1_000), ..used }, Some((BudgetPart::Tokens, true))),
            (Used { cost: Some(1.7), tokens: Some(810), ..used }, Some((BudgetPart::Cost, false))),
            (Used { cost: Some(2.0), ..used }, Some((BudgetPart::Cost, true))),
            (Used { wall_ms: 48_000, ..used }, Some((BudgetPart::WallTime, false))),
            (Used { wall_ms: 61_000, ..used }, Some((BudgetPart::WallTime, true))),
            (Used { turns: 2, ..used }, None),
            (Used { turns: 3, ..used }, Some((BudgetPart::Turns, true))),
        ] {
            assert_eq!(told(&budget, used), expected, "{used:?}");
        }
    }

    #[test]
    fn a_turn_more_is_too_much_where_nothing_is_left() {
        let budget = Budget { cost: Some(2.0), turns: Some(2), ..Budget::default() };
        let left =
            |used: Used| nothing_left(BudgetScope::Session, &budget, &used).map(|told| told.to_string());
        assert_eq!(left(Used { turns: 1, cost: Some(1.9), ..Used::default() }), None);
        let told = left(Used { turns: 2, ..Used::default() });
        assert_eq!(told.as_deref(), Some("the session has used 2 of 2 turns: nothing is left"));
        let told = left(Used { turns: 1, cost: Some(2.1), ..Used::default() });
        assert_eq!(told.as_deref(), Some("the session has used 2.10 of 2.00 (cost): nothing is left"));
    }

    #[test]
    fn each_part_is_told_in_its_unit() {
        for (part, used, limit, exceeded, told) in [
            (BudgetPart::Tokens, 810.0, 1_000.0, false, "the day has used 810 of 1000 tokens"),
            (BudgetPart::Cost, 4.1, 5.0, false, "the day has used 4.10 of 5.00 (cost)"),
            (BudgetPart::WallTime, 60.2, 60.0, true, "the day has used 60 of 60 s: nothing is left"),
        ] {
            let notice = BudgetNotice { scope: BudgetScope::Day, part, used, limit, exceeded };
            assert_eq!(notice.to_string(), told);
        }
    }

    #[test]
    fn what_is_unknown_or_not_limited_exceeds_nothing() {
        let used = Used { tokens: None, cost: None, wall_ms: u64::MAX, turns: u64::MAX };
        let budget = Budget { tokens: Some(1), cost: Some(0.01), wall_s: None, turns: None };
        assert_eq!(told(&budget, used), None);
        assert_eq!(told(&Budget::default(), used), None);
        let nothing = Budget { tokens: Some(0), ..Budget::default() };
        assert_eq!(told(&nothing, Used { tokens: Some(0), ..used }), Some((BudgetPart::Tokens, true)));
    }

    #[test]
    fn the_worst_budget_is_told_and_of_two_as_bad_the_first() {
        let budget = Budget { tokens: Some(10), ..Budget::default() };
        let worst = |run, session, day| {
            let used = [(BudgetScope::Run, run), (BudgetScope::Session, session), (BudgetScope::Day, day)];
            let notices = used.into_iter().filter_map(|(scope, tokens)| {
                budget_notice(scope, &budget, &Used { tokens: Some(tokens), ..Used::default() })
            });
            worst_notice(notices).map(|notice| (notice.scope, notice.exceeded))
        };
        assert_eq!(worst(1, 2, 3), None);
        assert_eq!(worst(1, 8, 9), Some((BudgetScope::Session, false)));
        assert_eq!(worst(8, 9, 11), Some((BudgetScope::Day, true)));
        assert_eq!(worst(8, 10, 11), Some((BudgetScope::Session, true)));
    }

    #[test]
    fn what_was_used_before_is_not_counted_again() {
        let used = |tokens, cost, wall_ms, turns| Used { tokens, cost, wall_ms, turns };
        let all = used(Some(30), Some(0.5), 900, 3);
        assert_eq!(all.since(&used(Some(10), None, 400, 1)), used(Some(20), Some(0.5), 500, 2));
        assert_eq!(all.since(&Used::default()), all);
        assert_eq!(used(None, None, 5, 1).since(&used(Some(1), Some(1.0), 9, 2)), used(None, None, 0, 0));
        assert_eq!(all.plus(&used(None, Some(0.5), 100, 1)), used(Some(30), Some(1.0), 1_000, 4));
        assert_eq!(Used::default().plus(&Used::default()).tokens, None, "nobody told anything");
    }
}

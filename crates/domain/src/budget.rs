//! Budgets: whether what was used is within what may be used, by a run, a session, a task, or everything on one day. What an agent does
//! not tell is unknown, and is not taken for nothing used; what is unknown cannot exceed anything.

use serde::{Deserialize, Serialize};

use crate::event::{Budget, BudgetPart, BudgetScope};

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

/// How something stands with its budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BudgetState {
    /// There is enough of everything.
    Within,
    /// Most of something is used.
    Nearly(Spent),
    /// All of something is used.
    Exceeded(Spent),
}

/// The part of a budget of which most is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// Which part.
    pub part: BudgetPart,
    /// How much of it is used.
    pub used: f64,
    /// How much of it there is.
    pub limit: f64,
}

/// Tells how something stands with its budget: by whatever of it is used most.
pub fn budget_state(budget: &Budget, used: &Used) -> BudgetState {
    let parts = [
        (BudgetPart::Tokens, budget.tokens.map(|most| most as f64), used.tokens.map(|used| used as f64)),
        (BudgetPart::Cost, budget.cost, used.cost),
        (BudgetPart::WallTime, budget.wall_s.map(|most| most as f64), Some(used.wall_ms as f64 / 1000.0)),
        (BudgetPart::Turns, budget.turns.map(|most| most as f64), Some(used.turns as f64)),
    ];
    let spent =
        parts.into_iter().filter_map(|(part, limit, used)| Some(Spent { part, used: used?, limit: limit? }));
    match spent.max_by(|one, other| one.share().total_cmp(&other.share())) {
        Some(spent) if spent.share() >= 100.0 => BudgetState::Exceeded(spent),
        Some(spent) if spent.share() >= NOTICE_AT && spent.part != BudgetPart::Turns => {
            BudgetState::Nearly(spent)
        }
        _ => BudgetState::Within,
    }
}

impl Spent {
    /// Returns how much is used, in hundredths; of nothing everything is. The last turn that may be made is not cut short.
    fn share(&self) -> f64 {
        let limit = if self.part == BudgetPart::Turns { self.limit + 1.0 } else { self.limit };
        if limit > 0.0 { self.used / limit * 100.0 } else { f64::INFINITY }
    }
}

/// Tells how a run stands with several budgets: by the one that is exceeded, or nearly so, first.
pub fn worst_state(
    states: impl IntoIterator<Item = (BudgetScope, BudgetState)>,
) -> Option<(BudgetScope, BudgetState)> {
    let rank = |state: &BudgetState| match state {
        BudgetState::Within => 0,
        BudgetState::Nearly(_) => 1,
        BudgetState::Exceeded(_) => 2,
    };
    let bad = states.into_iter().filter(|(_, state)| *state != BudgetState::Within);
    // The first of those that are as bad.
    bad.reduce(|worst, next| if rank(&next.1) > rank(&worst.1) { next } else { worst })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(state: BudgetState) -> (u8, Option<BudgetPart>) {
        match state {
            BudgetState::Within => (0, None),
            BudgetState::Nearly(spent) => (1, Some(spent.part)),
            BudgetState::Exceeded(spent) => (2, Some(spent.part)),
        }
    }

    #[test]
    fn what_is_used_most_decides() {
        let budget = Budget { tokens: Some(1_000), cost: Some(2.0), wall_s: Some(60), turns: Some(2) };
        let used = Used { tokens: Some(100), cost: Some(0.1), wall_ms: 1_000, turns: 1 };
        for (used, expected) in [
            (used, (0, None)),
            (Used { tokens: Some(799), ..used }, (0, None)),
            (Used { tokens: Some(800), ..used }, (1, Some(BudgetPart::Tokens))),
            (Used { tokens: Some(1_000), ..used }, (2, Some(BudgetPart::Tokens))),
            (Used { cost: Some(1.7), tokens: Some(810), ..used }, (1, Some(BudgetPart::Cost))),
            (Used { cost: Some(2.0), ..used }, (2, Some(BudgetPart::Cost))),
            (Used { wall_ms: 48_000, ..used }, (1, Some(BudgetPart::WallTime))),
            (Used { wall_ms: 61_000, ..used }, (2, Some(BudgetPart::WallTime))),
            (Used { turns: 2, ..used }, (0, None)),
            (Used { turns: 3, ..used }, (2, Some(BudgetPart::Turns))),
        ] {
            assert_eq!(told(budget_state(&budget, &used)), expected, "{used:?}");
        }
    }

    #[test]
    fn what_is_unknown_or_not_limited_exceeds_nothing() {
        let used = Used { tokens: None, cost: None, wall_ms: u64::MAX, turns: u64::MAX };
        let budget = Budget { tokens: Some(1), cost: Some(0.01), wall_s: None, turns: None };
        assert_eq!(budget_state(&budget, &used), BudgetState::Within);
        assert_eq!(budget_state(&Budget::default(), &used), BudgetState::Within);
        let nothing = Budget { tokens: Some(0), ..Budget::default() };
        let state = budget_state(&nothing, &Used { tokens: Some(0), ..used });
        assert_eq!(told(state), (2, Some(BudgetPart::Tokens)));
    }

    #[test]
    fn the_worst_budget_is_told_and_of_two_as_bad_the_first() {
        let state = |used: u64| {
            budget_state(
                &Budget { tokens: Some(10), ..Budget::default() },
                &Used { tokens: Some(used), ..Used::default() },
            )
        };
        let worst = |run, session, day| {
            let scopes = [BudgetScope::Run, BudgetScope::Session, BudgetScope::Day];
            worst_state(scopes.into_iter().zip([run, session, day].map(state)))
                .map(|(scope, state)| (scope, told(state).0))
        };
        assert_eq!(worst(1, 2, 3), None);
        assert_eq!(worst(1, 8, 9), Some((BudgetScope::Session, 1)));
        assert_eq!(worst(8, 9, 11), Some((BudgetScope::Day, 2)));
        assert_eq!(worst(8, 10, 11), Some((BudgetScope::Session, 2)));
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

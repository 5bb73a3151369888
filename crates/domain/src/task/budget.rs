//! The budget of a task: whether what it has used is within what it may use. What an agent does not tell is unknown, and is not taken
//! for nothing used; what is unknown cannot exceed anything.

use crate::event::Budget;

/// From this part of a budget on people are told, in hundredths.
const NOTICE_AT: f64 = 80.0;

/// What a task has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Tokens, read and written, if its agent tells.
    pub tokens: Option<u64>,
    /// Money, if its agent tells.
    pub cost: Option<f64>,
    /// Seconds in which its runs went on.
    pub wall_s: u64,
    /// Turns.
    pub turns: u64,
}

/// How a task stands with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetState {
    /// There is enough of everything.
    Within,
    /// Most of something is used.
    Nearly(&'static str),
    /// All of something is used.
    Exceeded(&'static str),
}

/// Tells how a task stands with its budget: by whatever of it is used most.
pub fn budget_state(budget: &Budget, used: &Used) -> BudgetState {
    let parts = [
        ("tokens", budget.tokens.map(|most| most as f64), used.tokens.map(|used| used as f64)),
        ("cost", budget.cost, used.cost),
        ("wall time", budget.wall_s.map(|most| most as f64), Some(used.wall_s as f64)),
        // The last one that it may make is not cut short.
        ("turns", budget.turns.map(|most| most as f64 + 1.0), Some(used.turns as f64)),
    ];
    let shares = parts.into_iter().filter_map(|(name, most, used)| Some((name, share(most?, used?))));
    match shares.max_by(|(_, one), (_, other)| one.total_cmp(other)) {
        Some((name, share)) if share >= 100.0 => BudgetState::Exceeded(name),
        Some((name, share)) if share >= NOTICE_AT && name != "turns" => BudgetState::Nearly(name),
        _ => BudgetState::Within,
    }
}

/// Returns how much of something is used, in hundredths; of nothing everything is.
fn share(most: f64, used: f64) -> f64 {
    if most > 0.0 { used / most * 100.0 } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_most_decides() {
        let budget = Budget { tokens: Some(1_000), cost: Some(2.0), wall_s: Some(60), turns: Some(2) };
        let used = Used { tokens: Some(100), cost: Some(0.1), wall_s: 1, turns: 1 };
        for (used, expected) in [
            (used, BudgetState::Within),
            (Used { tokens: Some(799), ..used }, BudgetState::Within),
            (Used { tokens: Some(800), ..used }, BudgetState::Nearly("tokens")),
            (Used { tokens: Some(1_000), ..used }, BudgetState::Exceeded("tokens")),
            (Used { cost: Some(1.7), tokens: Some(810), ..used }, BudgetState::Nearly("cost")),
            (Used { cost: Some(2.0), ..used }, BudgetState::Exceeded("cost")),
            (Used { wall_s: 48, ..used }, BudgetState::Nearly("wall time")),
            (Used { wall_s: 61, ..used }, BudgetState::Exceeded("wall time")),
            (Used { turns: 2, ..used }, BudgetState::Within),
            (Used { turns: 3, ..used }, BudgetState::Exceeded("turns")),
        ] {
            assert_eq!(budget_state(&budget, &used), expected, "{used:?}");
        }
    }

    #[test]
    fn what_is_unknown_or_not_limited_exceeds_nothing() {
        let used = Used { tokens: None, cost: None, wall_s: u64::MAX, turns: u64::MAX };
        let budget = Budget { tokens: Some(1), cost: Some(0.01), wall_s: None, turns: None };
        assert_eq!(budget_state(&budget, &used), BudgetState::Within);
        assert_eq!(budget_state(&Budget::default(), &used), BudgetState::Within);
        let nothing = Budget { tokens: Some(0), ..Budget::default() };
        assert_eq!(
            budget_state(&nothing, &Used { tokens: Some(0), ..used }),
            BudgetState::Exceeded("tokens")
        );
    }
}

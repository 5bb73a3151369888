//! Budgets as records have them: how much may be used, and that a run has used it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::string_enum::string_enums;
use crate::whole_number::whole;

string_enums! {
    /// What a budget is for.
    #[derive(JsonSchema)]
    pub enum BudgetScope {
        /// A run, with all attempts at it.
        Run = "run",
        /// A session.
        Session = "session",
        /// A task, in whatever sessions.
        Task = "task",
        /// Everything in a home on one day.
        Day = "day",
        /// One that a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }

    /// A part of a budget.
    #[derive(JsonSchema)]
    pub enum BudgetPart {
        /// Tokens.
        Tokens = "tokens",
        /// Money.
        Cost = "cost",
        /// Time.
        WallTime = "wall_s",
        /// Turns.
        Turns = "turns",
        /// One that a newer version wrote.
        #[serde(other)]
        Unknown = "unknown",
    }
}

impl BudgetPart {
    /// Returns what people call it.
    pub fn name(self) -> &'static str {
        match self {
            BudgetPart::WallTime => "wall time",
            part => part.as_str(),
        }
    }
}

/// The most that may be used; what is not named is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub tokens: Option<u64>,
    /// Money, in the agent's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost: Option<f64>,
    /// Seconds in which runs went on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub wall_s: Option<u64>,
    /// Turns.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub turns: Option<u64>,
}

/// A budget is used up by a run, which is then cancelled, or nearly so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunBudget {
    /// The run.
    pub run_id: RunId,
    /// The budget.
    #[serde(flatten)]
    pub notice: BudgetNotice,
}

/// A budget that is used up, or nearly so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetNotice {
    /// Whose budget it is.
    pub scope: BudgetScope,
    /// Which part of it.
    pub part: BudgetPart,
    /// How much of that is used: tokens, money, seconds or turns.
    pub used: f64,
    /// How much of it there is.
    pub limit: f64,
    /// Nothing of it is left: a cancel of the run comes next.
    pub exceeded: bool,
}

//! What a session has used: tokens added up over its runs, money over the agent sessions that it had.
//!
//! Agents tell the tokens of one turn with its end, and the cost of their whole session whenever they like. A session
//! outlives its agents, so the first are added up, and the second is added to what came before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Used;
use crate::event::Raw;

/// What a session has used, as a snapshot keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SessionUsage {
    /// Tokens read, and what agents do not tell counts for none.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost in the agent's currency, if it tells.
    pub cost: Option<f64>,
    /// How full the agent's context is, if it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// The part of the cost that agent sessions before this one had.
    #[serde(skip_serializing_if = "is_zero")]
    earlier_cost: f64,
    /// The agent session is in another process since it last told its cost: that may begin at nothing again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    brought_back: bool,
    /// The tokens of the latest run that are in the totals.
    #[serde(skip_serializing_if = "Tokens::is_none")]
    run: Tokens,
    /// Runs that were begun.
    #[serde(skip_serializing_if = "is_none_counted")]
    turns: u64,
    /// Milliseconds in which those went on that have ended.
    #[serde(skip_serializing_if = "is_none_counted")]
    ran_ms: u64,
    /// What was used when the latest run began, with all attempts at it.
    #[serde(skip_serializing_if = "Used::is_nothing")]
    before_run: Used,
}

/// How full an agent's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// Tokens in it.
    pub used: u64,
    /// Tokens that it can hold.
    pub size: u64,
}

/// Tokens of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Tokens {
    fn is_none(&self) -> bool {
        *self == Tokens::default()
    }
}

/// What a session has used, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct UsageShown {
    /// Tokens read, in all runs.
    pub input_tokens: u64,
    /// Tokens written, in all runs.
    pub output_tokens: u64,
    /// Cost in the agent's currency, if it tells; it never falls.
    pub cost: Option<f64>,
    /// How full the agent's context is, if it tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
}

impl SessionUsage {
    /// Returns what is shown.
    pub fn shown(&self) -> UsageShown {
        let SessionUsage { input_tokens, output_tokens, cost, context, .. } = *self;
        UsageShown { input_tokens, output_tokens, cost, context }
    }

    /// A run begins: what is told of tokens from now on is its own. One that continues another shares its budget.
    pub(super) fn begin_run(&mut self, continues: bool) {
        self.run = Tokens::default();
        if !continues {
            self.before_run = self.used(0);
        }
        self.turns += 1;
    }

    /// A run has ended, after so many milliseconds.
    pub(super) fn end_run(&mut self, took_ms: u64) {
        self.ran_ms = self.ran_ms.saturating_add(took_ms);
    }

    /// Returns what was used in all runs, the latest of which goes on for so many milliseconds, or has ended.
    pub(super) fn used(&self, running_ms: u64) -> Used {
        let tokens = self.input_tokens.saturating_add(self.output_tokens);
        Used {
            // An agent that tells none has not used none.
            tokens: Some(tokens).filter(|tokens| *tokens > 0),
            cost: self.cost,
            wall_ms: self.ran_ms.saturating_add(running_ms),
            turns: self.turns,
        }
    }

    /// Returns the part of what was used that the runs before the latest had.
    pub(super) fn used_before_run(&self) -> Used {
        self.before_run
    }

    /// An agent has a session: the one that is going on, in another process, or another one.
    pub(super) fn begin_agent(&mut self, same: bool) {
        self.brought_back = same;
        if !same {
            self.earlier_cost = self.cost.unwrap_or_default();
            self.context = None;
        }
    }

    /// Takes in the tokens of the latest run. The newest word counts: a run's are told once by most agents, and the
    /// record of its end repeats them.
    pub(super) fn count_tokens(&mut self, input: u64, output: u64) {
        let told = Tokens { input, output };
        if told.is_none() {
            return;
        }
        let before = std::mem::replace(&mut self.run, told);
        self.input_tokens = self.input_tokens.saturating_sub(before.input).saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_sub(before.output).saturating_add(output);
    }

    /// Takes in the cost of the agent's session so far. The total never falls: a session that was brought back may count
    /// from the beginning again, and a smaller number otherwise is a correction that nobody is helped by.
    pub(super) fn count_cost(&mut self, cost: Option<f64>) {
        let Some(told) = cost.filter(|cost| cost.is_finite() && *cost >= 0.0) else { return };
        let known = self.cost.unwrap_or_default();
        if std::mem::take(&mut self.brought_back) && self.earlier_cost + told < known {
            self.earlier_cost = known;
        }
        self.cost = Some(known.max(self.earlier_cost + told));
    }

    /// Takes in how full the context is, where a report says so.
    pub(super) fn set_context(&mut self, report: Option<&Raw<'_>>) {
        if let Some(context) = report.and_then(|raw| serde_json::from_str(raw.as_json()).ok()) {
            self.context = Some(context);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_none_counted(count: &u64) -> bool {
    *count == 0
}

fn is_zero(cost: &f64) -> bool {
    *cost == 0.0
}

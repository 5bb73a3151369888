//! The section `[budgets]` of the configuration: the most that runs, sessions, tasks and days may use.

use std::time::Duration;

use rekindle_domain::event::Budget;
use rekindle_service::daemon::BudgetSettings;
use serde::Deserialize;
use serde::de::Error;

use super::persistence::length_of_time;

/// The section as it is written; what it does not say is not limited.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BudgetsConfig {
    /// Of each run, with all attempts at it.
    run: Option<BudgetConfig>,
    /// Of each session.
    session: Option<BudgetConfig>,
    /// Of each task that brings none.
    task: Option<BudgetConfig>,
    /// Of everything on one day.
    day: Option<BudgetConfig>,
}

/// One budget as it is written.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BudgetConfig {
    tokens: Option<u64>,
    #[serde(deserialize_with = "amount")]
    cost: Option<f64>,
    /// As in `2h`.
    #[serde(deserialize_with = "length_of_time")]
    wall: Option<Duration>,
    turns: Option<u64>,
}

/// Reads an amount of money.
fn amount<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let amount = f64::deserialize(from)?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(Some(amount))
    } else {
        Err(D::Error::custom("an amount of money must be 0 or more"))
    }
}

impl BudgetsConfig {
    pub(crate) fn settings(&self) -> BudgetSettings {
        let budget = |config: &Option<BudgetConfig>| {
            config.as_ref().map(|config| Budget {
                tokens: config.tokens,
                cost: config.cost,
                wall_s: config.wall.map(|wall| wall.as_secs()),
                turns: config.turns,
            })
        };
        BudgetSettings {
            run: budget(&self.run),
            session: budget(&self.session),
            task: budget(&self.task),
            day: budget(&self.day),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_and_what_is_no_budget_is_refused() {
        let read = |text: &str| toml::from_str::<BudgetsConfig>(text);
        let config =
            read("run = { tokens = 200_000, wall = \"2h\" }\n[day]\ncost = 20\nturns = 100\n").expect("read");
        let (tokens, wall_s) = (Some(200_000), Some(7_200));
        let run = Some(Budget { tokens, wall_s, ..Budget::default() });
        let day = Some(Budget { cost: Some(20.0), turns: Some(100), ..Budget::default() });
        assert_eq!(config.settings(), BudgetSettings { run, day, ..BudgetSettings::default() });
        assert_eq!(read("").expect("read").settings(), BudgetSettings::default());
        for wrong in
            ["run = 5", "day = { cost = -1 }", "day = { cost = nan }", "week = {}", "day = { wall_s = 1 }"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

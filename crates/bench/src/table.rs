//! Rows of the result: figures, goals, verdicts; as a table for people, as JSON for programs.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::measure::{Rounds, Spread, median};
use crate::system_info::SystemInfo;

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// So many a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// A plain number.
    Count,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// Ours over raw, at most.
    RatioAtMost(f64),
    /// Ours over raw, at least.
    RatioAtLeast(f64),
    /// Our figure, at most.
    AtMost(f64),
    /// Our figure, at least.
    AtLeast(f64),
    /// Ours minus raw, at most.
    MoreAtMost(f64),
    /// Nothing: it is good to know.
    None,
}

/// Whether it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    Miss,
    Informative,
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    name: &'static str,
    what: String,
    unit: Unit,
    raw: Option<f64>,
    ours: Spread,
    ratio: Option<Spread>,
    /// How much more ours is than raw.
    more: f64,
    target: Target,
}

impl Row {
    /// Returns a row of ours beside raw.
    pub(crate) fn compared(what: impl Into<String>, unit: Unit, rounds: &Rounds, target: Target) -> Row {
        Row {
            name: "",
            what: what.into(),
            unit,
            raw: Some(median(&rounds.raw)),
            ours: rounds.ours.as_slice().into(),
            ratio: Some(rounds.ratio()),
            more: rounds.more(),
            target,
        }
    }

    /// Returns a row of ours alone: of one round, or of several.
    pub(crate) fn alone(what: impl Into<String>, unit: Unit, ours: impl Into<Spread>, target: Target) -> Row {
        let ours = ours.into();
        Row { name: "", what: what.into(), unit, raw: None, ours, ratio: None, more: f64::NAN, target }
    }

    /// Returns a row that could not be measured on this machine, and why.
    pub(crate) fn not_measured(what: impl Into<String>, why: &str) -> Row {
        let what = format!("{}: not measured, {why}", what.into());
        Row::alone(what, Unit::Count, f64::NAN, Target::None)
    }

    /// Puts the name of the row's program on it.
    pub(crate) fn named(self, name: &'static str) -> Row {
        Row { name, ..self }
    }

    fn verdict(&self) -> Verdict {
        let ratio = self.ratio.map_or(f64::NAN, |ratio| ratio.median);
        let reached = match self.target {
            Target::RatioAtMost(most) => ratio <= most,
            Target::RatioAtLeast(least) => ratio >= least,
            Target::AtMost(most) => self.ours.median <= most,
            Target::AtLeast(least) => self.ours.median >= least,
            Target::MoreAtMost(most) => self.more <= most,
            Target::None => return Verdict::Informative,
        };
        if reached { Verdict::Ok } else { Verdict::Miss }
    }

    /// Tells whether a goal was missed.
    pub(crate) fn is_missed(&self) -> bool {
        self.verdict() == Verdict::Miss
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::RatioAtMost(most) => format!("≤ {}×", (most * 100.0).round() / 100.0),
            Target::RatioAtLeast(least) => format!("≥ {least}×"),
            Target::AtMost(most) => format!("≤ {}", figure(most, self.unit)),
            Target::AtLeast(least) => format!("≥ {}", figure(least, self.unit)),
            Target::MoreAtMost(most) => format!("≤ + {}", figure(most, self.unit)),
            Target::None => String::new(),
        }
    }
}

/// Returns the table.
pub(crate) fn render(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["row", "what", "raw", "ours", "ratio", "target", "verdict"]);
    for index in 2..=4 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in rows {
        let verdict = match row.verdict() {
            Verdict::Ok => "ok",
            Verdict::Miss => "MISS",
            Verdict::Informative => "",
        };
        let ratio = row.ratio.map_or_else(String::new, ratio_text);
        let raw = row.raw.map_or_else(String::new, |raw| figure(raw, row.unit));
        let ours = ours_text(row);
        table.add_row([row.name, &row.what, &raw, &ours, &ratio, &row.target_text(), verdict]);
    }
    table.to_string()
}

/// Returns our figure, with the extremes of its rounds where no ratio shows how much they differ.
fn ours_text(row: &Row) -> String {
    let Spread { median, low, high } = row.ours;
    if median.is_nan() {
        return String::new();
    }
    let text = figure(median, row.unit);
    if row.ratio.is_some() || low == high {
        return text;
    }
    format!("{text} [{}–{}]", figure(low, row.unit), figure(high, row.unit))
}

fn ratio_text(ratio: Spread) -> String {
    format!("{:.2} [{:.2}–{:.2}]", ratio.median, ratio.low, ratio.high)
}

/// Returns a figure with its unit, in about three digits.
fn figure(value: f64, unit: Unit) -> String {
    let digits = if value >= 100.0 || value == value.trunc() { 0 } else { 2 };
    match unit {
        Unit::Micros if value >= 10_000.0 => figure(value / 1000.0, Unit::Millis),
        Unit::Micros => format!("{value:.*} µs", if value >= 10.0 { 0 } else { 1 }),
        Unit::Millis => format!("{value:.digits$} ms"),
        Unit::PerSecond => format!("{} /s", grouped((value / 100.0).round() as u64 * 100)),
        Unit::Bytes if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        Unit::Bytes => format!("{:.1} kB", value / 1e3),
        Unit::Count => format!("{value:.digits$}"),
    }
}

/// Returns a number with commas between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A row as programs see it.
#[derive(Serialize)]
struct JsonRow<'a> {
    row: &'a str,
    what: &'a str,
    unit: Unit,
    raw: Option<f64>,
    ours: f64,
    ours_low: f64,
    ours_high: f64,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    target: Option<String>,
    verdict: Verdict,
}

/// A run as programs see it.
#[derive(Serialize)]
struct JsonRun<'a> {
    machine: &'a SystemInfo,
    rows: Vec<JsonRow<'a>>,
}

/// Returns the rows as JSON, beside the machine that they were measured on.
pub(crate) fn json(machine: &SystemInfo, rows: &[Row]) -> serde_json::Result<String> {
    let rows: Vec<JsonRow<'_>> = rows
        .iter()
        .map(|row| JsonRow {
            row: row.name,
            what: &row.what,
            unit: row.unit,
            raw: row.raw,
            ours: row.ours.median,
            ours_low: row.ours.low,
            ours_high: row.ours.high,
            ratio: row.ratio.map(|ratio| ratio.median),
            ratio_low: row.ratio.map(|ratio| ratio.low),
            ratio_high: row.ratio.map(|ratio| ratio.high),
            target: Some(row.target_text()).filter(|text| !text.is_empty()),
            verdict: row.verdict(),
        })
        .collect();
    serde_json::to_string_pretty(&JsonRun { machine, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_median_ratio() {
        let rounds = Rounds { raw: vec![10.0, 10.0, 10.0], ours: vec![14.0, 13.0, 90.0] };
        let verdict = |target| Row::compared("x", Unit::Micros, &rounds, target).verdict();
        assert_eq!(verdict(Target::RatioAtMost(1.4)), Verdict::Ok);
        assert_eq!(verdict(Target::RatioAtMost(1.3)), Verdict::Miss);
        assert_eq!(verdict(Target::RatioAtLeast(1.5)), Verdict::Miss);
        assert_eq!(verdict(Target::AtMost(14.0)), Verdict::Ok);
        assert_eq!(verdict(Target::MoreAtMost(4.0)), Verdict::Ok);
        assert_eq!(verdict(Target::MoreAtMost(3.0)), Verdict::Miss);
        assert_eq!(verdict(Target::None), Verdict::Informative);
        assert!(!Row::alone("x", Unit::Count, 5.0, Target::AtMost(5.0)).is_missed());
    }

    #[test]
    fn rounds_are_shown_with_their_extremes() {
        let row = |ours: &[f64]| Row::alone("x", Unit::Millis, ours, Target::None);
        assert_eq!(ours_text(&row(&[3.25, 1.5, 200.0])), "3.25 ms [1.50 ms–200 ms]");
        assert_eq!(ours_text(&row(&[7.0])), "7 ms");
        assert_eq!(ours_text(&Row::not_measured("x", "y")), "");
        let json = json(&SystemInfo::here(), &[row(&[2.0, 1.0, 3.0])]).expect("rows are serialisable");
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(json["rows"][0]["ours_high"], 3.0);
        assert!(json["machine"]["features"].is_array());
    }

    #[test]
    fn figures_are_short() {
        for (value, unit, expected) in [
            (72.4, Unit::Micros, "72 µs"),
            (12_345.0, Unit::Micros, "12.35 ms"),
            (129_049.0, Unit::PerSecond, "129,000 /s"),
            (1_000_000.0, Unit::PerSecond, "1,000,000 /s"),
            (2.131, Unit::Count, "2.13"),
            (6_100_000.0, Unit::Bytes, "6.1 MB"),
        ] {
            assert_eq!(figure(value, unit), expected);
        }
    }
}

//! The verdict: is what was promised what the log says? Pure: records and files in, checks out. It assumes nothing of how
//! things went on stage.

use std::collections::BTreeMap;

use rekindle_client::content_text::value_text;
use rekindle_terminal::output::plural;
use serde::Serialize;
use serde_json::Value;

/// What is there to judge by.
pub(super) struct Evidence<'a> {
    /// The session's log.
    pub(super) records: &'a [Value],
    /// Every line that agents were told, as they wrote it down themselves.
    pub(super) told: &'a str,
    /// The file that the agent's steps append to.
    pub(super) work: &'a str,
    /// What the check of the home says: why it is whole, or what is wrong.
    pub(super) doctor: Result<String, String>,
}

/// What it should say.
pub(super) struct Expected<'a> {
    /// Words of the sentence that outlived its daemon.
    pub(super) words: u64,
    /// Words of the sentence that died with its agent, as far as they were heard.
    pub(super) heard: u64,
    /// What was asked.
    pub(super) prompts: &'a [&'a str],
    /// How often a daemon took over.
    pub(super) takeovers: usize,
    /// What the steps leave.
    pub(super) steps: &'a [&'a str],
}

/// One thing that holds, or does not.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// For programs.
    pub(super) code: &'static str,
    /// For people.
    pub(super) name: &'static str,
    pub(super) ok: bool,
    /// What was found.
    pub(super) detail: String,
}

/// Judges.
pub(super) fn judge(evidence: &Evidence<'_>, expected: &Expected<'_>) -> Vec<Check> {
    let records = evidence.records;
    let check = |code, name, (ok, detail)| Check { code, name, ok, detail };
    let (doctor, report) = match &evidence.doctor {
        Ok(report) => (true, report.clone()),
        Err(report) => (false, report.clone()),
    };
    vec![
        check("words", "every word once and in order", whole_sentence(records, expected.words)),
        check("last_words", "a dead agent's last words are kept", last_words(records, expected.heard)),
        check("prompts", "each prompt reached the agent once", prompts(evidence.told, expected.prompts)),
        check("interrupted", "exactly one interruption", count(records, "run.interrupted", 1)),
        check("adopted", "one adoption for each takeover", count(records, "run.adopted", expected.takeovers)),
        check("agents", "no agent started without need", count(records, "agent.started", 2)),
        check("steps", "no finished step done twice", steps(evidence.work, expected.steps)),
        check("token", "exactly one token used", count(records, "token.consumed", 1)),
        check("completed", "every turn completed", completed(records, expected.prompts.len())),
        check("doctor", "the home is whole", (doctor, report)),
    ]
}

type Finding = (bool, String);

fn of_kind<'a>(records: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["kind"] == kind)
}

fn count(records: &[Value], kind: &str, wanted: usize) -> Finding {
    let found = of_kind(records, kind).count();
    let wanted_too = if found == wanted { String::new() } else { format!(" instead of {wanted}") };
    (found == wanted, format!("{found} {kind}{wanted_too}"))
}

/// The numbers of the words that the agent said, in whole messages or in those that were cut.
fn said(records: &[Value], partial: bool) -> Vec<u64> {
    of_kind(records, "message.agent")
        .filter(|record| record["partial"].as_bool().unwrap_or(false) == partial)
        .flat_map(|record| {
            let text = value_text(&record["content"]);
            text.split_whitespace().filter_map(number_of).collect::<Vec<_>>()
        })
        .collect()
}

fn whole_sentence(records: &[Value], wanted: u64) -> Finding {
    let said = said(records, false);
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for number in &said {
        *times.entry(*number).or_default() += 1;
    }
    let lost = (1..=wanted).filter(|number| !times.contains_key(number)).count();
    let repeated: usize = times.values().map(|times| times - 1).sum();
    let ok = said.iter().copied().eq(1..=wanted);
    let order = if ok || lost + repeated > 0 { "" } else { ", out of order" };
    (ok, format!("{} of {wanted}: {lost} lost, {repeated} repeated{order}", times.len()))
}

/// What was heard of a sentence that was cut must be in the log, from its first word on and without a gap.
fn last_words(records: &[Value], heard: u64) -> Finding {
    let said = said(records, true);
    let last = said.last().copied().unwrap_or(0);
    let ok = last >= heard && said.iter().copied().eq(1..=last);
    (ok, format!("w1 to w{last}; heard up to w{heard}"))
}

/// What an agent was asked, in its own record of what it was told.
fn asked(told: &str) -> Vec<String> {
    let prompt = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["method"] == "session/prompt").then(|| value_text(&message["params"]["prompt"]))
    };
    told.lines().filter_map(prompt).collect()
}

fn prompts(told: &str, wanted: &[&str]) -> Finding {
    let asked = asked(told);
    let times: Vec<usize> =
        wanted.iter().map(|wanted| asked.iter().filter(|asked| asked == wanted).count()).collect();
    let others = asked.len() - times.iter().sum::<usize>();
    let ok = times.iter().all(|times| *times == 1) && others == 1;
    let others = plural(others as u64, "continuation");
    if ok {
        return (ok, format!("{}, {others}", plural(wanted.len() as u64, "prompt")));
    }
    let times: Vec<String> = times.iter().map(ToString::to_string).collect();
    (ok, format!("given {} times; {others}", times.join(", ")))
}

fn steps(work: &str, wanted: &[&str]) -> Finding {
    let done: Vec<&str> = work.lines().collect();
    (done == wanted, format!("work.txt: {}", done.join(", ")))
}

/// Every run ends once: completed, but for the one that was cut and continued.
fn completed(records: &[Value], wanted: usize) -> Finding {
    let started = of_kind(records, "run.started").count();
    let completed = of_kind(records, "run.completed").count();
    let ok = completed == wanted && started == wanted + 1;
    let continued = plural((started.saturating_sub(completed)) as u64, "continuation");
    (ok, format!("{completed} of {wanted}, {continued}"))
}

/// Returns the number of a word: 7 of `w7`.
pub(super) fn number_of(word: &str) -> Option<u64> {
    word.strip_prefix('w')?.parse().ok()
}

#[cfg(test)]
mod tests;

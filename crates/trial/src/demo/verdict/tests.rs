//! The verdict can fail: each promise is broken in turn, and exactly its check says so.

use serde_json::json;

use super::*;

const PROMPTS: [&str; 2] = ["words 4", "append work.txt one\nappend work.txt two"];

struct Case {
    records: Vec<Value>,
    told: String,
    work: String,
    doctor: Result<String, String>,
}

impl Case {
    /// Everything as it should be.
    fn good() -> Case {
        let message = |text: &str| json!({"kind": "message.agent", "content": text});
        let kind = |kind: &str| json!({ "kind": kind });
        let prompt = |text: &str| json!({"method": "session/prompt", "params": {"prompt": [{"type": "text", "text": text}]}});
        let records = vec![
            kind("run.started"),
            kind("agent.started"),
            kind("run.adopted"),
            message("w1 w2"),
            message("w3 w4"),
            kind("run.completed"),
            kind("run.started"),
            json!({"kind": "message.agent", "content": "w1 w2 w3", "partial": true}),
            kind("run.interrupted"),
            kind("run.started"),
            kind("agent.started"),
            message("I was interrupted."),
            kind("token.consumed"),
            kind("run.completed"),
        ];
        let told = [PROMPTS[0], PROMPTS[1], "You were interrupted."].map(|text| prompt(text).to_string());
        Case {
            records,
            told: format!("pid 7\n{}\npid 8\n{}\n{}\n", told[0], told[1], told[2]),
            work: "one\ntwo\n".into(),
            doctor: Ok("healthy".into()),
        }
    }

    fn failed(&self) -> Vec<&'static str> {
        let evidence = Evidence {
            records: &self.records,
            told: &self.told,
            work: &self.work,
            doctor: self.doctor.clone(),
        };
        let steps = ["one", "two"];
        let expected = Expected { words: 4, heard: 2, prompts: &PROMPTS, takeovers: 1, steps: &steps };
        let checks = judge(&evidence, &expected);
        checks.iter().filter(|check| !check.ok).map(|check| check.code).collect()
    }
}

/// Breaks something, and tells which checks fail.
fn broken(how: impl FnOnce(&mut Case)) -> Vec<&'static str> {
    let mut case = Case::good();
    how(&mut case);
    case.failed()
}

#[test]
fn what_went_well_is_found_well() {
    assert_eq!(Case::good().failed(), [""; 0]);
}

#[test]
fn a_missing_a_repeated_and_a_misplaced_word_are_found() {
    for bad in ["w4", "w2 w3 w4", "w4 w3", "w3 w4 w5", ""] {
        assert_eq!(broken(|case| case.records[4]["content"] = json!(bad)), ["words"], "{bad}");
    }
    let detail = |text: &str| {
        let mut case = Case::good();
        case.records[4]["content"] = json!(text);
        whole_sentence(&case.records, 4).1
    };
    assert_eq!(detail("w4"), "3 of 4: 1 lost, 0 repeated");
    assert_eq!(detail("w2 w3 w4"), "4 of 4: 0 lost, 1 repeated");
    assert_eq!(detail("w4 w3"), "4 of 4: 0 lost, 0 repeated, out of order");
}

#[test]
fn last_words_must_be_there_as_far_as_they_were_heard() {
    for bad in ["w1", "w1 w3", "w2 w3", "w1 w2 w2"] {
        assert_eq!(broken(|case| case.records[7]["content"] = json!(bad)), ["last_words"], "{bad}");
    }
}

#[test]
fn a_second_interruption_or_none_is_found() {
    let cut = json!({"kind": "run.interrupted"});
    assert_eq!(broken(|case| case.records.push(cut)), ["interrupted"]);
    assert_eq!(broken(|case| drop(case.records.remove(8))), ["interrupted"]);
}

#[test]
fn what_happened_too_often_or_not_at_all_is_found() {
    for (at, code) in [(2, "adopted"), (1, "agents"), (12, "token"), (5, "completed")] {
        assert_eq!(broken(|case| drop(case.records.remove(at))), [code]);
        assert_eq!(broken(|case| case.records.push(case.records[at].clone())), [code]);
    }
}

#[test]
fn a_prompt_that_was_given_twice_or_never_is_found() {
    let line = |case: &Case, at: usize| case.told.lines().nth(at).map(|line| format!("{line}\n"));
    let repeated = broken(|case| {
        let again = line(case, 1).unwrap_or_default();
        case.told.push_str(&again);
    });
    assert_eq!(repeated, ["prompts"]);
    let lost = broken(|case| case.told = case.told.replace(&line(case, 3).unwrap_or_default(), ""));
    assert_eq!(lost, ["prompts"]);
}

#[test]
fn work_that_was_repeated_and_a_home_that_is_not_whole_are_found() {
    for bad in ["one\ntwo\ntwo\n", "one\n", ""] {
        assert_eq!(broken(|case| case.work = bad.into()), ["steps"], "{bad}");
    }
    assert_eq!(broken(|case| case.doctor = Err("1 error".into())), ["doctor"]);
}

//! The end of a question: who answered it, and what, in the words of the question itself. Pure but for payloads that are
//! kept apart.

use rekindle_client::payloads::Payloads;
use rekindle_domain::event::{ResumeHow, RunResumed};
use rekindle_terminal::sanitise;
use serde_json::Value;

use super::ask::Ask;
use crate::record_text::{payload, person, word};

/// How a question ended.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionEnd {
    /// The wait.
    pub wait_id: String,
    how: ResumeHow,
    by: Option<String>,
    answer: Value,
}

impl QuestionEnd {
    /// Reads the record that says so.
    pub fn read(resumed: &RunResumed<'_>, blobs: &Payloads) -> QuestionEnd {
        let answer = resumed.answer.as_ref().map(|raw| payload(raw, blobs)).unwrap_or_default();
        // What was sent to the agent is kept as the line that it was.
        let line = answer.as_str().and_then(|line| serde_json::from_str(line).ok());
        QuestionEnd {
            wait_id: resumed.wait_id.to_string(),
            how: resumed.how,
            by: resumed.by.as_deref().map(sanitise::line),
            answer: line.unwrap_or(answer),
        }
    }

    /// Returns what was answered, as the question names it.
    pub(crate) fn answer(&self, ask: &Ask) -> Option<String> {
        let result = self.answer.get("result").unwrap_or(&self.answer);
        let named = |id: &str| {
            let choice = ask.choices.iter().find(|choice| choice.id == id);
            sanitise::line(choice.map_or(id, |choice| &choice.name))
        };
        if let Some(id) = result["outcome"]["optionId"].as_str() {
            return Some(named(id));
        }
        if let Some(fields) = result["content"].as_object().filter(|fields| !fields.is_empty()) {
            let text =
                |value: &Value| value.as_str().map_or_else(|| sanitise::line(&value.to_string()), named);
            return Some(fields.values().map(text).collect::<Vec<_>>().join(", "));
        }
        let bare = result["outcome"]["outcome"].as_str().or(result["action"].as_str());
        bare.map(sanitise::line)
    }

    /// Says how it ended to someone it was put to: `answered elsewhere by you: Allow`.
    pub fn elsewhere(&self, ask: &Ask) -> String {
        let text = self.text(ask);
        match text.strip_prefix("answered") {
            Some(rest) => format!("answered elsewhere{rest}"),
            None => format!("the question is closed: {text}"),
        }
    }

    /// Tells whether someone answered just that.
    pub fn is_answered_so(&self, ask: &Ask, given: &str) -> bool {
        self.how == ResumeHow::Answered && self.answer(ask).as_deref() == Some(given)
    }

    /// Says how it ended: `answered by you: Allow`.
    pub fn text(&self, ask: &Ask) -> String {
        let by = self.by.as_ref().map(|who| format!(" by {}", person(who))).unwrap_or_default();
        let answer = self.answer(ask).filter(|_| self.how == ResumeHow::Answered);
        format!("{}{by}{}", word(&self.how), answer.map(|answer| format!(": {answer}")).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn over(how: ResumeHow, answer: Value) -> QuestionEnd {
        QuestionEnd { wait_id: "wait_1".into(), how, by: Some("local".into()), answer }
    }

    #[test]
    fn an_answer_is_told_in_the_words_of_its_question() {
        let options = json!([{"optionId": "a1", "name": "Allow", "kind": "allow_once"}]);
        let ask = Ask::read("wait_1", "permission", &json!({"params": {"options": options}}));
        for (how, answer, expected) in [
            (
                ResumeHow::Answered,
                json!({"result": {"outcome": {"outcome": "selected", "optionId": "a1"}}}),
                "answered by you: Allow",
            ),
            (ResumeHow::Answered, json!({"result": {"outcome": {"optionId": "z"}}}), "answered by you: z"),
            (
                ResumeHow::Answered,
                json!({"result": {"action": "accept", "content": {"x": "red", "n": 3}}}),
                "answered by you: 3, red",
            ),
            (ResumeHow::Answered, json!({"result": {"action": "decline"}}), "answered by you: decline"),
            (ResumeHow::Answered, Value::Null, "answered by you"),
            (
                ResumeHow::Cancelled,
                json!({"result": {"outcome": {"outcome": "cancelled"}}}),
                "cancelled by you",
            ),
        ] {
            assert_eq!(over(how, answer).text(&ask), expected);
        }
        let answer = json!({"result": {"outcome": {"optionId": "a1"}}});
        assert_eq!(over(ResumeHow::Answered, answer).elsewhere(&ask), "answered elsewhere by you: Allow");
        let withdrawn = over(ResumeHow::Withdrawn, Value::Null).elsewhere(&ask);
        assert_eq!(withdrawn, "the question is closed: withdrawn by you");
    }
}

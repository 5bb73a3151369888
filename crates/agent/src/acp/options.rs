//! Modes and options that an agent's session offers, as its setup result tells them: which model, which mode.

use rekindle_domain::event::Raw;

use crate::json::{Object, parse_raw};

/// What a session of the agent's can be set to.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOptions(Raw<'static>);

impl SessionOptions {
    /// Reads a setup result, or what a log kept of one.
    pub fn parse(json: &str) -> Option<SessionOptions> {
        Object::parse(json)?;
        parse_raw(json).map(SessionOptions)
    }

    /// Returns the setup result as the agent gave it.
    pub fn as_raw(&self) -> &Raw<'static> {
        &self.0
    }

    /// Returns the ids of the modes.
    pub fn modes(&self) -> Vec<String> {
        let modes = self.object().object("modes");
        let id = |raw: &serde_json::value::RawValue| Object::parse(raw.get())?.text("id").map(String::from);
        modes.list("availableModes").into_iter().filter_map(id).collect()
    }

    /// Returns the mode it works in.
    pub fn current_mode(&self) -> Option<String> {
        self.object().object("modes").text("currentModeId").map(String::from)
    }

    /// Finds the option that chooses the model, and the value that means this one: by its id, else by its name.
    pub fn model(&self, wanted: &str) -> Option<(String, String)> {
        self.choose("model", wanted)
    }

    /// Finds an option by its category or id, and a value of it by its id or name.
    pub fn choose(&self, category: &str, wanted: &str) -> Option<(String, String)> {
        let object = self.object();
        for option in object.list("configOptions") {
            let Some(option) = Object::parse(option.get()) else { continue };
            let Some(id) = option.text("id") else { continue };
            if option.text("category").as_deref() != Some(category) && id != category {
                continue;
            }
            let values = values(&option);
            let by_id = values.iter().find(|(value, _)| value == wanted);
            let found = by_id.or_else(|| values.iter().find(|(_, name)| name.eq_ignore_ascii_case(wanted)));
            if let Some((value, _)) = found {
                return Some((id.into_owned(), value.clone()));
            }
        }
        None
    }

    fn object(&self) -> Object<'_> {
        Object::parse(self.0.as_json()).unwrap_or_default()
    }
}

/// Returns value and name of each choice; choices may stand in groups.
fn values(option: &Object<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for choice in option.list("options") {
        let Some(choice) = Object::parse(choice.get()) else { continue };
        if choice.raw("options").is_some() {
            found.extend(values(&choice));
        } else if let Some(value) = choice.text("value") {
            let name = choice.text("name").unwrap_or_default().into_owned();
            found.push((value.into_owned(), name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_id_or_name_in_groups_too() {
        let json = r#"{"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code"}]},
            "configOptions":[{"id":"m","category":"model","type":"select","currentValue":"a","options":[
                {"group":"g","name":"G","options":[{"value":"a","name":"Large"}]},{"value":"b","name":"Small"}]}]}"#;
        let options = SessionOptions::parse(json).expect("options");
        assert_eq!(options.modes(), ["ask", "code"]);
        assert_eq!(options.current_mode().as_deref(), Some("ask"));
        let pair = |value: &str| Some(("m".to_owned(), value.to_owned()));
        assert_eq!(options.model("b"), pair("b"));
        assert_eq!(options.model("large"), pair("a"));
        assert_eq!(options.model("other"), None);
        assert!(SessionOptions::parse("null").is_none());
    }
}

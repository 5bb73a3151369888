//! Modes, models and options that an agent's session offers, as its setup result tells them, and how each is asked for.
//!
//! Agents offer them in three ways: `modes` with `session/set_mode`, `configOptions` with `session/set_config_option`, and
//! `models` with `session/set_model`, which newer versions of the protocol have no more and several agents still do.

use rekindle_domain::event::Raw;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::{Object, parse_raw};
use crate::profile::Setting;

/// Most choices that a refusal lists: some agents offer hundreds of models.
const MOST_LISTED: usize = 40;

/// What a session of the agent's can be set to.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOptions(Raw<'static>);

/// One mode or model that an agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AgentOffered")]
pub struct Offered {
    /// The agent's id for it.
    pub id: String,
    /// What a person sees; may be the same.
    pub name: String,
    /// The session begins with it.
    pub current: bool,
}

/// A mode or model that the agent does not offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent has no {what} {wanted:?}; {}", listed(.what, .offered))]
pub struct Unoffered {
    /// `mode` or `model`.
    pub what: &'static str,
    /// What was wanted.
    pub wanted: String,
    /// What there is.
    pub offered: Vec<Offered>,
}

/// Nothing is offered.
impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions(Raw::text(""))
    }
}

impl SessionOptions {
    /// Reads a setup result, or what a log kept of one.
    pub fn parse(json: &str) -> Option<SessionOptions> {
        Object::parse(json)?;
        parse_raw(json).map(SessionOptions)
    }

    /// Returns the modes.
    pub fn modes(&self) -> Vec<Offered> {
        let object = self.object();
        let modes = plain_modes(&object);
        if modes.is_empty() { selected(&object, "mode").map_or(modes, |(_, modes)| modes) } else { modes }
    }

    /// Returns the models.
    pub fn models(&self) -> Vec<Offered> {
        let object = self.object();
        match selected(&object, "model") {
            Some((_, models)) => models,
            None => plain_models(&object),
        }
    }

    /// Finds how the mode that is meant is asked for.
    pub fn mode(&self, wanted: &str) -> Result<Setting<'static>, Unoffered> {
        let object = self.object();
        if let Some(mode) = find_offered(&plain_modes(&object), wanted) {
            return Ok(Setting::Mode(mode.id.clone().into()));
        }
        match chosen(&object, "mode", wanted) {
            Some(setting) => Ok(setting),
            None => Err(Unoffered { what: "mode", wanted: wanted.to_owned(), offered: self.modes() }),
        }
    }

    /// Finds how the model that is meant is asked for. Where an agent offers no models, one of its modes may be meant.
    pub fn model(&self, wanted: &str) -> Result<Setting<'static>, Unoffered> {
        let object = self.object();
        if let Some(setting) = chosen(&object, "model", wanted) {
            return Ok(setting);
        }
        let offered = self.models();
        if let Some(model) = find_offered(&plain_models(&object), wanted) {
            return Ok(Setting::Model(model.id.clone().into()));
        }
        match self.mode(wanted) {
            Ok(setting) if offered.is_empty() => Ok(setting),
            _ => Err(Unoffered { what: "model", wanted: wanted.to_owned(), offered }),
        }
    }

    fn object(&self) -> Object<'_> {
        Object::parse(self.0.as_json()).unwrap_or_default()
    }
}

/// Returns what is meant by a name: an id, else what a person sees.
fn find_offered<'a>(offered: &'a [Offered], wanted: &str) -> Option<&'a Offered> {
    let by_id = offered.iter().find(|offered| offered.id == wanted);
    by_id.or_else(|| offered.iter().find(|offered| offered.name.eq_ignore_ascii_case(wanted)))
}

/// Returns the modes that are no values of an option.
fn plain_modes(object: &Object<'_>) -> Vec<Offered> {
    listed_in(&object.object("modes"), "availableModes", "id", "currentModeId")
}

/// Returns the models that are no values of an option.
fn plain_models(object: &Object<'_>) -> Vec<Offered> {
    listed_in(&object.object("models"), "availableModels", "modelId", "currentModelId")
}

/// Returns a list of things with an id and a name.
fn listed_in(object: &Object<'_>, list: &str, id: &str, current: &str) -> Vec<Offered> {
    let current = object.text(current);
    let one = |raw: &serde_json::value::RawValue| {
        let one = Object::parse(raw.get())?;
        let id = one.text(id)?.into_owned();
        let name = one.text("name").map_or_else(|| id.clone(), |name| name.into_owned());
        Some(Offered { current: current.as_deref() == Some(id.as_str()), id, name })
    };
    object.list(list).into_iter().filter_map(one).collect()
}

/// Finds the option of a category, or by that id, and its values.
fn selected(object: &Object<'_>, category: &str) -> Option<(String, Vec<Offered>)> {
    let options: Vec<Object<'_>> =
        object.list("configOptions").into_iter().filter_map(|raw| Object::parse(raw.get())).collect();
    let of = |name: &str| {
        options
            .iter()
            .find(|option| option.text(name).as_deref() == Some(category) && option.raw("options").is_some())
    };
    let option = of("category").or_else(|| of("id"))?;
    let mut found = Vec::new();
    values(option, option.text("currentValue").as_deref(), &mut found);
    Some((option.text("id")?.into_owned(), found))
}

fn chosen(object: &Object<'_>, category: &str, wanted: &str) -> Option<Setting<'static>> {
    let (id, offered) = selected(object, category)?;
    find_offered(&offered, wanted).map(|value| Setting::Choose(id.into(), value.id.clone().into()))
}

/// Gathers the values of an option; they may stand in groups.
fn values(option: &Object<'_>, current: Option<&str>, found: &mut Vec<Offered>) {
    for choice in option.list("options") {
        let Some(choice) = Object::parse(choice.get()) else { continue };
        if choice.raw("options").is_some() {
            values(&choice, current, found);
        } else if let Some(value) = choice.text("value") {
            let name = choice.text("name").unwrap_or_else(|| value.clone()).into_owned();
            found.push(Offered { current: current == Some(value.as_ref()), id: value.into_owned(), name });
        }
    }
}

/// Lists choices for people, by what can be given.
pub(crate) fn listed(what: &str, offered: &[Offered]) -> String {
    if offered.is_empty() {
        return format!("it offers no choice of {what}s");
    }
    let ids: Vec<&str> = offered.iter().take(MOST_LISTED).map(|offered| offered.id.as_str()).collect();
    let more = offered.len().saturating_sub(MOST_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("it offers: {}{more}", ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: &str) -> SessionOptions {
        SessionOptions::parse(json).expect("options")
    }

    fn ids(offered: &[Offered]) -> Vec<&str> {
        offered.iter().map(|offered| offered.id.as_str()).collect()
    }

    #[test]
    fn a_model_is_found_by_id_or_name_in_groups_too() {
        let options = options(
            r#"{"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code"}]},
            "configOptions":[{"id":"m","category":"model","type":"select","currentValue":"a","options":[
                {"group":"g","name":"G","options":[{"value":"a","name":"Large"}]},{"value":"b","name":"Small"}]}]}"#,
        );
        assert_eq!(ids(&options.modes()), ["ask", "code"]);
        assert!(options.modes()[0].current && !options.modes()[1].current);
        assert_eq!(ids(&options.models()), ["a", "b"]);
        let choose = |value: &'static str| Ok(Setting::Choose("m".into(), value.into()));
        assert_eq!(options.model("b"), choose("b"));
        assert_eq!(options.model("large"), choose("a"));
        assert_eq!(options.mode("ask"), Ok(Setting::Mode("ask".into())));
        let refused = options.model("other").expect_err("there is none").to_string();
        assert_eq!(refused, r#"the agent has no model "other"; it offers: a, b"#);
        assert!(options.model("code").is_err(), "a mode is no model where there are models");
        assert!(SessionOptions::parse("null").is_none());
    }

    #[test]
    fn models_are_found_in_each_way_that_agents_offer_them() {
        let field = options(
            r#"{"models":{"currentModelId":"x-2","availableModels":[{"modelId":"x-1","name":"One"},{"modelId":"x-2"}]}}"#,
        );
        assert_eq!(field.model("one"), Ok(Setting::Model("x-1".into())));
        assert_eq!(ids(&field.models()), ["x-1", "x-2"]);
        let only_modes = options(r#"{"modes":{"availableModes":[{"id":"fast"},{"id":"deep"}]}}"#);
        assert_eq!(only_modes.model("deep"), Ok(Setting::Mode("deep".into())));
        let refused = only_modes.model("x").expect_err("there is none").to_string();
        assert_eq!(refused, r#"the agent has no model "x"; it offers no choice of models"#);
        let second = options(
            r#"{"configOptions":[{"id":"mode","options":[{"value":"plan"}]},{"id":"web","category":"model","type":"boolean"}]}"#,
        );
        assert_eq!(second.mode("plan"), Ok(Setting::Choose("mode".into(), "plan".into())));
        assert_eq!((ids(&second.modes()), second.models()), (vec!["plan"], vec![]));
    }
}

//! Requests: what can be asked of the daemon, as callers say it. What narrows a list is in `filter`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rekindle_domain::event::{OnUncertain, Permissions, ResumePolicy};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A session to be made.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Where the agent works: an absolute path.
    #[schemars(extend("pattern" = "^/", "examples" = ["/repo"]))]
    pub working_dir: String,
    /// Who answers.
    pub agent: AgentChoice,
    /// A short title; made from the prompt if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Content>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's mode asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What is answered to permission requests without asking anyone.
    #[serde(default)]
    pub permissions: Permissions,
    /// How long a question may wait for its answer, in seconds; for ever without it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    #[schemars(with = "Option<u64>")]
    pub wait_timeout_s: Option<u64>,
    /// Whether it continues by itself after an interruption.
    #[serde(default)]
    pub resume: ResumePolicy,
    /// What uncertain tool calls do to that.
    #[serde(default)]
    pub on_uncertain: OnUncertain,
    /// The caller's environment, filtered here.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

impl NewSession {
    /// Makes one of what it cannot be without.
    pub fn new(working_dir: String, agent: AgentChoice) -> NewSession {
        NewSession {
            working_dir,
            agent,
            title: None,
            prompt: None,
            model: None,
            mode: None,
            permissions: Permissions::default(),
            wait_timeout_s: None,
            resume: ResumePolicy::default(),
            on_uncertain: OnUncertain::default(),
            env: BTreeMap::new(),
            umask: None,
        }
    }
}

/// A umask, written as shells write it: up to four octal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Umask(pub u32);

impl std::str::FromStr for Umask {
    type Err = String;

    fn from_str(text: &str) -> Result<Umask, String> {
        let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let umask = u32::from_str_radix(text, 8).ok().filter(|umask| digits && *umask <= 0o777);
        umask.map(Umask).ok_or_else(|| format!("{text:?} is no umask: it is three octal digits, such as 022"))
    }
}

impl std::fmt::Display for Umask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl<'de> Deserialize<'de> for Umask {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Umask, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Umask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Umask {
    fn schema_name() -> Cow<'static, str> {
        "Umask".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A umask, as shells write it: octal digits. Files that the agent makes are made with it.",
            "type": "string", "pattern": "^0?[0-7]{1,3}$", "examples": ["0022"],
        })
    }
}

/// Which agent.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "the agent is a known agent's name, or an object with `profile` and `command`"
)]
pub enum AgentChoice {
    /// One of the known ones: `GET /api/agents` lists them.
    Known(String),
    /// Any command.
    Command {
        /// How its lines are read: `acp` or `exec`.
        #[schemars(extend("enum" = ["acp", "exec"]))]
        profile: String,
        /// The command.
        #[schemars(length(min = 1), extend("prefixItems" = [{"type": "string", "minLength": 1}]))]
        command: Vec<String>,
    },
}

/// What is said to an agent: text, or blocks as its protocol has them.
#[derive(Debug, Clone, Serialize)]
pub struct Content(pub Box<RawValue>);

impl Content {
    /// Makes one of a text.
    pub fn text(text: &str) -> Content {
        Content(serde_json::value::to_raw_value(text).expect("a text is JSON"))
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What is said to an agent: a text, or blocks as its protocol has them. Not empty.",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": generator.subschema_for::<Block>()},
            ],
            "examples": ["fix the failing test", [{"type": "text", "text": "fix the failing test"}]],
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        Ok(Content(Box::deserialize(deserializer)?))
    }
}

/// What every block of a message has, for the description of it.
#[derive(JsonSchema)]
#[schemars(transform = text_has_text)]
#[expect(dead_code, reason = "it is described, and read as any JSON")]
struct Block {
    /// What it is: `text`, `image`, or what else the agent takes.
    #[schemars(rename = "type")]
    kind: String,
    /// The words of a block of type `text`.
    #[schemars(default)]
    text: Option<String>,
}

/// A block of type `text` has a text.
fn text_has_text(schema: &mut Schema) {
    schema.insert("if".into(), json!({"properties": {"type": {"const": "text"}}}));
    schema.insert("then".into(), given("text"));
}

/// A message to a session.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// The message.
    pub content: Content,
    /// The caller's environment, for an agent that has to be launched.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

impl NewMessage {
    /// Makes one that brings nothing but itself.
    pub fn new(content: Content) -> NewMessage {
        NewMessage { content, env: BTreeMap::new(), umask: None }
    }
}

/// What may be changed of a session: one thing at least.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SessionChange", transform = at_least_one)]
pub struct Change {
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumePolicy>,
    /// What uncertain tool calls do to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_uncertain: Option<OnUncertain>,
    /// The agent's mode: asked for at once of one that lives, and of every one that comes after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Change {
    /// Tells whether it changes what the session does, beside what it is called.
    pub fn names_options(&self) -> bool {
        self.resume.is_some() || self.on_uncertain.is_some() || self.names_settings()
    }

    /// Tells whether it changes how the agent works.
    pub fn names_settings(&self) -> bool {
        self.mode.is_some() || self.model.is_some()
    }
}

/// A session to be resumed: a wait answered by its token, or an interrupted one continued.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = answer_with_token)]
pub struct Resume {
    /// The token of a wait, with its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The answer to that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<NewAnswer>,
    /// The caller's environment.
    #[serde(default)]
    #[schemars(transform = possible_variables)]
    pub env: BTreeMap<String, String>,
    /// The caller's umask: files that the agent makes are made with it. Without it the daemon's own at its start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<Umask>,
}

/// An answer to a wait: exactly one of option, option_id, text and form.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = exactly_one)]
pub struct NewAnswer {
    /// The kind of an option: `allow_once`, `allow_always`, `reject_once`, `reject_always`, `accept`, `decline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// One of the agent's own options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
    /// Words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A filled-in form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub form: Option<Box<RawValue>>,
    /// The token, for a caller who is not otherwise known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl NewAnswer {
    /// Chooses one of the agent's own options.
    pub fn option_id(id: &str) -> NewAnswer {
        NewAnswer { option_id: Some(id.to_owned()), ..NewAnswer::default() }
    }

    /// Chooses the option of a kind.
    pub fn option(kind: &str) -> NewAnswer {
        NewAnswer { option: Some(kind.to_owned()), ..NewAnswer::default() }
    }

    /// Answers with words.
    pub fn text(text: &str) -> NewAnswer {
        NewAnswer { text: Some(text.to_owned()), ..NewAnswer::default() }
    }
}

impl PartialEq for NewAnswer {
    fn eq(&self, other: &NewAnswer) -> bool {
        let form = |answer: &NewAnswer| answer.form.as_ref().map(|form| form.get().to_owned());
        let rest = |answer: &NewAnswer| {
            [&answer.option, &answer.option_id, &answer.text, &answer.token].map(Clone::clone)
        };
        rest(self) == rest(other) && form(self) == form(other)
    }
}

/// A wait that a program opens on the run that goes on: for someone, or for something outside, to be answered. The agent is
/// told nothing of it and works on.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWait {
    /// What for.
    pub kind: NewWaitKind,
    /// What is asked, for whoever answers: any JSON. A `title`, `question`, `message` or `text` in it is shown as the
    /// question, `options` with `optionId` and `name` as what may be chosen.
    #[schemars(with = "serde_json::Value")]
    pub request: Box<RawValue>,
    /// Seconds after which it ends without an answer; without this it waits as long as its run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_least_a_second")]
    #[schemars(range(min = 1))]
    pub timeout_s: Option<u64>,
}

/// What a program may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewWaitKind {
    /// What a tool outside has found.
    ToolResult,
    /// Anything else outside.
    External,
}

/// Reads a whole number however it is written: to JSON, 600 and 600.0 are the same.
fn whole<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    // Below 2^64 a float without a fraction is exactly one of ours.
    let float =
        || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..u64::MAX as f64).contains(float));
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    let wrong = || D::Error::custom(format_args!("{number} is not a whole number from 0 to {}", u64::MAX));
    whole.map(Some).ok_or_else(wrong)
}

/// Reads a number of seconds that is not nothing.
fn at_least_a_second<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match whole(deserializer)? {
        Some(0) => Err(D::Error::custom("timeout_s is at least 1")),
        seconds => Ok(seconds),
    }
}

/// Says that a field is there and is not null.
fn given(name: &str) -> Value {
    json!({"required": [name], "properties": {name: {"not": {"type": "null"}}}})
}

/// Names and values are what a process can have.
fn possible_variables(schema: &mut Schema) {
    schema.insert("propertyNames".into(), json!({"pattern": "^[^=\\u0000]+$"}));
    schema.insert("additionalProperties".into(), json!({"type": "string", "pattern": "^[^\\u0000]*$"}));
}

/// A change names something.
fn at_least_one(schema: &mut Schema) {
    schema.insert(
        "anyOf".into(),
        ["title", "resume", "on_uncertain", "mode", "model"].map(given).to_vec().into(),
    );
}

/// An answer is one thing.
fn exactly_one(schema: &mut Schema) {
    schema.insert("oneOf".into(), ["option", "option_id", "text", "form"].map(given).to_vec().into());
}

/// A token comes with the answer to its wait, and an answer with the token.
fn answer_with_token(schema: &mut Schema) {
    let neither = json!({"properties": {"token": {"type": "null"}, "answer": {"type": "null"}}});
    let both = json!({"allOf": [given("token"), given("answer")]});
    schema.insert("anyOf".into(), json!([neither, both]));
}

/// Reads JSON that is passed on as it is: whoever gets it can read it too.
pub fn whole_json(raw: &RawValue) -> serde_json::Result<Value> {
    serde_json::from_str(raw.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_what_was_said_and_is_read_as_it_was_meant() {
        let answer = NewAnswer { text: Some("no".into()), ..NewAnswer::default() };
        assert_eq!(serde_json::to_value(&answer).expect("a body"), json!({"text": "no"}));
        let message =
            NewMessage { content: Content::text("a \"b\""), env: BTreeMap::new(), umask: Some(Umask(0o22)) };
        let written = serde_json::to_string(&message).expect("a body");
        assert_eq!(written, r#"{"content":"a \"b\"","env":{},"umask":"0022"}"#);
        assert!(serde_json::from_str::<NewMessage>(&written).is_ok());
        let agent = AgentChoice::Command { profile: "acp".into(), command: vec!["x".into()] };
        assert_eq!(
            serde_json::to_value(agent).expect("an agent"),
            json!({"profile": "acp", "command": ["x"]})
        );
        assert_eq!(serde_json::to_value(AgentChoice::Known("claude".into())).expect("a name"), "claude");
    }

    #[test]
    fn a_whole_number_is_read_however_it_is_written() {
        let timeout = |number: &str| {
            let text = format!(r#"{{"working_dir":"/","agent":"claude","wait_timeout_s":{number}}}"#);
            serde_json::from_str(&text)
                .map(|new: NewSession| new.wait_timeout_s)
                .map_err(|error| error.to_string())
        };
        assert_eq!(timeout("600"), Ok(Some(600)));
        assert_eq!(timeout("600.0"), Ok(Some(600)));
        assert_eq!(timeout("6e2"), Ok(Some(600)));
        assert_eq!(timeout("18446744073709551615"), Ok(Some(u64::MAX)));
        assert_eq!(timeout("null"), Ok(None));
        for bad in ["0.5", "-1", "1e30", "\"600\"", "18446744073709551616"] {
            assert!(timeout(bad).is_err(), "{bad}");
        }
    }
}

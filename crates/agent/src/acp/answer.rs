//! Requests of the agent's that someone must answer, and the answers: permissions and elicitations.
//!
//! An option is chosen by its id or its kind, never by its place or label. The request is read again from what
//! the log kept of it, so that an answer can be written by any later process.

use std::borrow::Cow;

use rekindle_domain::event::{Raw, UncertainTool, WaitKind};
use serde_json::value::RawValue;

use super::MAX_NAME;
use super::tool_call::summarize;
use super::write::{object, result};
use crate::json::{Object, cut, text, to_raw};
use crate::profile::{Answer, AnswerError, Outgoing};
use crate::said::{Asked, AskedTool, Choice, ToolSummary};

const PERMISSION: &str = "session/request_permission";
const ELICITATION: &str = "elicitation/create";

/// Tells whether a request of this name becomes a wait.
pub(super) fn is_served(method: &str) -> bool {
    matches!(method, PERMISSION | ELICITATION)
}

/// Reads a request, if it is one that someone must answer and can be answered.
pub(super) fn asked<'a>(object: &Object<'a>) -> Option<Asked<'a>> {
    let (method, wire_id) = (object.text("method")?, object.raw("id")?.get());
    let params = object.object("params");
    let (kind, options, tool) = match method.as_ref() {
        PERMISSION => {
            params.raw("options")?;
            let options = params.list("options").into_iter().filter_map(permission_option).collect();
            (WaitKind::Permission, options, asked_tool(&params.object("toolCall")))
        }
        ELICITATION => {
            params.raw("mode").or_else(|| params.raw("message"))?;
            (WaitKind::Question, Form::of(&params).map(|form| form.choices()).unwrap_or_default(), None)
        }
        _ => return None,
    };
    Some(Asked { wire_id: wire_id.into(), method, kind, options, tool })
}

/// Reads the call that permission is asked for.
fn asked_tool(call: &Object<'_>) -> Option<AskedTool> {
    let tool_call_id = call.text("toolCallId").filter(|id| id.len() <= MAX_NAME)?.into_owned();
    let ToolSummary { input, files } = summarize(call);
    let short = |name: &str| call.text(name).map(|text| cut(&text, MAX_NAME).into_owned());
    let (title, kind) = (short("title").unwrap_or_default(), short("kind"));
    Some(AskedTool { call: UncertainTool { tool_call_id, title, kind, input }, files })
}

fn permission_option(option: &RawValue) -> Option<Choice> {
    let option = Object::parse(option.get())?;
    let option_id = option.text("optionId")?.into_owned();
    Some(Choice {
        name: option.text("name").map_or_else(|| option_id.clone(), Cow::into_owned),
        kind: option.text("kind").unwrap_or_default().into_owned(),
        option_id,
    })
}

/// Writes an answer to a request as it was kept.
pub(super) fn write(request: &Raw<'_>, answer: Answer<'_>) -> Result<Outgoing, AnswerError> {
    let request =
        Object::parse(request.as_json()).ok_or(AnswerError::WrongSort("answers: it cannot be read"))?;
    let asked = asked(&request).ok_or(AnswerError::WrongSort("answers: it is not a question"))?;
    match asked.kind {
        WaitKind::Permission => permission(&asked, answer),
        _ => elicitation(&asked, &request.object("params"), answer),
    }
}

fn permission(asked: &Asked<'_>, answer: Answer<'_>) -> Result<Outgoing, AnswerError> {
    let by_kind = |kind: &str| asked.options.iter().find(|option| option.kind == kind);
    let missing = |wanted: &str| AnswerError::NoSuchOption {
        wanted: wanted.to_owned(),
        offered: asked.options.clone(),
    };
    let option = match answer {
        Answer::OptionId(id) => {
            Some(asked.options.iter().find(|option| option.option_id == id).ok_or_else(|| missing(id))?)
        }
        Answer::Kind(kind) => Some(by_kind(kind).ok_or_else(|| missing(kind))?),
        // An agent that offers no way to say no gets the one that the protocol always has.
        Answer::Decline => by_kind("reject_once").or_else(|| by_kind("reject_always")),
        Answer::Cancelled => None,
        Answer::Text(_) => return Err(AnswerError::WrongSort("text: choose an option")),
        Answer::Form(_) => return Err(AnswerError::WrongSort("a form: choose an option")),
    };
    let mut outcome = vec![("outcome", Raw::text(if option.is_some() { "selected" } else { "cancelled" }))];
    outcome.extend(option.map(|option| ("optionId", Raw::text(&option.option_id))));
    Ok(result(&asked.wire_id, &[("outcome", object(&outcome))]))
}

fn elicitation(asked: &Asked<'_>, params: &Object<'_>, answer: Answer<'_>) -> Result<Outgoing, AnswerError> {
    let form = Form::of(params);
    let action = |action, content: Option<Raw<'_>>| {
        let members: Vec<_> =
            [("action", Raw::text(action))].into_iter().chain(content.map(|all| ("content", all))).collect();
        Ok(result(&asked.wire_id, &members))
    };
    let no_form = || AnswerError::WrongSort("text: it only asks to open an address");
    match answer {
        Answer::Decline | Answer::Kind("decline") => action("decline", None),
        Answer::Cancelled | Answer::Kind("cancel") => action("cancel", None),
        Answer::Kind("accept") => match &form {
            None => action("accept", None),
            Some(form) if form.required.is_empty() => action("accept", Some(object(&[]))),
            Some(_) => Err(AnswerError::WrongSort("a bare yes: it has fields to fill in")),
        },
        Answer::Form(fields) if fields.as_json().starts_with('{') => {
            form.ok_or_else(no_form)?;
            action("accept", Some(fields.clone()))
        }
        Answer::Form(_) => Err(AnswerError::WrongSort("a form that is not a JSON object")),
        Answer::Text(value) => {
            let form = form.ok_or_else(no_form)?;
            let field = form.only().ok_or(AnswerError::WrongSort("one text: it has several fields"))?;
            let value = field.value(value).ok_or(AnswerError::WrongSort("this text as a value"))?;
            action("accept", Some(object(&[(field.name.as_str(), value)])))
        }
        Answer::OptionId(wanted) | Answer::Kind(wanted) => {
            let missing =
                || AnswerError::NoSuchOption { wanted: wanted.to_owned(), offered: asked.options.clone() };
            let form = form.ok_or_else(missing)?;
            let field =
                form.only().filter(|field| field.choices.iter().any(|choice| choice.option_id == wanted));
            let field = field.ok_or_else(missing)?;
            action("accept", Some(object(&[(field.name.as_str(), Raw::text(wanted))])))
        }
    }
}

/// The fields that an elicitation asks for.
struct Form {
    fields: Vec<Field>,
    required: Vec<String>,
}

struct Field {
    name: String,
    sort: String,
    choices: Vec<Choice>,
}

impl Form {
    fn of(params: &Object<'_>) -> Option<Form> {
        params.raw("requestedSchema")?;
        let schema = params.object("requestedSchema");
        let properties = schema.object("properties");
        let fields = properties.members().map(|(name, raw)| Field::of(name, raw)).collect();
        let required = schema.list("required").into_iter().filter_map(text).map(Cow::into_owned).collect();
        Some(Form { fields, required })
    }

    /// Returns the field that a single value is for: the only one, or the only one that must be filled in.
    fn only(&self) -> Option<&Field> {
        match (self.fields.as_slice(), self.required.as_slice()) {
            ([field], _) => Some(field),
            (fields, [name]) => fields.iter().find(|field| field.name == *name),
            _ => None,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        self.only().map(|field| field.choices.clone()).unwrap_or_default()
    }
}

impl Field {
    fn of(name: &str, raw: &RawValue) -> Field {
        let object = Object::parse(raw.get()).unwrap_or_default();
        let plain = |value: &RawValue| {
            let option_id = text(value)?.into_owned();
            Some(Choice { name: option_id.clone(), kind: String::new(), option_id })
        };
        let titled = |value: &RawValue| {
            let value = Object::parse(value.get())?;
            let option_id = value.text("const")?.into_owned();
            let name = value.text("title").map_or_else(|| option_id.clone(), Cow::into_owned);
            Some(Choice { name, kind: String::new(), option_id })
        };
        let mut choices: Vec<Choice> = object.list("enum").into_iter().filter_map(plain).collect();
        choices.extend(object.list("oneOf").into_iter().filter_map(titled));
        let sort = object.text("type").unwrap_or(Cow::Borrowed("string")).into_owned();
        Field { name: name.to_owned(), sort, choices }
    }

    /// Reads a text as a value of this field.
    fn value(&self, text: &str) -> Option<Raw<'static>> {
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice.option_id == text) {
            return None;
        }
        match self.sort.as_str() {
            "string" => Some(Raw::text(text)),
            "boolean" | "number" | "integer" => {
                let value: &RawValue = serde_json::from_str(text.trim()).ok()?;
                let fits = match value.get() {
                    "true" | "false" => self.sort == "boolean",
                    number => self.sort != "boolean" && number.parse::<f64>().is_ok(),
                };
                fits.then(|| to_raw(value))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

//! One operation of the interface: what it takes, what it answers and what it refuses, said once beside its handler's
//! name. What every request of a kind may be refused for is added here, so that no description forgets it.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use rekindle_domain::access::Scope;
use rekindle_wire::code::Code;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::schemas::Schemas;

/// Makes the schema of a type.
type MakeSchema = fn(&mut SchemaGenerator) -> Schema;

struct Body {
    schema: MakeSchema,
    required: bool,
    examples: Vec<(&'static str, Value)>,
}

#[derive(Default)]
struct Answer {
    status: StatusCode,
    about: &'static str,
    content: Vec<(&'static str, MakeSchema)>,
    example: Option<Value>,
    links: Vec<&'static str>,
    headers: Map<String, Value>,
}

/// One operation.
#[derive(Default)]
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    tag: &'static str,
    /// Who may ask for it on TCP: anyone without one. On the unix socket everyone who can open it may.
    pub(super) scope: Option<Scope>,
    summary: &'static str,
    description: &'static str,
    path: Vec<Value>,
    query: Option<MakeSchema>,
    ignores_queries: bool,
    headers: Vec<Value>,
    body: Option<Body>,
    answer: Answer,
    /// Another answer that it may give: its status, when, and of which type, if it has a body.
    other: Option<(StatusCode, &'static str, Option<MakeSchema>)>,
    events: Vec<(&'static str, &'static str, MakeSchema)>,
    pub(super) refusals: BTreeSet<Code>,
}

impl Operation {
    /// Describes what `id` is called in programs; it answers with JSON of a type.
    pub(crate) fn new<T: JsonSchema>(
        tag: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Operation {
        let content = vec![("application/json", SchemaGenerator::subschema_for::<T> as MakeSchema)];
        let answer = Answer { content, ..Answer::default() };
        let operation = Operation { id, tag, summary, answer, ..Operation::default() };
        // Whatever is asked for, the daemon may be full, leaving or broken, and the guard of the door on TCP may say no.
        operation
            .refuses([Code::Internal, Code::ShuttingDown, Code::TooManyConnections])
            .refuses([Code::HostNotAllowed, Code::OriginNotAllowed])
    }

    /// On TCP it takes an access token that may do this.
    pub(super) fn needs(self, scope: Scope) -> Operation {
        Operation { scope: Some(scope), ..self }
            .refuses([Code::TokenMissing, Code::TokenUnknown, Code::TokenScope, Code::TokenExpired])
            .refuses([Code::TokenRevoked, Code::TokensUnreadable, Code::NotReady])
    }

    /// Says what its answer is.
    pub(crate) fn answers(mut self, status: StatusCode, about: &'static str) -> Operation {
        (self.answer.status, self.answer.about) = (status, about);
        self
    }

    /// Says what else it may answer, if all goes well.
    pub(crate) fn also_answers<T: JsonSchema>(
        mut self,
        status: StatusCode,
        about: &'static str,
    ) -> Operation {
        self.other = Some((status, about, Some(SchemaGenerator::subschema_for::<T>)));
        self
    }

    /// Says when it may answer that there is nothing, if all goes well.
    pub(crate) fn also_answers_nothing(mut self, about: &'static str) -> Operation {
        self.other = Some((StatusCode::NO_CONTENT, about, None));
        self
    }

    /// Says more than the summary.
    pub(crate) fn more(mut self, description: &'static str) -> Operation {
        self.description = description;
        self
    }

    /// Its answer has no body.
    pub(crate) fn without_content(mut self) -> Operation {
        self.answer.content.clear();
        self
    }

    /// Its answer is something else than JSON, or something else again.
    pub(crate) fn content_type(mut self, kind: &'static str) -> Operation {
        self.answer.content.retain(|(known, _)| *known != "application/json" && *known != kind);
        self.answer.content.push((kind, SchemaGenerator::subschema_for::<String>));
        self
    }

    /// Its answer is a stream of events: name, when it comes, and the type of its data.
    pub(crate) fn event<T: JsonSchema>(mut self, name: &'static str, when: &'static str) -> Operation {
        self.events.push((name, when, SchemaGenerator::subschema_for::<T>));
        self.content_type("text/event-stream")
    }

    /// Shows an answer.
    pub(crate) fn example(mut self, example: Value) -> Operation {
        self.answer.example = Some(example);
        self
    }

    /// Its answer has a header.
    pub(crate) fn answer_header(mut self, name: &str, about: &str) -> Operation {
        let header = json!({"description": about, "required": true, "schema": {"type": "string"}});
        self.answer.headers.insert(name.to_owned(), header);
        self
    }

    /// What another operation takes as its `id` stands in the answer.
    pub(crate) fn leads_to(mut self, operations: impl IntoIterator<Item = &'static str>) -> Operation {
        self.answer.links.extend(operations);
        self
    }

    /// Its path names a session.
    pub(crate) fn of_session(self) -> Operation {
        self.named("The session.", "SessionId").refuses([Code::SessionUnknown])
    }

    /// Its path names a wait.
    pub(crate) fn of_wait(self) -> Operation {
        self.named("The wait.", "WaitId").refuses([Code::WaitUnknown])
    }

    /// Its path names a task.
    pub(crate) fn of_task(self) -> Operation {
        self.named("The task.", "TaskId").refuses([Code::TaskUnknown])
    }

    /// Its path names a run of a pipeline.
    pub(crate) fn of_pipeline(mut self) -> Operation {
        let schema = json!({
            "type": "string", "pattern": "^(run-[0-9]{8}-[0-9]{6}-[0-9a-z]{8}|pl_[0-9a-z]+)$",
            "examples": ["run-20260221-100000-4f9f29a1"],
        });
        let about = "The run: its name, or the id of its ledger.";
        self.path.push(
            json!({"name": "id", "in": "path", "required": true, "description": about, "schema": schema}),
        );
        self.refuses([Code::NoSuchPath, Code::RunUnknown])
    }

    /// Its path names a blob.
    pub(crate) fn of_blob(self) -> Operation {
        self.named("The blob.", "BlobId").refuses([Code::BlobUnknown])
    }

    /// Its path names a snapshot of the session.
    pub(crate) fn of_snapshot(mut self) -> Operation {
        let schema = json!({"type": "string", "pattern": "^[0-9]+-[0-9]+$", "examples": ["148-1"]});
        let about = "The snapshot: the record it was taken at, and which one of those taken there it is.";
        self.path.push(
            json!({"name": "name", "in": "path", "required": true, "description": about, "schema": schema}),
        );
        self.refuses([Code::SnapshotNotFound])
    }

    fn named(mut self, about: &str, kind: &str) -> Operation {
        let schema = json!({"$ref": format!("#/components/schemas/{kind}")});
        let parameter =
            json!({"name": "id", "in": "path", "required": true, "description": about, "schema": schema});
        self.path.push(parameter);
        // A name with a slash in it is another path.
        self.refuses([Code::NoSuchPath])
    }

    /// It takes a query.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Operation {
        self.query = Some(SchemaGenerator::subschema_for::<T>);
        self.refuses([Code::InvalidQuery])
    }

    /// It takes no query, and no notice of one either: those who watch many programs add what they like.
    pub(crate) fn ignores_queries(mut self) -> Operation {
        self.ignores_queries = true;
        self
    }

    /// Tells whether a query is a mistake there.
    pub(super) fn refuses_queries(&self) -> bool {
        self.query.is_none() && !self.ignores_queries
    }

    /// It takes a header.
    pub(crate) fn header(mut self, name: &str, about: &str, schema: Value, refusal: Code) -> Operation {
        let header =
            json!({"name": name, "in": "header", "required": false, "description": about, "schema": schema});
        self.headers.push(header);
        self.refuses([refusal])
    }

    /// It is done once, however often it is asked for under one key.
    pub(crate) fn takes_idempotency_key(self) -> Operation {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"});
        let about = "A key of the caller's: the same key with the same body, to the byte, has the same effect once. A session's key is \
             known as long as the session is there, a message's until 10,000 newer messages with keys came to it.";
        self.header("Idempotency-Key", about, schema, Code::InvalidIdempotencyKey).refuses([Code::KeyReused])
    }

    /// It takes a body.
    pub(crate) fn body<T: JsonSchema>(mut self, examples: Vec<(&'static str, Value)>) -> Operation {
        self.body = Some(Body { schema: SchemaGenerator::subschema_for::<T>, required: true, examples });
        self.refuses([Code::InvalidBody, Code::TooSlow, Code::TooLarge])
    }

    /// It takes a body, which may be left out.
    pub(crate) fn body_if_any<T: JsonSchema>(self, examples: Vec<(&'static str, Value)>) -> Operation {
        let mut operation = self.body::<T>(examples);
        operation.body.iter_mut().for_each(|body| body.required = false);
        operation
    }

    /// It adds records to a session's log.
    pub(crate) fn appends(self) -> Operation {
        self.refuses([
            Code::Internal,
            Code::Moved,
            Code::NoRandomness,
            Code::NotNow,
            Code::OutcomeUnknown,
            Code::SessionDamaged,
            Code::SessionNewer,
            Code::SessionQuarantined,
            Code::ShuttingDown,
            Code::Storage,
            Code::StorageFull,
            Code::TooLarge,
        ])
    }

    /// It may be refused for these.
    pub(crate) fn refuses(mut self, codes: impl IntoIterator<Item = Code>) -> Operation {
        self.refusals.extend(codes);
        self
    }

    /// Writes it as OpenAPI has it.
    pub(super) fn write(&self, schemas: &mut Schemas) -> Value {
        let mut written = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "responses": self.responses(schemas),
            "security": match self.scope {
                None => json!([{}]),
                Some(scope) => json!([{}, {"token": [scope.as_str()]}]),
            },
        });
        if !self.description.is_empty() {
            written["description"] = self.description.into();
        }
        let mut parameters = self.path.clone();
        parameters.extend(self.query.map(|query| schemas.parameters(query)).unwrap_or_default());
        parameters.extend(self.headers.iter().cloned());
        if !parameters.is_empty() {
            written["parameters"] = parameters.into();
        }
        if let Some(body) = &self.body {
            let examples: Map<String, Value> = body
                .examples
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!({"value": value})))
                .collect();
            let content = json!({"schema": schemas.request(body.schema), "examples": examples});
            written["requestBody"] =
                json!({"required": body.required, "content": {"application/json": content}});
        }
        if !self.events.is_empty() {
            let events: Map<String, Value> = self
                .events
                .iter()
                .map(|(name, when, data)| {
                    ((*name).to_owned(), json!({"description": when, "data": schemas.answer(*data)}))
                })
                .collect();
            written["x-events"] = events.into();
        }
        written
    }

    fn responses(&self, schemas: &mut Schemas) -> Value {
        let Answer { status, about, content, example, links, headers } = &self.answer;
        let mut answer = json!({"description": about});
        for (kind, schema) in content {
            let mut shown = json!({"schema": schemas.answer(*schema)});
            if let Some(example) = example {
                shown["example"] = example.clone();
            }
            answer["content"][*kind] = shown;
        }
        if !headers.is_empty() {
            answer["headers"] = headers.clone().into();
        }
        for operation in links {
            let id = "$response.body#/id";
            answer["links"][*operation] = json!({"operationId": operation, "parameters": {"id": id}});
        }
        let mut responses = Map::from_iter([(status.as_str().to_owned(), answer)]);
        if let Some((status, about, schema)) = &self.other {
            let mut other = json!({"description": about});
            if let Some(schema) = schema {
                other["content"] = json!({"application/json": {"schema": schemas.answer(*schema)}});
            }
            if !headers.is_empty() {
                other["headers"] = headers.clone().into();
            }
            responses.insert(status.as_str().to_owned(), other);
        }
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for code in &self.refusals {
            by_status.entry(code.status()).or_default().push(*code);
        }
        for (status, refused) in by_status {
            responses.insert(status.to_string(), refusal(schemas, &refused));
        }
        responses.into()
    }
}

/// Describes what is answered with one status, and which codes it may carry.
fn refusal(schemas: &mut Schemas, codes: &[Code]) -> Value {
    let meanings: BTreeMap<&str, &str> = codes.iter().map(|code| (code.as_str(), code.meaning())).collect();
    let words: Vec<&&str> = meanings.keys().collect();
    let about: Vec<String> = meanings.iter().map(|(word, meaning)| format!("`{word}`: {meaning}")).collect();
    let code = json!({"properties": {"error": {"properties": {"code": {"enum": words}}}}});
    let schema = json!({"allOf": [schemas.error(), code]});
    let examples: Map<String, Value> = meanings
        .iter()
        .map(|(word, meaning)| {
            let error = json!({"error": {"code": word, "message": meaning, "hint": null}});
            ((*word).to_owned(), json!({"value": error}))
        })
        .collect();
    json!({
        "description": about.join("; "),
        "content": {"application/json": {"schema": schema, "examples": examples}},
    })
}

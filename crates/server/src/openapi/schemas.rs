//! Schemas, made from the very types that handlers read and write. A type that is read is described as it is read (a
//! field with a default may be left out), one that is written as it is written.

use rekindle_domain::id::{SessionId, TaskId, WaitId};
use rekindle_service::daemon::BlobId;
use rekindle_wire::code::ErrorBody;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Gathers the schemas that operations name.
pub(super) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Schemas {
        // What OpenAPI 3.1 has is this draft of JSON Schema.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let read = settings.clone().for_deserialize().into_generator();
        let mut written = settings.for_serialize().into_generator();
        // Paths name them, whether or not anything else does.
        let _ = (written.subschema_for::<SessionId>(), written.subschema_for::<WaitId>());
        let _ = (written.subschema_for::<BlobId>(), written.subschema_for::<TaskId>());
        Schemas { read, written }
    }

    /// Returns the schema of what is read.
    pub(super) fn request(&mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
        schema(&mut self.read).to_value()
    }

    /// Returns the schema of what is written.
    pub(super) fn answer(&mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
        schema(&mut self.written).to_value()
    }

    /// Returns the schema of an error.
    pub(super) fn error(&mut self) -> Value {
        self.answer(SchemaGenerator::subschema_for::<ErrorBody<'_>>)
    }

    /// Returns the fields of a query as parameters.
    pub(super) fn parameters(&mut self, schema: fn(&mut SchemaGenerator) -> Schema) -> Vec<Value> {
        let reference = self.request(schema);
        let name = reference["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        // It is no body: nobody names it.
        let query = self.read.definitions_mut().remove(name).unwrap_or_default();
        let fields = query["properties"].as_object().cloned().unwrap_or_default();
        let needed = query["required"].as_array().cloned().unwrap_or_default();
        let parameter = |(name, mut schema): (String, Value)| {
            let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let required = needed.iter().any(|one| *one == name);
            json!({"name": name, "in": "query", "required": required, "description": about, "schema": not_null(schema)})
        };
        fields.into_iter().map(parameter).collect()
    }

    /// Returns all that were named.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        let mut all = self.written.take_definitions(true);
        for (name, schema) in self.read.take_definitions(true) {
            if let Some(written) = all.insert(name.clone(), schema.clone()) {
                // A name that means two things would mean one of them to whoever reads the document.
                assert_eq!(written, schema, "{name} is read in another shape than it is written");
            }
        }
        all
    }
}

/// A parameter that is not given is left out: there is no null in a query.
fn not_null(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get("type")
        && let Some(only) = types.iter().find(|one| **one != "null").cloned()
    {
        schema["type"] = only;
    }
    if let Some(Value::Array(any)) = schema.get("anyOf")
        && let [one, null] = any.as_slice()
        && null["type"] == "null"
    {
        return one.clone();
    }
    schema
}

/// Says which agents have names: the type that is read takes any, and the service looks them up.
pub(super) fn add_known_agents(document: &mut Value) {
    let names: Vec<&str> = rekindle_agent::known::TABLE.iter().map(|agent| agent.id).collect();
    if let Some(choice) = document.pointer_mut("/components/schemas/AgentChoice/anyOf/0") {
        choice["enum"] = names.into();
    }
}

/// Says of every whole number how large it may be: beyond that it is not read.
pub(super) fn add_maximums(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(add_maximums),
        Value::Object(schema) => {
            schema.values_mut().for_each(add_maximums);
            let largest = match schema.get("format").and_then(Value::as_str) {
                Some("uint64" | "uint") => u64::MAX,
                Some("uint32") => u32::MAX.into(),
                Some("int32") => i32::MAX.unsigned_abs().into(),
                _ => return,
            };
            schema.entry("maximum").or_insert_with(|| largest.into());
        }
        _ => {}
    }
}

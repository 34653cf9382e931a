//! The JSON Schemas of the two kinds of file, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::language::environment::EnvironmentFile;
use crate::language::scenario::Document;

/// Schema of a scenario file.
pub fn scenario_schema() -> Value {
    schema::<Document>("gtrun scenario")
}

/// Schema of an environment file.
pub fn environment_schema() -> Value {
    schema::<EnvironmentFile>("gtrun environment")
}

fn schema<T: JsonSchema>(title: &str) -> Value {
    let mut value = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    if let Some(object) = value.as_object_mut() {
        object.insert("title".to_owned(), title.into());
    }
    unwrap_descriptions(&mut value);
    value
}

/// Line breaks of doc comments are those of the source code, not of the text.
fn unwrap_descriptions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                match inner {
                    Value::String(text) if key == "description" => {
                        let paragraphs: Vec<String> = text.split("\n\n").map(|part| part.replace('\n', " ")).collect();
                        *text = paragraphs.join("\n\n");
                    }
                    other => unwrap_descriptions(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schema as it is kept in `schema/`.
pub fn pretty(schema: &Value) -> String {
    // A JSON value is always written.
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}

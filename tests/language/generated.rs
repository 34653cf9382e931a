//! What is generated from the types and kept in the repository.

use gtrun::language::schema::{environment_schema, pretty, scenario_schema};
use serde_json::Value;

use crate::{expect_file, repository};

#[test]
fn schemas_are_those_of_the_types() {
    for (name, schema) in [("scenario", scenario_schema()), ("environment", environment_schema())] {
        let path = repository("schema").join(format!("{name}.schema.json"));
        if let Err(difference) = expect_file(&path, &pretty(&schema)) {
            panic!("{difference}");
        }
    }
}

/// `"default": null` stops yaml-language-server from offering completions.
#[test]
fn no_schema_has_a_null_default() {
    fn nulls(value: &Value, path: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    let here = format!("{path}/{key}");
                    if key == "default" && inner.is_null() {
                        out.push(here.clone());
                    }
                    nulls(inner, &here, out);
                }
            }
            Value::Array(items) => items.iter().for_each(|inner| nulls(inner, path, out)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    for schema in [scenario_schema(), environment_schema()] {
        nulls(&schema, "", &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

/// Every key that an author can write has a description.
#[test]
fn every_key_is_described() {
    fn undescribed(value: &Value, path: &str, out: &mut Vec<String>) {
        let Value::Object(object) = value else { return };
        if let Some(Value::Object(properties)) = object.get("properties") {
            for (key, property) in properties {
                if property
                    .get("description")
                    .and_then(Value::as_str)
                    .is_none_or(str::is_empty)
                {
                    out.push(format!("{path}.{key}"));
                }
            }
        }
        for (key, inner) in object {
            undescribed(inner, &format!("{path}/{key}"), out);
        }
    }
    let mut found = Vec::new();
    for schema in [scenario_schema(), environment_schema()] {
        undescribed(&schema, "", &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn documents_are_those_of_the_types() {
    for (name, text) in [
        ("language", gtrun::language::reference::language()),
        ("errors", gtrun::language::reference::errors()),
    ] {
        if let Err(difference) = expect_file(&repository("docs").join(format!("{name}.md")), &text) {
            panic!("{difference}");
        }
        assert!(
            !text.contains("(there is no"),
            "{name}.md asks for a table that does not exist"
        );
    }
}

/// `gtrun explain` knows every code and words of every kind.
#[test]
fn every_code_can_be_explained() {
    use gtrun::diagnostic::Code;
    use gtrun::language::reference::find;
    for code in Code::ALL {
        assert_eq!(find(&code.to_string()).len(), 1, "{code}");
    }
    for word in [
        "lb_down",
        "before",
        "active",
        "request",
        "container_log",
        "preconditions",
        "protected",
        "vars",
        "sessions",
    ] {
        assert!(!find(word).is_empty(), "{word}");
    }
}

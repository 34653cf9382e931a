//! Diagnostics for programs.

use serde::Serialize;

use super::{Diagnostic, Severity, SourceMap};

/// One diagnostic with its places in lines and columns.
#[derive(Serialize)]
struct Entry<'a> {
    code: String,
    title: &'static str,
    severity: Severity,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    places: Vec<Place<'a>>,
}

/// A place: lines and columns from 1, columns in characters; the end is behind the last character.
#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
}

/// The diagnostics as a list of JSON values, the culprit's place first in each.
pub fn json(diagnostics: &[Diagnostic], sources: &SourceMap) -> Vec<serde_json::Value> {
    diagnostics
        .iter()
        .map(|diagnostic| {
            let places = diagnostic.labels.iter().map(|label| {
                let (start, end) = (sources.start(label.span), sources.end(label.span));
                Place {
                    file: sources.name(label.span.file),
                    line: start.line,
                    column: start.column,
                    end_line: end.line,
                    end_column: end.column,
                    text: &label.text,
                }
            });
            let entry = Entry {
                code: diagnostic.code.to_string(),
                title: diagnostic.code.title(),
                severity: diagnostic.severity,
                message: &diagnostic.message,
                help: diagnostic.help.as_deref(),
                places: places.collect(),
            };
            // Numbers and texts are always written.
            serde_json::to_value(entry).unwrap_or_default()
        })
        .collect()
}

//! The users' reference, generated from the types: tables of keys from the schemas, tables of words from the vocabulary.
//!
//! `docs/language.md` and `docs/errors.md` are this text; a test compares them. `gtrun explain` shows parts of it.

mod entry;
mod errors;
mod table;

pub use entry::{Entry, EntryKind, entries, find, nearest_entry};
pub use errors::errors;

use crate::language::vocabulary::{EventField, EventName, Function, Root, Signal, WordSet};

/// The frame of the language's reference: prose, with a line `<!-- table NAME -->` where a table belongs.
const FRAME: &str = include_str!("language.md");

/// `docs/language.md`.
pub fn language() -> String {
    let mut out = String::new();
    for line in FRAME.lines() {
        match line
            .strip_prefix("<!-- table ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        {
            Some(name) => out.push_str(table_named(name).trim()),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Names of the tables that the frame may ask for, with the pointer into a schema where it is one of keys.
fn table_named(name: &str) -> String {
    if let Some(definition) = name.strip_prefix("scenario ") {
        return table::keys(&super::schema::scenario_schema(), definition);
    }
    if let Some(definition) = name.strip_prefix("environment ") {
        return table::keys(&super::schema::environment_schema(), definition);
    }
    match name {
        "events" => table::rows(
            &["event", "meaning"],
            EventName::ALL
                .iter()
                .map(|e| vec![format!("`{}`", e.usage()), e.meaning().to_owned()]),
        ),
        "functions" => table::rows(
            &["function", "meaning"],
            Function::ALL
                .iter()
                .map(|f| vec![format!("`{}`", f.as_str()), f.meaning().to_owned()]),
        ),
        "signals" => table::rows(
            &["signal", "meaning"],
            Signal::ALL
                .iter()
                .map(|s| vec![format!("`{}`", s.as_str()), s.meaning().to_owned()]),
        ),
        "roots" => table::rows(
            &["begins with", "meaning"],
            Root::ALL
                .iter()
                .map(|r| vec![format!("`{}`", r.as_str()), r.meaning().to_owned()]),
        ),
        "fields" => table::rows(
            &["field", "meaning"],
            EventField::ALL
                .iter()
                .map(|f| vec![format!("`{}`", f.as_str()), f.meaning().to_owned()]),
        ),
        "words" => WordSet::ALL
            .iter()
            .map(|set| {
                let rows = set
                    .words()
                    .into_iter()
                    .map(|word| vec![format!("`{}`", word.as_str()), word.meaning().to_owned()]);
                format!(
                    "\n{}:\n\n{}",
                    capital(set.meaning()),
                    table::rows(&["word", "meaning"], rows)
                )
            })
            .collect(),
        "verbs" => table::verbs(),
        other => format!("(there is no table {other})"),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

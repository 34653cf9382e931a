//! Everything that has a name, for `gtrun explain`.

use serde_json::Value;

use super::table::kind;
use crate::diagnostic::Code;
use crate::language::nearest::nearest;
use crate::language::schema::{environment_schema, scenario_schema};
use crate::language::vocabulary::{EventField, EventName, Function, Root, Signal, WordSet};

/// Something that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What kind of thing it is.
    pub kind: EntryKind,
    /// How it is written.
    pub usage: String,
    /// What it means, and its options.
    pub text: String,
}

/// The kinds of things that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A verb of a step.
    Verb,
    /// A kind of probe.
    Probe,
    /// A key of a scenario or an environment.
    Key,
    /// An event.
    Event,
    /// A function.
    Function,
    /// A signal.
    Signal,
    /// A root of templates and expressions.
    Root,
    /// A detail of an event.
    Field,
    /// A word of a closed set.
    Word,
    /// A code of a finding.
    Code,
}

impl Entry {
    /// How it is written, with its name in front where the usage does not hold it.
    pub fn usage_with_name(&self) -> String {
        if self.kind == EntryKind::Code {
            format!("{}: {}", self.name, self.usage)
        } else {
            self.usage.clone()
        }
    }
}

impl EntryKind {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 10] = [
        Self::Verb,
        Self::Probe,
        Self::Key,
        Self::Event,
        Self::Function,
        Self::Signal,
        Self::Root,
        Self::Field,
        Self::Word,
        Self::Code,
    ];

    /// In the singular.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verb => "verb",
            Self::Probe => "kind of probe",
            Self::Key => "key",
            Self::Event => "event",
            Self::Function => "function",
            Self::Signal => "signal",
            Self::Root => "root",
            Self::Field => "field of an event",
            Self::Word => "word",
            Self::Code => "code",
        }
    }

    /// As a heading, and as the word that lists them.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Verb => "verbs",
            Self::Probe => "probes",
            Self::Key => "keys",
            Self::Event => "events",
            Self::Function => "functions",
            Self::Signal => "signals",
            Self::Root => "roots",
            Self::Field => "fields",
            Self::Word => "words",
            Self::Code => "codes",
        }
    }
}

/// Everything that has a name, in the order of the reference.
pub fn entries() -> Vec<Entry> {
    let mut out = Vec::new();
    let scenario = scenario_schema();
    kinds(&scenario, "Step", EntryKind::Verb, &mut out);
    kinds(&scenario, "Probe", EntryKind::Probe, &mut out);
    for schema in [&scenario, &environment_schema()] {
        all_keys(schema, schema, "", &mut out, 0);
    }
    let entry = |name: &str, kind, usage: &str, text: &str| Entry {
        name: name.to_owned(),
        kind,
        usage: usage.to_owned(),
        text: text.to_owned(),
    };
    out.extend(
        EventName::ALL
            .iter()
            .map(|e| entry(e.as_str(), EntryKind::Event, e.usage(), e.meaning())),
    );
    out.extend(
        Function::ALL
            .iter()
            .map(|f| entry(f.as_str(), EntryKind::Function, f.usage(), f.meaning())),
    );
    out.extend(
        Signal::ALL
            .iter()
            .map(|s| entry(s.as_str(), EntryKind::Signal, s.as_str(), s.meaning())),
    );
    out.extend(
        Root::ALL
            .iter()
            .map(|r| entry(r.as_str(), EntryKind::Root, r.as_str(), r.meaning())),
    );
    out.extend(
        EventField::ALL
            .iter()
            .map(|f| entry(f.as_str(), EntryKind::Field, f.as_str(), f.meaning())),
    );
    for set in WordSet::ALL {
        let words = set.words().into_iter();
        out.extend(words.map(|word| {
            entry(
                word.as_str(),
                EntryKind::Word,
                word.as_str(),
                &format!("{} (one of the {})", word.meaning(), set.meaning()),
            )
        }));
    }
    out.extend(Code::ALL.iter().map(|code| {
        let text = format!("{}\n\n{}", code.explanation(), code.example());
        entry(&code.to_string(), EntryKind::Code, code.title(), &text)
    }));
    out
}

/// Everything of this name, in any case.
pub fn find(name: &str) -> Vec<Entry> {
    entries()
        .into_iter()
        .filter(|entry| entry.name.eq_ignore_ascii_case(name))
        .collect()
}

/// The name that is nearest to what was written.
pub fn nearest_entry(written: &str) -> Option<String> {
    let all = entries();
    nearest(written, all.iter().map(|entry| entry.name.as_str())).map(str::to_owned)
}

/// Verbs, kinds of probes: with their options.
fn kinds(schema: &Value, definition: &str, entry_kind: EntryKind, out: &mut Vec<Entry>) {
    let Some(found) = schema.pointer(&format!("/$defs/{definition}")) else {
        return;
    };
    let branches = found.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    for name in branches.filter_map(|branch| branch.pointer("/required/0")?.as_str()) {
        let Some(property) = found.pointer(&format!("/properties/{name}")) else {
            continue;
        };
        let mut text = describe(property);
        let options = property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| schema.pointer(target.trim_start_matches('#')));
        let options = options
            .and_then(|options| options.get("properties"))
            .and_then(Value::as_object);
        for (option, value) in options.into_iter().flatten() {
            text.push_str(&format!("\n  {option} ({}): {}", kind(schema, value), describe(value)));
        }
        out.push(Entry {
            name: name.to_owned(),
            kind: entry_kind,
            usage: format!("{name}: {}", kind(schema, property)),
            text,
        });
    }
}

/// Keys of the file and of everything in it, each by its path.
fn all_keys(schema: &Value, object: &Value, path: &str, out: &mut Vec<Entry>, depth: usize) {
    let properties = object.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let usage = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let target = property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| schema.pointer(target.trim_start_matches('#')));
        let known = out
            .iter()
            .any(|entry| entry.kind == EntryKind::Key && entry.usage == format!("{usage}: {}", kind(schema, property)));
        if !known {
            out.push(Entry {
                name: name.clone(),
                kind: EntryKind::Key,
                usage: format!("{usage}: {}", kind(schema, property)),
                text: describe(property),
            });
        }
        if let Some(target) =
            target.filter(|target| depth < 4 && target.get("oneOf").is_none() && target.get("properties").is_some())
        {
            all_keys(schema, target, &usage, out, depth + 1);
        }
    }
}

fn describe(property: &Value) -> String {
    property
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

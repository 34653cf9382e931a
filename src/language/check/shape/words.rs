//! What is wrong with a value, in an author's words.

use super::Shape;
use super::place::Definition;
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::ID_PATTERN;
use crate::language::nearest::did_you_mean;
use crate::language::plan::CountOrPercent;
use crate::language::source::{Node, NodeKind, Segment, Tree};
use crate::language::value::{ByteRate, Count, Flag, Offset, Port, PositiveCount, Rate, Ratio, Scalar};
use crate::time::Duration;

/// How a scalar type refuses a value: its code and its words.
struct Reader {
    name: &'static str,
    code: Code,
    expected: &'static str,
    read: fn(&Node, &str) -> Option<String>,
}

fn reader<T: Scalar>(code: Code) -> Reader {
    fn read<T: Scalar>(node: &Node, written: &str) -> Option<String> {
        match &node.kind {
            NodeKind::Text(text) => T::from_text(text).err(),
            NodeKind::Integer(value) => T::from_integer(*value, written).err(),
            NodeKind::Float(value) => T::from_float(*value, written).err(),
            NodeKind::Bool(value) => T::from_bool(*value, written).err(),
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => {
                Some(format!("expected {}, found {}", T::EXPECTED, node.describe()))
            }
        }
    }
    Reader {
        name: T::NAME,
        code,
        expected: T::EXPECTED,
        read: read::<T>,
    }
}

fn readers() -> [Reader; 10] {
    [
        reader::<Duration>(Code::Duration),
        reader::<Offset>(Code::Duration),
        reader::<Rate>(Code::Spelling),
        reader::<ByteRate>(Code::Spelling),
        reader::<CountOrPercent>(Code::Spelling),
        reader::<Count>(Code::OutOfRange),
        reader::<PositiveCount>(Code::OutOfRange),
        reader::<Port>(Code::OutOfRange),
        reader::<Ratio>(Code::WrongType),
        reader::<Flag>(Code::WrongType),
    ]
}

/// A value of a wrong kind, spelling or range.
pub(super) fn wrong_value(
    shape: &Shape,
    definition: Option<&Definition<'_>>,
    at: &[Segment],
    node: &Node,
    span: Span,
    sources: &SourceMap,
) -> Diagnostic {
    let name = definition.and_then(Definition::name).unwrap_or_default();
    let written = sources.slice(span);
    let scalar = !matches!(node.kind, NodeKind::List(_) | NodeKind::Map(_));
    if let Some(reader) = readers()
        .into_iter()
        .find(|reader| name.strip_suffix("OrTemplate").unwrap_or(name) == reader.name)
    {
        let message = (reader.read)(node, written)
            .unwrap_or_else(|| format!("expected {}, found {}", reader.expected, node.describe()));
        let numeric = matches!(node.kind, NodeKind::Integer(_) | NodeKind::Float(_));
        let code = match (reader.code, &node.kind) {
            (Code::Duration, _) if scalar => Code::Duration,
            (Code::Spelling, _) if scalar => Code::Spelling,
            (Code::OutOfRange, _) if numeric => Code::OutOfRange,
            _ => Code::WrongType,
        };
        let help = match (&node.kind, name.starts_with("Flag")) {
            (NodeKind::Text(text), true) if is_yes_or_no(text) => {
                Some(format!("YAML 1.2 knows only true and false: write {}", yes_or_no(text)))
            }
            _ => None,
        };
        return Diagnostic::error(code, message).at(span, "").maybe_help(help);
    }
    let words = definition.map(Definition::words).unwrap_or_default();
    if !words.is_empty() {
        let known = words.iter().map(String::as_str);
        let written = node.text().unwrap_or(written);
        let message = if scalar {
            format!("`{written}` is no word that fits here")
        } else {
            format!("expected a word, found {}", node.describe())
        };
        let code = if scalar { Code::UnknownWord } else { Code::WrongType };
        return Diagnostic::error(code, message)
            .at(span, "")
            .maybe_help(did_you_mean(written, known).or_else(|| Some(format!("one of {}", words.join(", ")))));
    }
    match name {
        "Version" => return version(node, span),
        "Id" | "Connection" => return not_text_or(node, span, |text| bad_name(text, ID_PATTERN, span)),
        "Name" => return not_text_or(node, span, |text| bad_name(text, "", span)),
        "FileName" => {
            return not_text_or(node, span, |text| {
                Diagnostic::error(Code::BadName, format!("`{text}` is no file name"))
                    .at(span, "")
                    .help("letters, digits, `.`, `_` and `-`, no folder, at most 100 characters")
            });
        }
        "Expression" | "Assertion" => {
            let message = match node.text() {
                Some(_) => "an empty expression says nothing".to_owned(),
                None => format!("expected an expression, found {}", node.describe()),
            };
            let help = match (&node.kind, at.last()) {
                (NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Bool(_), _) => None,
                (NodeKind::Text(_), Some(Segment::Key(key))) if key == "wait_for" => {
                    Some("what is awaited? `ended(long)`, `lb_down`, `active == 0`")
                }
                _ => Some("for example `active_zero_before(lb_down)` or `status(long) == 200`"),
            };
            return Diagnostic::error(Code::WrongType, message)
                .at(span, "")
                .maybe_help(help.map(str::to_owned));
        }
        _ => {}
    }
    if node.text() == Some("") {
        return Diagnostic::error(Code::Empty, format!("{} is an empty text", shape.name_of(at)))
            .at(span, "")
            .help("write something, or remove the key");
    }
    let expected = definition.map_or("another value", |found| expected(found));
    let place = match &node.kind {
        NodeKind::Map(entries) => entries.first().map_or(span, |entry| Span {
            start: span.start,
            end: entry.key_at.end,
            ..span
        }),
        NodeKind::Null
        | NodeKind::Bool(_)
        | NodeKind::Integer(_)
        | NodeKind::Float(_)
        | NodeKind::Text(_)
        | NodeKind::List(_) => span,
    };
    let help = match (expected, &node.kind, at.last()) {
        ("a list", NodeKind::Text(_), Some(Segment::Key(key))) if key == "argv" => Some(format!(
            "a command is a list and no shell line: `argv: [{}]`",
            written.split_whitespace().collect::<Vec<_>>().join(", ")
        )),
        (
            "a list",
            NodeKind::Text(_) | NodeKind::Integer(_) | NodeKind::Bool(_) | NodeKind::Float(_),
            Some(Segment::Key(key)),
        ) => Some(format!("write `{key}: [{written}]`")),
        ("a list", NodeKind::Map(_), Some(Segment::Key(key))) => Some(format!("begin each item of `{key}` with `- `")),
        ("a text", NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Bool(_), _) => {
            Some(format!("put it in quotes: \"{written}\""))
        }
        ("a mapping", NodeKind::Text(text), Some(Segment::Index(_))) if !text.contains(' ') => {
            Some(format!("a step is a mapping: `- {text}: {{}}`"))
        }
        _ => None,
    };
    Diagnostic::error(
        Code::WrongType,
        format!(
            "expected {expected} for {}, found {}",
            shape.name_of(at),
            node.describe()
        ),
    )
    .at(place, "")
    .maybe_help(help)
}

fn expected(found: &Definition<'_>) -> &'static str {
    let ty = found.schema().get("type");
    let first = ty.and_then(|ty| ty.as_str().or_else(|| ty.get(0)?.as_str()));
    match first {
        Some("array") => "a list",
        Some("object") => "a mapping",
        Some("string") => "a text",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        _ => "another value",
    }
}

fn is_yes_or_no(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "yes" | "no" | "on" | "off" | "y" | "n" | "true" | "false"
    )
}

fn yes_or_no(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "yes" | "on" | "y" | "true")
}

fn version(node: &Node, span: Span) -> Diagnostic {
    match &node.kind {
        NodeKind::Integer(version) => Diagnostic::error(
            Code::LanguageVersion,
            format!("the file is written in language version {version}; this gtrun reads version 1"),
        )
        .at(span, "")
        .help("use a gtrun that knows this version, or write `gtrun: 1`"),
        NodeKind::Null
        | NodeKind::Bool(_)
        | NodeKind::Float(_)
        | NodeKind::Text(_)
        | NodeKind::List(_)
        | NodeKind::Map(_) => Diagnostic::error(
            Code::LanguageVersion,
            format!("expected the language version, found {}", node.describe()),
        )
        .at(span, "")
        .help("write `gtrun: 1`"),
    }
}

fn not_text_or(node: &Node, span: Span, bad: impl FnOnce(&str) -> Diagnostic) -> Diagnostic {
    match node.text() {
        Some(text) => bad(text),
        None => {
            let quoted = matches!(node.kind, NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Bool(_));
            let help = quoted.then(|| "a name begins with a letter".to_owned());
            Diagnostic::error(Code::WrongType, format!("expected a name, found {}", node.describe()))
                .at(span, "")
                .maybe_help(help)
        }
    }
}

/// A name with characters that it may not have, and how it could be called.
fn bad_name(text: &str, pattern: &str, span: Span) -> Diagnostic {
    let id = pattern == ID_PATTERN;
    let (separator, rule) = if id {
        ('_', "ids are lower-case letters, digits and `_`, a letter first")
    } else {
        ('-', "names are lower-case letters, digits and `-`, at most 63")
    };
    let replaced: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { separator })
        .collect();
    let trimmed = if id {
        replaced.trim_start_matches(|c: char| !c.is_ascii_lowercase())
    } else {
        replaced.as_str()
    };
    let suggestion = trimmed.chars().take(63).collect::<String>();
    let help = if suggestion.is_empty() {
        rule.to_owned()
    } else {
        format!("{rule}: `{suggestion}`")
    };
    Diagnostic::error(Code::BadName, format!("`{text}` is no name"))
        .at(span, "")
        .help(help)
}

/// A key of a mapping with free keys that is no id.
pub(super) fn bad_key(key: &str, pattern: &str, span: Span, _at: &[Segment]) -> Diagnostic {
    bad_name(key, pattern, span)
}

/// Nothing where a value belongs.
pub(super) fn null(shape: &Shape, at: &[Segment], key: Span, value: Span) -> Diagnostic {
    let place = if value.is_empty() { key } else { value };
    if let [.., Segment::Index(_)] = at {
        return Diagnostic::error(Code::Null, format!("{} is empty", shape.name_of(at)))
            .at(place, "")
            .help("remove the `-`, or write something behind it");
    }
    let Some(Segment::Key(name)) = at.last() else {
        return Diagnostic::error(Code::Null, "the file is empty").at(place, "");
    };
    let definition = shape.definition(at);
    let parent = at.split_last().and_then(|(_, parent)| shape.definition(parent));
    let is_kind = parent.is_some_and(|parent| parent.kinds().contains(name));
    let required = definition
        .as_ref()
        .is_some_and(|found| found.schema().get("required").is_some());
    let expected = definition.as_ref().map_or("another value", |found| expected(found));
    let help = match (is_kind, expected) {
        (true, "a mapping") if !required => format!("without options it is written `{name}: {{}}`"),
        (_, "a list") => format!("list something below `{name}:`, or remove the key"),
        (_, "a mapping") => format!("write keys below `{name}:`, indented, or remove the key"),
        _ => format!("write a value behind `{name}:`, or remove the key; `null` and `~` are never values"),
    };
    Diagnostic::error(Code::Null, format!("`{name}` has no value"))
        .at(place, "")
        .help(help)
}

/// Plain scalars like `010`, where a number or a variable stands: 8 to some readers, 10 to others.
pub(super) fn leading_zeros(shape: &Shape, tree: &Tree, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    walk(&tree.root, &mut Vec::new(), &mut |node, at| {
        let Some(text) = node.text() else { return };
        let digits = text.trim_start_matches(['-', '+']);
        let octal = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let span = tree.span(node.at);
        if !octal || sources.slice(span) != text {
            return;
        }
        let name = shape.definition(at).and_then(|found| found.name());
        // Numbers report it themselves.
        if name == Some("Variable") {
            let plain = digits.trim_start_matches('0');
            let plain = if plain.is_empty() { "0" } else { plain };
            out.push(
                Diagnostic::error(Code::LeadingZero, format!("`{text}` has a leading zero"))
                    .at(span, "")
                    .help(format!(
                        "the number is written {plain}; a text is put in quotes: \"{text}\""
                    )),
            );
        }
    });
    out
}

fn walk(node: &Node, at: &mut Vec<Segment>, visit: &mut impl FnMut(&Node, &[Segment])) {
    visit(node, at);
    for (index, item) in node.items().iter().enumerate() {
        at.push(Segment::Index(index));
        walk(item, at, visit);
        at.pop();
    }
    for entry in node.entries() {
        at.push(Segment::Key(entry.key.clone()));
        walk(&entry.value, at, visit);
        at.pop();
    }
}

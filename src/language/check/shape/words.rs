//! What is wrong with a value, in an author's words.

use super::place::Definition;
use super::{Shape, duration};
use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::ID_PATTERN;
use crate::language::nearest::nearest;
use crate::language::plan::CountOrPercent;
use crate::language::source::{Node, NodeKind, Segment, Tree};
use crate::language::value::{ByteRate, Count, Flag, Offset, Port, PositiveCount, Rate, Ratio, Scalar};
use crate::time::Duration;

/// `a`, `b` and `c`.
pub(super) fn list(keys: &[String]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

/// How a scalar type refuses a value: its code and its words.
struct Reader {
    name: &'static str,
    code: Code,
    read: fn(&Node, &str) -> String,
}

fn reader<T: Scalar>(code: Code) -> Reader {
    fn read<T: Scalar>(node: &Node, written: &str) -> String {
        let refused = match &node.kind {
            NodeKind::Text(text) => T::from_text(text).err(),
            NodeKind::Integer(value) => T::from_integer(*value, written).err(),
            NodeKind::Float(value) => T::from_float(*value, written).err(),
            NodeKind::Bool(value) => T::from_bool(*value, written).err(),
            NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => None,
        };
        refused.unwrap_or_else(|| format!("expected {}, found {}", T::EXPECTED, node.describe()))
    }
    Reader {
        name: T::NAME,
        code,
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
pub(super) fn wrong_value(shape: &Shape, at: &[Segment], node: &Node, span: Span, sources: &SourceMap) -> Diagnostic {
    let definition = shape.definition(at);
    let name = definition.as_ref().and_then(Definition::name).unwrap_or_default();
    let written = sources.slice(span);
    let plain = name.strip_suffix("OrTemplate").unwrap_or(name);
    if let Some(reader) = readers().into_iter().find(|reader| reader.name == plain) {
        return wrong_scalar(&reader, node, written, span);
    }
    let words = definition.as_ref().map(Definition::words).unwrap_or_default();
    if !words.is_empty() {
        return wrong_word(shape, at, node, written, span, &words);
    }
    match name {
        "Version" => version(node, span),
        "Id" | "Connection" => text_or(node, span, |text| bad_name(text, ID_PATTERN, span)),
        "Name" => text_or(node, span, |text| bad_name(text, "", span)),
        "FileName" => text_or(node, span, |text| {
            let help = "letters, digits, `.`, `_` and `-`, no folder, at most 100 characters";
            Diagnostic::error(Code::BadName, format!("`{text}` is no file name"))
                .at(span, "")
                .help(help)
        }),
        "Expression" | "Assertion" => no_expression(at, node, span),
        _ if node.text() == Some("") => {
            let message = format!("{} is an empty text", shape.name_of(at));
            Diagnostic::error(Code::Empty, message)
                .at(span, "")
                .help("write something, or remove the key")
        }
        _ => wrong_type(shape, definition.as_ref(), at, node, written, span),
    }
}

fn is_scalar(node: &Node) -> bool {
    match node.kind {
        NodeKind::List(_) | NodeKind::Map(_) => false,
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Text(_) => true,
    }
}

fn is_number(node: &Node) -> bool {
    match node.kind {
        NodeKind::Integer(_) | NodeKind::Float(_) => true,
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Text(_) | NodeKind::List(_) | NodeKind::Map(_) => false,
    }
}

fn wrong_scalar(reader: &Reader, node: &Node, written: &str, span: Span) -> Diagnostic {
    let full = (reader.read)(node, written);
    // What the right form is stands in the help, not in the headline.
    let (message, form) = full.split_once("; ").map_or((full.as_str(), None), |(message, form)| {
        (message, Some(form.to_owned()))
    });
    let code = match reader.code {
        Code::OutOfRange if !is_number(node) => Code::WrongType,
        _ if !is_scalar(node) => Code::WrongType,
        code => code,
    };
    let text = node.text().unwrap_or_default();
    let help = match code {
        Code::Duration => duration::meant(text)
            .map(|meant| format!("did you mean `{meant}`? {}", form.clone().unwrap_or_default()))
            .or(form),
        Code::WrongType if reader.name == Flag::NAME => {
            true_or_false(text).map(|flag| format!("YAML 1.2 knows only true and false: write {flag}"))
        }
        Code::WrongType if text.parse::<f64>().is_ok() && form.is_none() => {
            Some(format!("write {text} without quotes"))
        }
        _ => form,
    };
    let message = if text.is_empty() && code == Code::Duration && node.text().is_some() {
        "an empty text is not a duration"
    } else {
        message
    };
    Diagnostic::error(code, message)
        .at(span, "")
        .maybe_help(help.map(|help| help.trim().to_owned()))
}

fn true_or_false(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" => Some(true),
        "no" | "off" | "n" | "false" => Some(false),
        _ => None,
    }
}

fn wrong_word(shape: &Shape, at: &[Segment], node: &Node, written: &str, span: Span, words: &[String]) -> Diagnostic {
    let all = format!("one of {}", words.join(", "));
    if !is_scalar(node) {
        let message = format!("expected a word for {}, found {}", shape.name_of(at), node.describe());
        return Diagnostic::error(Code::WrongType, message).at(span, "").help(all);
    }
    let text = node.text().unwrap_or(written);
    let close = nearest(text, words.iter().map(String::as_str)).map(|close| format!("did you mean `{close}`? "));
    let message = format!("{} cannot be `{text}`", shape.name_of(at));
    Diagnostic::error(Code::UnknownWord, message)
        .at(span, "")
        .help(format!("{}{all}", close.unwrap_or_default()))
}

fn no_expression(at: &[Segment], node: &Node, span: Span) -> Diagnostic {
    let (code, message) = match node.text() {
        Some(_) => (Code::Empty, "an empty expression says nothing".to_owned()),
        None => (
            Code::WrongType,
            format!("expected an expression, found {}", node.describe()),
        ),
    };
    let awaited = matches!(at.last(), Some(Segment::Key(key)) if key == "wait_for");
    let help = if awaited {
        "for example `ended(long)`, `lb_down` or `active == 0`"
    } else {
        "for example `active_zero_before(lb_down)` or `status(long) == 200`"
    };
    let help = match &node.kind {
        NodeKind::Integer(n) if awaited => format!("to wait a fixed time, write `wait: {n}s`"),
        _ => help.to_owned(),
    };
    Diagnostic::error(code, message).at(span, "").help(help)
}

fn wrong_type(
    shape: &Shape,
    definition: Option<&Definition<'_>>,
    at: &[Segment],
    node: &Node,
    written: &str,
    span: Span,
) -> Diagnostic {
    let expected = definition.map_or("another value", expected);
    if at.is_empty() {
        let message = format!("a file is made of keys and values, and this is {}", node.describe());
        return Diagnostic::error(Code::WrongType, message)
            .at(span, "")
            .help("`gtrun new NAME` writes a scenario to start from");
    }
    let place = node.entries().first().map_or(span, |entry| Span {
        start: span.start,
        end: entry.key_at.end,
        ..span
    });
    let key = match at.last() {
        Some(Segment::Key(key)) => key.as_str(),
        Some(Segment::Index(_)) | None => "",
    };
    let help = match (expected, &node.kind) {
        ("a list", NodeKind::Text(_)) if key == "argv" => {
            let words: Vec<&str> = written.split_whitespace().collect();
            Some(format!(
                "a command is a list and no shell line: `argv: [{}]`",
                words.join(", ")
            ))
        }
        ("a list", NodeKind::Map(_)) => Some(format!("begin each item of `{key}` with `- `")),
        ("a list", _) => Some(format!("write `{key}: [{written}]`")),
        ("a text", _) if is_scalar(node) => Some(format!("put it in quotes: \"{written}\"")),
        ("a mapping", NodeKind::Text(text)) if key.is_empty() && !text.contains(' ') => {
            Some(format!("a step is a mapping: `- {text}: {{}}`"))
        }
        _ => None,
    };
    let message = format!(
        "expected {expected} for {}, found {}",
        shape.name_of(at),
        node.describe()
    );
    Diagnostic::error(Code::WrongType, message)
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

fn version(node: &Node, span: Span) -> Diagnostic {
    let (message, help) = match &node.kind {
        NodeKind::Integer(version) => (
            format!("the file is written in language version {version}; this gtrun reads version 1"),
            "use a gtrun that knows this version, or write `gtrun: 1`",
        ),
        NodeKind::Null
        | NodeKind::Bool(_)
        | NodeKind::Float(_)
        | NodeKind::Text(_)
        | NodeKind::List(_)
        | NodeKind::Map(_) => (
            format!("expected the language version, found {}", node.describe()),
            "write `gtrun: 1`",
        ),
    };
    Diagnostic::error(Code::LanguageVersion, message)
        .at(span, "")
        .help(help)
}

fn text_or(node: &Node, span: Span, bad: impl FnOnce(&str) -> Diagnostic) -> Diagnostic {
    match node.text() {
        Some(text) => bad(text),
        None => {
            let help = is_scalar(node).then(|| "a name begins with a letter".to_owned());
            Diagnostic::error(Code::WrongType, format!("expected a name, found {}", node.describe()))
                .at(span, "")
                .maybe_help(help)
        }
    }
}

/// A name with characters that it may not have, and how it could be called.
pub(super) fn bad_name(text: &str, pattern: &str, span: Span) -> Diagnostic {
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
    let suggestion: String = replaced.trim_matches(separator).chars().take(63).collect();
    let fits = !suggestion.is_empty() && (!id || suggestion.starts_with(|c: char| c.is_ascii_lowercase()));
    let help = if fits {
        format!("{rule}: `{suggestion}`")
    } else {
        rule.to_owned()
    };
    Diagnostic::error(Code::BadName, format!("`{text}` is no name"))
        .at(span, "")
        .help(help)
}

/// Nothing where a value belongs.
pub(super) fn null(shape: &Shape, at: &[Segment], key: Span, value: Span) -> Diagnostic {
    let place = if value.is_empty() { key } else { value };
    let Some(Segment::Key(name)) = at.last() else {
        let message = format!("{} is empty", shape.name_of(at));
        return Diagnostic::error(Code::Null, message)
            .at(place, "")
            .help("remove the `-`, or write something behind it");
    };
    let definition = shape.definition(at);
    let parent = at.split_last().and_then(|(_, parent)| shape.definition(parent));
    let is_kind = parent.is_some_and(|parent| parent.kinds().contains(name));
    let required = definition
        .as_ref()
        .is_some_and(|found| found.schema().get("required").is_some());
    let help = match (is_kind, definition.as_ref().map_or("another value", expected)) {
        (true, "a mapping") if !required => format!("without options it is written `{name}: {{}}`"),
        (_, "a list") => format!("list something below `{name}:`, or remove the key"),
        (_, "a mapping") => format!("write keys below `{name}:`, indented, or remove the key"),
        _ => format!("write a value behind `{name}:`, or remove the key; `null` and `~` are never values"),
    };
    Diagnostic::error(Code::Null, format!("`{name}` has no value"))
        .at(place, "")
        .help(help)
}

/// Plain scalars like `010` where a variable stands: 8 to some readers, 10 to others. Numbers report it themselves.
pub(super) fn leading_zeros(shape: &Shape, tree: &Tree, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    walk(&tree.root, &mut Vec::new(), &mut |node, at| {
        let Some(text) = node.text() else { return };
        let digits = text.trim_start_matches(['-', '+']);
        let octal = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let span = tree.span(node.at);
        if !octal
            || sources.slice(span) != text
            || shape.definition(at).and_then(|found| found.name()) != Some("Variable")
        {
            return;
        }
        let plain = digits.trim_start_matches('0');
        let plain = if plain.is_empty() { "0" } else { plain };
        let diagnostic = Diagnostic::error(Code::LeadingZero, format!("`{text}` has a leading zero")).at(span, "");
        out.push(diagnostic.help(format!(
            "the number is written {plain}; a text is put in quotes: \"{text}\""
        )));
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

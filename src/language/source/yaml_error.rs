//! The YAML crate's errors in the words of an author.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::yaml::{MAX_DEPTH, MAX_VALUES};
use crate::diagnostic::{Code, Diagnostic, FileId, Span};

/// The error at its place, with what to do.
pub(super) fn translate(error: &Error, text: &str, file: FileId) -> Diagnostic {
    let place = Place::of(error, text);
    if let Some(tab) = place.tab_nearby() {
        return Diagnostic::error(Code::TabIndentation, "a tab is used for indentation")
            .at(Span::new(file, tab, tab + 1), "this is a tab")
            .help("indent with spaces; most editors can do that for YAML files by themselves");
    }
    let at = Span::new(file, place.start, place.end);
    let (code, message, help) = words(error, &place);
    let mut diagnostic = Diagnostic::error(code, message).at(at, "");
    if let Some((span, label)) = earlier(error, &place) {
        diagnostic = diagnostic.at(Span::new(file, span.0, span.1), label);
    }
    diagnostic.maybe_help(help)
}

/// Where reading stopped.
struct Place<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    line_start: usize,
}

impl<'a> Place<'a> {
    fn of(error: &Error, text: &'a str) -> Self {
        let Some(location) = error.location() else {
            return Self {
                text,
                start: 0,
                end: 0,
                line_start: 0,
            };
        };
        let line = usize::try_from(location.line()).unwrap_or(1).max(1);
        let column = usize::try_from(location.column()).unwrap_or(1).max(1);
        let line_start = text
            .split_inclusive('\n')
            .take(line - 1)
            .map(str::len)
            .sum::<usize>()
            .min(text.len());
        let rest = &text[line_start..];
        let start = line_start + rest.char_indices().nth(column - 1).map_or(rest.len(), |(i, _)| i);
        // A word, or one character of anything else.
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let tail = &text[start..];
        let len = tail.find(|c| !word(c)).unwrap_or(tail.len());
        let len = if len == 0 {
            tail.chars()
                .next()
                .filter(|c| !c.is_control())
                .map_or(0, char::len_utf8)
        } else {
            len
        };
        Self {
            text,
            start,
            end: start + len,
            line_start,
        }
    }

    /// The last line before that one which holds more than a comment, and where it begins.
    fn line_before(&self) -> Option<(usize, &'a str)> {
        let mut at = 0;
        let mut last = None;
        for line in self.text[..self.line_start].split_inclusive('\n') {
            let content = line.trim();
            if !content.is_empty() && !content.starts_with('#') {
                last = Some((at, line.trim_end()));
            }
            at += line.len();
        }
        last
    }

    /// A tab in the indentation of this line or of the next.
    fn tab_nearby(&self) -> Option<usize> {
        let mut at = self.line_start;
        for line in self.text[self.line_start..].split_inclusive('\n').take(2) {
            let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
            if let Some(tab) = line[..indentation].find('\t') {
                return Some(at + tab);
            }
            at += line.len();
        }
        None
    }
}

const QUOTE: &str = "put the text in quotes";

/// Code, message and help.
fn words(error: &Error, place: &Place<'_>) -> (Code, String, Option<String>) {
    let some = |text: &str| Some(text.to_owned());
    let too = |what: &str| {
        (
            Code::Limit,
            what.to_owned(),
            some("a scenario needs far less; is this the right file?"),
        )
    };
    match error {
        Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        }
        | Error::MultipleDocuments { .. } => (
            Code::SecondDocument,
            "a second document begins here".to_owned(),
            some("a file is one document: make two files of it"),
        ),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => too(&format!("nested deeper than {MAX_DEPTH} levels")),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            too(&format!("more than {MAX_VALUES} values, aliases filled in"))
        }
        Error::UnknownAnchor { .. } => {
            let known = anchors(place.text);
            let name: String = place.text[place.start..]
                .chars()
                .skip(1)
                .take_while(|c| !c.is_whitespace() && !",]}".contains(*c))
                .collect();
            let help = crate::language::nearest::did_you_mean(&name, known.iter().copied());
            (
                Code::UnknownAnchor,
                format!("nothing above is marked `&{name}`"),
                help.or_else(|| some("mark a value with `&name` before it is repeated with `*name`")),
            )
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => (
            Code::UnknownAnchor,
            "an alias stands inside what it repeats".to_owned(),
            some("write the value out"),
        ),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => (
            Code::WrongType,
            "`<<` merges a mapping, and this is none".to_owned(),
            some("`<<: *name`, where `&name` marks a mapping"),
        ),
        Error::NonFiniteFloat { value, .. } => (
            Code::Spelling,
            format!("`{value}` is not a finite number"),
            some("write digits, or quote a text"),
        ),
        Error::InvalidScalar { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. } => (
            Code::UnsupportedTag,
            "tags are not known here".to_owned(),
            some("leave the `!...` out; put a text in quotes"),
        ),
        Error::NullIntoString { .. } => (
            Code::Null,
            "a key is missing, or `null`".to_owned(),
            some("keys are texts"),
        ),
        Error::Unexpected { .. }
            if place.text[place.start..].starts_with('{') && place.text[..place.start].ends_with('{') =>
        {
            let end = place.text[place.start..]
                .find("}}")
                .map_or(place.end, |n| place.start + n + 2);
            let template = &place.text[place.start - 1..end];
            let help = format!("write `\"{template}\"`, quotes included");
            (
                Code::YamlSyntax,
                "a template needs quotes: without them YAML reads `{{` as two mappings".to_owned(),
                Some(help),
            )
        }
        Error::Unexpected { .. } => (
            Code::YamlSyntax,
            "a key must be a text".to_owned(),
            some("lists and mappings cannot be keys"),
        ),
        other => scanner(&other.to_string(), place),
    }
}

/// Names marked with `&`.
fn anchors(text: &str) -> Vec<&str> {
    text.match_indices('&')
        .filter_map(|(i, _)| {
            let rest = &text[i + 1..];
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
                .unwrap_or(rest.len());
            (end > 0).then(|| &rest[..end])
        })
        .collect()
}

/// What the scanner says, by its words: the crate has no finer type for it.
fn scanner(raw: &str, place: &Place<'_>) -> (Code, String, Option<String>) {
    let syntax = |message: &str, help: &str| (Code::YamlSyntax, message.to_owned(), Some(help.to_owned()));
    let raw = raw.split(" at line ").next().unwrap_or(raw);
    let has = |words: &str| raw.contains(words);
    if has("unsupported tag") {
        return (
            Code::UnsupportedTag,
            "tags such as `!include` or `!!binary` are not known here".into(),
            Some("for files there is `include: [FILE]`; put a text in quotes".into()),
        );
    }
    if has("unclosed quote") || has("unexpected end of stream") && has("quoted") {
        return syntax(
            "this quote is never closed",
            "close it with the same quote; inside double quotes write `\\\"`, inside single quotes `''`",
        );
    }
    if has("mapping values are not allowed") {
        let before = place.text[place.line_start..place.start].contains(": ");
        return if before {
            syntax(
                "a second `: ` in one line",
                "a text that holds `: ` needs quotes; a mapping inside begins on its own line",
            )
        } else {
            syntax(
                "`:` has no place here: the line above is a text and is still going on",
                "is a `:` missing in the line above, or this line indented too far?",
            )
        };
    }
    if has("did not find expected") && has("block") {
        return syntax(
            "the indentation fits no line above",
            "items of a list and keys of a mapping begin in the same column",
        );
    }
    if has("simple key expected") || has("could not find expected ':'") {
        return syntax("expected a key with its `:`", "every line of a mapping is `key: value`");
    }
    if has("illegal placement of ':'") || has("flow") || has("misplaced bracket") || has("expected ',' or") {
        return syntax(
            "the brackets do not match",
            "every `[` and `{` needs its `]` and `}`, with commas between",
        );
    }
    if has("unexpected character") || has("cannot start any token") || has("while scanning") && has("directive") {
        return syntax("a text cannot begin with this character", QUOTE);
    }
    if has("block sequence entries are not allowed") {
        return syntax(
            "a list cannot begin here",
            "begin it on its own line, or write `[a, b]`",
        );
    }
    if has("unknown escape character") {
        return syntax(
            "the text holds an unknown escape",
            "in double quotes `\\` is written `\\\\`; in single quotes it stands for itself",
        );
    }
    if has("trailing content after") {
        return syntax(
            "something follows the closing quote",
            "inside single quotes a `'` is written `''`, inside double quotes `\"` is written `\\\"`",
        );
    }
    if has("tab") {
        return (
            Code::TabIndentation,
            "a tab has no place here".into(),
            Some("use spaces".into()),
        );
    }
    (Code::YamlSyntax, format!("this is not YAML: {raw}"), None)
}

/// An earlier place that may be the real mistake.
fn earlier<'a>(error: &Error, place: &Place<'a>) -> Option<((usize, usize), &'static str)> {
    let raw = error.to_string();
    if !raw.contains("mapping values are not allowed") || place.text[place.line_start..place.start].contains(": ") {
        return None;
    }
    let (at, line) = place.line_before()?;
    let content = line.trim_start();
    let start = at + line.len() - content.len();
    Some((
        (start, at + line.len()),
        if content.contains(':') {
            "this text goes on"
        } else {
            "is a `:` missing here?"
        },
    ))
}

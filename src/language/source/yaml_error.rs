//! The YAML crate's errors in the words of an author.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::yaml::{MAX_DEPTH, MAX_VALUES};
use crate::diagnostic::{Code, Diagnostic, FileId, Span};
use crate::language::nearest::did_you_mean;

/// The error at its place, with what to do.
pub(super) fn translate(error: &Error, text: &str, file: FileId) -> Diagnostic {
    let mut error = error;
    while let Error::AliasError { error: inner, .. } | Error::WithSnippet { error: inner, .. } = error {
        error = inner;
    }
    let mut place = Place::of(error, text);
    if let Some(tab) = place.tab_nearby() {
        return Diagnostic::error(Code::TabIndentation, "a tab is used for indentation")
            .at(Span::new(file, tab, tab + 1), "this is a tab")
            .help("indent with spaces; most editors can do that for YAML files by themselves");
    }
    let Words {
        code,
        message,
        help,
        earlier,
    } = words(error, &place);
    if code == Code::UnsupportedTag {
        place.back_to('!');
    }
    let mut diagnostic = Diagnostic::error(code, message).at(Span::new(file, place.start, place.end), "");
    if let Some(((start, end), label)) = earlier {
        diagnostic = diagnostic.at(Span::new(file, start, end), label);
    }
    diagnostic.maybe_help(help)
}

/// What to say.
struct Words {
    code: Code,
    message: String,
    help: Option<String>,
    /// An earlier place that may be the real mistake.
    earlier: Option<((usize, usize), &'static str)>,
}

fn say(code: Code, message: impl Into<String>, help: impl Into<String>) -> Words {
    Words {
        code,
        message: message.into(),
        help: Some(help.into()),
        earlier: None,
    }
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
        Self {
            text,
            start,
            end: start + word_at(&text[start..]),
            line_start,
        }
    }

    /// Moves to the last such character before this place, in the same line.
    fn back_to(&mut self, c: char) {
        if let Some(found) = self.text[self.line_start..self.end].rfind(c) {
            self.start = self.line_start + found;
            let tail = &self.text[self.start..];
            self.end = self.start + tail.find(char::is_whitespace).unwrap_or(tail.len());
        }
    }

    /// What stands in the line before this place.
    fn before(&self) -> &'a str {
        &self.text[self.line_start..self.start]
    }

    /// The whole line, without its end.
    fn line(&self) -> &'a str {
        self.text[self.line_start..].lines().next().unwrap_or("")
    }

    /// The last line before this one which holds more than a comment, and where its content begins.
    fn line_before(&self) -> Option<(usize, &'a str)> {
        let mut at = 0;
        let mut last = None;
        for line in self.text[..self.line_start].split_inclusive('\n') {
            let content = line.trim();
            if !content.is_empty() && !content.starts_with('#') {
                last = Some((at + line.len() - line.trim_start().len(), content));
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

/// Length of the word that a text begins with, else of one character.
fn word_at(tail: &str) -> usize {
    let word = tail
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
        .unwrap_or(tail.len());
    if word > 0 {
        word
    } else {
        tail.chars()
            .next()
            .filter(|c| !c.is_control())
            .map_or(0, char::len_utf8)
    }
}

fn words(error: &Error, place: &Place<'_>) -> Words {
    let limit = |what: String| say(Code::Limit, what, "a scenario needs far less; is this the right file?");
    match error {
        Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        }
        | Error::MultipleDocuments { .. } => say(
            Code::SecondDocument,
            "a second document begins here",
            "a file is one document: make two files of it",
        ),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => limit(format!("nested deeper than {MAX_DEPTH} levels")),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            limit(format!("more than {MAX_VALUES} values, aliases filled in"))
        }
        Error::UnknownAnchor { .. } => {
            let rest = place.text[place.start..].chars().skip(1);
            let name: String = rest.take_while(|c| !c.is_whitespace() && !",]}".contains(*c)).collect();
            let known = anchors(&place.text[..place.start]);
            let help = did_you_mean(&name, known.iter().copied());
            let help =
                help.unwrap_or_else(|| "mark a value with `&name` before it is repeated with `*name`".to_owned());
            say(Code::UnknownAnchor, format!("nothing above is marked `&{name}`"), help)
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => say(
            Code::UnknownAnchor,
            "an alias stands inside what it repeats",
            "write the value out",
        ),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => say(
            Code::WrongType,
            "`<<` merges a mapping, and this is none",
            "`<<: *name`, where `&name` marks a mapping",
        ),
        Error::NonFiniteFloat { value, .. } => say(
            Code::Spelling,
            format!("`{value}` is not a finite number"),
            "write digits, or quote a text",
        ),
        Error::InvalidScalar { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. } => say(
            Code::UnsupportedTag,
            "tags are not known here",
            "leave the `!...` out; put a text in quotes",
        ),
        Error::NullIntoString { .. } => say(
            Code::Null,
            "a key is missing",
            "keys are texts; `null` and `~` are none",
        ),
        Error::Unexpected { .. }
            if place.text[place.start..].starts_with('{') && place.text[..place.start].ends_with('{') =>
        {
            let end = place.text[place.start..]
                .find("}}")
                .map_or(place.end, |n| place.start + n + 2);
            let template = &place.text[place.start - 1..end];
            let message = "a template needs quotes: without them YAML reads `{{` as two mappings";
            say(
                Code::YamlSyntax,
                message,
                format!("write `\"{template}\"`, quotes included"),
            )
        }
        Error::Unexpected { .. } => say(
            Code::YamlSyntax,
            "a key must be a text",
            "lists and mappings cannot be keys",
        ),
        // The crate has no finer types for what its scanner says.
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

/// What the scanner says, by its words.
fn scanner(raw: &str, place: &Place<'_>) -> Words {
    let raw = raw.split(" at line ").next().unwrap_or(raw);
    let has = |words: &str| raw.contains(words);
    let syntax = |message: &str, help: &str| say(Code::YamlSyntax, message, help);
    if has("unsupported tag") {
        let message = "tags such as `!include` or `!!binary` are not known here";
        return say(
            Code::UnsupportedTag,
            message,
            "for files there is `include: [FILE]`; put a text in quotes",
        );
    }
    if has("recursion limit") {
        return say(
            Code::Limit,
            format!("nested deeper than {MAX_DEPTH} levels"),
            "a scenario needs far less; is this the right file?",
        );
    }
    if has("unclosed quote") || has("unexpected end of stream") && has("quoted") {
        return syntax(
            "this quote is never closed",
            "close it with the same quote; inside double quotes write `\\\"`, inside single quotes `''`",
        );
    }
    if has("mapping values are not allowed") {
        return second_colon(place);
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
    if has("mismatched bracket") {
        let message = raw
            .replace("mismatched bracket", "the bracket")
            .replace("closed by", "is closed by")
            .replace('\'', "`");
        return syntax(&message, "every `[` needs its `]`, every `{` its `}`");
    }
    if has("illegal placement of ':'") || has("flow") || has("bracket") || has("expected ',' or") {
        return syntax(
            "the brackets do not match",
            "every `[` needs its `]`, every `{` its `}`, with commas between the parts",
        );
    }
    if has("unexpected character") || has("cannot start any token") || has("while scanning") && has("directive") {
        return syntax("a text cannot begin with this character", "put the text in quotes");
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
        return say(Code::TabIndentation, "a tab has no place here", "use spaces");
    }
    Words {
        code: Code::YamlSyntax,
        message: format!("this is not YAML: {raw}"),
        help: None,
        earlier: None,
    }
}

/// A `: ` where none can stand: an expression without quotes, two in a line, or a missing one in the line above.
fn second_colon(place: &Place<'_>) -> Words {
    let before = place.before();
    let content = place.line().trim().trim_start_matches("- ");
    if let Some(first) = before.find(": ")
        && before[..first].matches('(').count() > before[..first].matches(')').count()
    {
        let named = content.replace("from: ", "from=").replace("until: ", "until=");
        let help = if named == content {
            format!("put the text in quotes: '{content}'")
        } else {
            format!("named arguments take `=`: write `{named}`")
        };
        return say(
            Code::YamlCut,
            "YAML makes a mapping of this expression: `: ` begins a value",
            help,
        );
    }
    if before.contains(": ") {
        let help = "a text that holds `: ` needs quotes; a mapping inside begins on its own line";
        return say(Code::YamlSyntax, "a second `: ` in one line", help);
    }
    let message = "`:` has no place here: the text above is still going on";
    let words = say(
        Code::YamlSyntax,
        message,
        "either a `:` is missing in the line above, or this line is indented too far",
    );
    let earlier = place.line_before().map(|(start, line)| {
        let label = if line.contains(':') {
            "this text goes on"
        } else {
            "is a `:` missing here?"
        };
        ((start, start + line.len()), label)
    });
    Words { earlier, ..words }
}

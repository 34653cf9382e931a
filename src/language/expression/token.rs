//! Text to tokens with their places.

use super::{Finding, TextSpan};
use crate::diagnostic::Code;

/// A token and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: TextSpan,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// Digits with a unit or none, as written: `200`, `1m30s`, `0.1%`, `50/s`.
    Number(String),
    Word(String),
    /// Without its quotes.
    Text(String),
    /// Without its slashes, `\/` replaced.
    Pattern(String),
    Symbol(&'static str),
    End,
}

/// Longest first: `..` before `.`.
const SYMBOLS: [&str; 18] = [
    "==", "!=", "<=", ">=", "..", "&&", "||", "<", ">", "(", ")", ",", ".", "=", "+", "-", ":", "!",
];

/// What people write from habit, and how it is called here.
const FOREIGN: [(&str, &str, &str); 2] = [("&&", "and", "`&&` is not known"), ("||", "or", "`||` is not known")];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Finding> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, len) = token(text, at, first)?;
        out.push(Token {
            kind,
            at: TextSpan::new(at, at + len),
        });
        at += len;
    }
    out.push(Token {
        kind: TokenKind::End,
        at: TextSpan::new(text.len(), text.len()),
    });
    Ok(out)
}

fn token(text: &str, at: usize, first: char) -> Result<(TokenKind, usize), Finding> {
    let rest = &text[at..];
    let syntax =
        |len: usize, message: String| Finding::new(Code::ExpressionSyntax, TextSpan::new(at, at + len), message);
    if first.is_ascii_digit() {
        let len = number(rest);
        return Ok((TokenKind::Number(rest[..len].to_owned()), len));
    }
    if first.is_alphabetic() || first == '_' {
        let len = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        return Ok((TokenKind::Word(rest[..len].to_owned()), len));
    }
    if first == '"' || first == '\'' {
        let Some(end) = rest[1..].find(first) else {
            return Err(syntax(rest.len(), "this text has no end".into())
                .label("begins here")
                .help(format!(
                    "close it with {first}; in a YAML line without quotes ` #` begins a comment"
                )));
        };
        return Ok((TokenKind::Text(rest[1..=end].to_owned()), end + 2));
    }
    if first == '/' {
        return pattern(rest).ok_or_else(|| {
            syntax(rest.len(), "this pattern has no end".into())
                .label("begins here")
                .help("end it with `/` and write `\\/` for a slash in it; in a YAML line without quotes ` #` begins a comment")
        });
    }
    if rest.starts_with("{{") {
        let len = rest.find("}}").map_or(rest.len(), |end| end + 2);
        let inner = rest[2..len].trim_end_matches("}}").trim();
        let finding = Finding::new(
            Code::TemplateInExpression,
            TextSpan::new(at, at + len),
            "an expression is no template",
        );
        let plain = if inner.is_empty() || inner.contains(' ') {
            "vars.work"
        } else {
            inner
        };
        return Err(finding.help(format!("write the name without braces: `{plain}`")));
    }
    if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
        if let Some((_, word, message)) = FOREIGN.into_iter().find(|(foreign, ..)| *foreign == symbol) {
            return Err(syntax(symbol.len(), message.into()).help(format!("write `{word}`")));
        }
        return Ok((TokenKind::Symbol(symbol), symbol.len()));
    }
    let finding = syntax(first.len_utf8(), format!("`{first}` has no meaning in an expression"));
    Err(match first {
        '[' => finding.help("a set of values is written with `or`: `status(long) == 502 or status(long) == 504`; a range with `in a..b`"),
        '“' | '”' | '„' | '‘' | '’' => finding.help("use straight quotes"),
        '×' | '*' => finding.help("there is no multiplication; `+` and `-` exist"),
        _ => finding,
    })
}

/// Length of a number with its unit: `1.5s`, `1m30s`, `0.1%`, `50/s`. `1..5` ends before the dots.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut len = 0;
    while bytes.get(len).is_some_and(u8::is_ascii_alphanumeric) || (bytes.get(len) == Some(&b'.') && digit(len + 1)) {
        len += 1;
    }
    match bytes.get(len) {
        Some(b'%') => len + 1,
        Some(b'/') if matches!(bytes.get(len + 1), Some(b's' | b'm')) => {
            let goes_on = bytes
                .get(len + 2)
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
            if goes_on { len } else { len + 2 }
        }
        _ => len,
    }
}

fn pattern(rest: &str) -> Option<(TokenKind, usize)> {
    let mut out = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '/' => return Some((TokenKind::Pattern(out), i + 1)),
            '\\' => match chars.next()?.1 {
                '/' => out.push('/'),
                escaped => out.extend(['\\', escaped]),
            },
            _ => out.push(c),
        }
    }
    None
}

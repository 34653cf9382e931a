//! Tokens to a syntax tree, by recursive descent; the grammar is in `docs/language.md`.

use super::syntax::{Argument, CompareOp, Expr, ExprKind, Name, Per, WordAt};
use super::token::{Token, TokenKind, tokens};
use super::{Finding, TextSpan};
use crate::diagnostic::Code;
use crate::language::variable::decimal;
use crate::time::Duration;

/// Parentheses, `not` and `-` may be nested this deep.
const MAX_DEPTH: usize = 32;

/// Reads an expression. It knows no names.
///
/// # Errors
/// The first place where the text stops making sense.
pub fn parse(text: &str) -> Result<Expr, Finding> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    if parser.kind() == &TokenKind::End {
        return Err(Finding::new(
            Code::ExpressionSyntax,
            TextSpan::new(0, text.len()),
            "an empty expression says nothing",
        ));
    }
    let expr = parser.or()?;
    if parser.kind() != &TokenKind::End {
        return Err(parser.expected("`and`, `or`, a comparison or the end"));
    }
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn kind(&self) -> &TokenKind {
        &self.tokens[self.next].kind
    }

    fn at(&self) -> TextSpan {
        self.tokens[self.next].at
    }

    /// Steps over the current token; the end stays the end.
    fn advance(&mut self) -> TextSpan {
        let at = self.at();
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
        at
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.kind(), TokenKind::Symbol(s) if *s == symbol);
        if found {
            self.advance();
        }
        found
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.kind(), TokenKind::Word(w) if w == word);
        if found {
            self.advance();
        }
        found
    }

    fn error(at: TextSpan, message: impl Into<String>) -> Finding {
        Finding::new(Code::ExpressionSyntax, at, message)
    }

    fn expected(&self, what: &str) -> Finding {
        let at = self.at();
        match self.kind() {
            TokenKind::End => Self::error(at, format!("expected {what}, but the expression ends here")).label("here"),
            TokenKind::Symbol("!") => Self::error(at, "`!` is not known").help("write `not`"),
            TokenKind::Symbol("=") => Self::error(at, "`=` does not compare").help("write `==`"),
            _ => Self::error(at, format!("expected {what}, found `{}`", &self.text[at.start..at.end])),
        }
    }

    /// Guards against nesting that would exhaust the stack.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Finding>) -> Result<T, Finding> {
        if self.depth == MAX_DEPTH {
            return Err(Self::error(self.at(), format!("nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn or(&mut self) -> Result<Expr, Finding> {
        let mut left = self.and()?;
        while self.keyword("or") {
            left = pair(left, self.and()?, ExprKind::Or);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Finding> {
        let mut left = self.not()?;
        while self.keyword("and") {
            left = pair(left, self.not()?, ExprKind::And);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Finding> {
        let at = self.at();
        if !self.keyword("not") {
            return self.test();
        }
        let inner = self.nested(Self::not)?;
        Ok(Expr {
            at: at.to(inner.at),
            kind: ExprKind::Not(Box::new(inner)),
        })
    }

    fn operator(&mut self) -> Option<CompareOp> {
        use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
        [Eq, Ne, Le, Ge, Lt, Gt].into_iter().find(|op| self.symbol(op.as_str()))
    }

    fn test(&mut self) -> Result<Expr, Finding> {
        let left = self.sum()?;
        if let Some(op) = self.operator() {
            let right = self.sum()?;
            let at = self.at();
            if self.operator().is_some() || self.keyword("in") {
                return Err(Self::error(at, "comparisons do not chain").help("write `a < b and b < c`, or `b in a..c`"));
            }
            let at = left.at.to(right.at);
            return Ok(Expr {
                at,
                kind: ExprKind::Compare(Box::new(left), op, Box::new(right)),
            });
        }
        if self.keyword("in") {
            let low = self.sum()?;
            if !self.symbol("..") {
                return Err(self
                    .expected("`..` and the upper end of the range")
                    .help("a range has two ends, both included: `in 60s..62s`"));
            }
            let high = self.sum()?;
            let at = left.at.to(high.at);
            return Ok(Expr {
                at,
                kind: ExprKind::In(Box::new(left), Box::new(low), Box::new(high)),
            });
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, Finding> {
        let mut left = self.unary()?;
        loop {
            if self.symbol("+") {
                left = pair(left, self.unary()?, ExprKind::Add);
            } else if self.symbol("-") {
                left = pair(left, self.unary()?, ExprKind::Sub);
            } else {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Result<Expr, Finding> {
        let at = self.at();
        if !self.symbol("-") {
            return self.value();
        }
        let inner = self.nested(Self::unary)?;
        Ok(Expr {
            at: at.to(inner.at),
            kind: ExprKind::Neg(Box::new(inner)),
        })
    }

    fn value(&mut self) -> Result<Expr, Finding> {
        let at = self.at();
        let kind = match self.kind().clone() {
            TokenKind::Number(text) => number(&text, at)?,
            TokenKind::Text(text) => ExprKind::Text(text),
            TokenKind::Pattern(text) => ExprKind::Pattern(text),
            TokenKind::Symbol("(") => {
                self.advance();
                let mut inner = self.nested(Self::or)?;
                if !self.symbol(")") {
                    return Err(self.expected("`)`").label(opened(at)));
                }
                inner.at = at.to(self.tokens[self.next - 1].at);
                return Ok(inner);
            }
            TokenKind::Word(word) if !matches!(word.as_str(), "and" | "or" | "not" | "in") => {
                self.advance();
                return self.name(WordAt { text: word, at });
            }
            TokenKind::Word(_) | TokenKind::Symbol(_) | TokenKind::End => return Err(self.expected("a value")),
        };
        self.advance();
        if let (ExprKind::Number(_), TokenKind::Word(unit)) = (&kind, self.kind())
            && matches!(unit.as_str(), "us" | "ms" | "s" | "m" | "h")
        {
            let joined = format!("{}{unit}", &self.text[at.start..at.end]);
            return Err(
                Self::error(at.to(self.at()), "a number and its unit are one word").help(format!("write `{joined}`"))
            );
        }
        Ok(Expr { at, kind })
    }

    fn name(&mut self, word: WordAt) -> Result<Expr, Finding> {
        let mut end = word.at;
        let mut arguments = None;
        if self.kind() == &TokenKind::Symbol("(") && self.at().start == end.end {
            let open = self.advance();
            arguments = Some(self.nested(|parser| parser.arguments(open))?);
            end = self.tokens[self.next - 1].at;
        }
        let mut fields = Vec::new();
        while self.symbol(".") {
            let TokenKind::Word(field) = self.kind().clone() else {
                return Err(self.expected("a field name behind the dot"));
            };
            end = self.advance();
            fields.push(WordAt { text: field, at: end });
        }
        if let TokenKind::Word(suffix) = self.kind()
            && self.at().start == end.end
            && let Some(function @ ("before" | "after")) = suffix.strip_prefix('_')
        {
            let event = &self.text[word.at.start..end.end];
            return Err(
                Self::error(self.at(), format!("`_{function}` follows a plain event name only"))
                    .help(format!("write `{function}({event}, ...)`")),
            );
        }
        let at = word.at.to(end);
        Ok(Expr {
            at,
            kind: ExprKind::Name(Name {
                word,
                arguments,
                fields,
            }),
        })
    }

    fn arguments(&mut self, open: TextSpan) -> Result<Vec<Argument>, Finding> {
        let mut out = Vec::new();
        if self.symbol(")") {
            return Ok(out);
        }
        loop {
            let label = self.label()?;
            let value = self.or()?;
            out.push(Argument { label, value });
            if self.symbol(")") {
                return Ok(out);
            }
            if !self.symbol(",") {
                let help =
                    matches!(self.kind(), TokenKind::Word(_)).then(|| "arguments are separated by commas".to_owned());
                return Err(self.expected("`,` or `)`").label(opened(open)).maybe_help(help));
            }
        }
    }

    fn label(&mut self) -> Result<Option<WordAt>, Finding> {
        let TokenKind::Word(word) = self.kind().clone() else {
            return Ok(None);
        };
        match self.tokens.get(self.next + 1).map(|token| &token.kind) {
            Some(TokenKind::Symbol("=")) => {
                let at = self.advance();
                self.advance();
                Ok(Some(WordAt { text: word, at }))
            }
            Some(TokenKind::Symbol(":")) => {
                let at = self.tokens[self.next + 1].at;
                Err(Self::error(at, "named arguments take `=`, not `:`").help(format!("write `{word}=...`")))
            }
            _ => Ok(None),
        }
    }
}

fn opened(at: TextSpan) -> String {
    format!("`(` was opened at column {} of the expression", at.start + 1)
}

fn pair(left: Expr, right: Expr, kind: fn(Box<Expr>, Box<Expr>) -> ExprKind) -> Expr {
    Expr {
        at: left.at.to(right.at),
        kind: kind(Box::new(left), Box::new(right)),
    }
}

/// What a number with or without a unit means.
fn number(text: &str, at: TextSpan) -> Result<ExprKind, Finding> {
    let digits = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if leading_zero && digits.bytes().all(|b| b.is_ascii_digit()) {
        let plain = digits.trim_start_matches('0');
        let plain = if plain.is_empty() { "0" } else { plain };
        return Err(
            Finding::new(Code::LeadingZero, at, format!("`{digits}` has a leading zero"))
                .help(format!("numbers are decimal: write `{plain}{unit}`")),
        );
    }
    let value = || {
        let finite = decimal(digits).filter(|value| value.is_finite());
        finite.ok_or_else(|| Parser::error(at, format!("`{text}` is no number")))
    };
    match unit {
        "" => value().map(ExprKind::Number),
        "%" => value().map(ExprKind::Percent),
        "/s" => value().map(|value| ExprKind::Rate(value, Per::Second)),
        "/m" => value().map(|value| ExprKind::Rate(value, Per::Minute)),
        _ => text.parse::<Duration>().map(ExprKind::Duration).map_err(|error| {
            let finding = Finding::new(
                Code::Duration,
                at,
                format!("`{text}` is neither a number nor a duration"),
            );
            let help = match unit {
                "M" | "min" | "mins" | "minutes" => format!("minutes are `m`: `{digits}m`"),
                "S" | "sec" | "secs" | "seconds" => format!("seconds are `s`: `{digits}s`"),
                "H" | "hours" | "hrs" => format!("hours are `h`: `{digits}h`"),
                _ => error.to_string(),
            };
            finding.help(help)
        }),
    }
}

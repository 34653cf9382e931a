//! A syntax tree as text that reads back as the same tree.

use std::fmt;

use super::syntax::{Argument, Expr, ExprKind, Name, Per};

/// How tightly a node binds: an operand that binds less tightly than its operator needs parentheses.
fn strength(kind: &ExprKind) -> u8 {
    match kind {
        ExprKind::Or(..) => 0,
        ExprKind::And(..) => 1,
        ExprKind::Not(_) => 2,
        ExprKind::Compare(..) | ExprKind::In(..) => 3,
        ExprKind::Add(..) | ExprKind::Sub(..) => 4,
        ExprKind::Neg(_) => 5,
        ExprKind::Number(_)
        | ExprKind::Percent(_)
        | ExprKind::Rate(..)
        | ExprKind::Duration(_)
        | ExprKind::Text(_)
        | ExprKind::Pattern(_)
        | ExprKind::Name(_) => 6,
    }
}

/// An operand that must bind at least this tightly.
struct Operand<'a>(&'a Expr, u8);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if strength(&self.0.kind) < self.1 {
            write!(f, "({})", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Or(a, b) => write!(f, "{} or {}", Operand(a, 0), Operand(b, 1)),
            ExprKind::And(a, b) => write!(f, "{} and {}", Operand(a, 1), Operand(b, 2)),
            ExprKind::Not(a) => write!(f, "not {}", Operand(a, 2)),
            ExprKind::Compare(a, op, b) => write!(f, "{} {op} {}", Operand(a, 4), Operand(b, 4)),
            ExprKind::In(value, low, high) => {
                write!(f, "{} in {}..{}", Operand(value, 4), Operand(low, 4), Operand(high, 4))
            }
            ExprKind::Add(a, b) => write!(f, "{} + {}", Operand(a, 4), Operand(b, 5)),
            ExprKind::Sub(a, b) => write!(f, "{} - {}", Operand(a, 4), Operand(b, 5)),
            ExprKind::Neg(a) => write!(f, "-{}", Operand(a, 5)),
            ExprKind::Number(n) => write!(f, "{n}"),
            ExprKind::Percent(n) => write!(f, "{n}%"),
            ExprKind::Rate(n, Per::Second) => write!(f, "{n}/s"),
            ExprKind::Rate(n, Per::Minute) => write!(f, "{n}/m"),
            ExprKind::Duration(d) => write!(f, "{d}"),
            ExprKind::Text(text) if text.contains('"') => write!(f, "'{text}'"),
            ExprKind::Text(text) => write!(f, "\"{text}\""),
            ExprKind::Pattern(text) => write!(f, "/{}/", text.replace('/', "\\/")),
            ExprKind::Name(name) => write!(f, "{name}"),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.word.text)?;
        if let Some(arguments) = &self.arguments {
            f.write_str("(")?;
            for (i, argument) in arguments.iter().enumerate() {
                write!(f, "{}{argument}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(")")?;
        }
        self.fields.iter().try_for_each(|field| write!(f, ".{}", field.text))
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{}=", label.text)?;
        }
        write!(f, "{}", self.value)
    }
}

use std::fmt;

use crate::time::Duration;

/// A range of bytes in an expression's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TextSpan {
    /// First byte.
    pub start: usize,
    /// First byte behind it.
    pub end: usize,
}

impl TextSpan {
    /// From `start`, not including `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the start of this to the end of the other.
    pub const fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}

/// A node of the syntax tree. It knows no names; they are resolved afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Where it stands in the expression's text.
    pub at: TextSpan,
    /// What it is.
    pub kind: ExprKind,
}

/// What a node of the syntax tree is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `a or b`
    Or(Box<Expr>, Box<Expr>),
    /// `a and b`
    And(Box<Expr>, Box<Expr>),
    /// `not a`
    Not(Box<Expr>),
    /// `a == b` and its relatives
    Compare(Box<Expr>, CompareOp, Box<Expr>),
    /// `value in low..high`, both ends included
    In(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a + b`
    Add(Box<Expr>, Box<Expr>),
    /// `a - b`
    Sub(Box<Expr>, Box<Expr>),
    /// `-a`
    Neg(Box<Expr>),
    /// `200`, `0.5`
    Number(f64),
    /// `0.1%`, as written: 0.1
    Percent(f64),
    /// `50/s`, `30/m`
    Rate(f64, Per),
    /// `1m30s`
    Duration(Duration),
    /// `"text"` or `'text'`
    Text(String),
    /// `/regex/`
    Pattern(String),
    /// `name`, `name(arguments)`, either with `.field`s
    Name(Name),
}

/// What a rate is per.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// `/s`
    Second,
    /// `/m`
    Minute,
}

/// A name, its arguments and its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The first word.
    pub word: WordAt,
    /// What stands in the parentheses, when there are any.
    pub arguments: Option<Vec<Argument>>,
    /// `.field`s behind it.
    pub fields: Vec<WordAt>,
}

/// A word and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordAt {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub at: TextSpan,
}

/// An argument, `from=` and `until=` named.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// `from` or `until`, or what the author wrote there.
    pub label: Option<WordAt>,
    /// Its value.
    pub value: Expr,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CompareOp {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }

    /// The operator with its sides exchanged: `a < b` is `b > a`.
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Eq => Self::Eq,
            Self::Ne => Self::Ne,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
        }
    }

    /// True when the ordering of the left side to the right one satisfies it.
    pub const fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Ne => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Le => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Ge => ordering.is_ge(),
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

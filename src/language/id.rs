use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that expressions and templates can say: lower-case letters, digits and `_`, a letter first.
///
/// Steps, probes, variables, containers and marks have one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(String);

/// What an id looks like, for messages and the schema.
pub const ID_PATTERN: &str = "^[a-z][a-z0-9_]*$";

impl Id {
    /// The text as an id, when it is one.
    pub fn new(text: &str) -> Option<Self> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        (text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(inner)).then(|| Self(text.to_owned()))
    }

    /// For names that are already known to be words, such as those the lexer of expressions found.
    pub(crate) fn trusted(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Id {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Id {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

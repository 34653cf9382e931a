//! Every word of the expression language, each with its meaning: events, functions, signals, states and judgements.
//!
//! This is the one place that knows the words. The parser knows none of them; the check, `gtrun explain` and the reference
//! read them from here, and evidence and verdict use the same types.

mod event;
mod field;
mod function;
mod signal;
mod word;

pub use event::EventName;
pub use field::{EventField, Root, RunField, StepField, TargetField};
pub use function::Function;
pub use signal::Signal;
pub use word::{Cause, Fate, Health, LbStatus, Outcome, Party, ServerChoice, StepOutcome, Word, WordSet};

/// Declares a closed set of words: an enum with its text on disk and in expressions, the meaning of each, and serde.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $( $variant:ident $text:literal $doc:literal )* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $( #[doc = $doc] #[serde(rename = $text)] $variant ),* }

        impl $name {
            /// All of them, in the order of the reference.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),*];

            /// The word as it is written.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $doc ),* }
            }

            /// The word of this text.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// Words that the grammar itself uses; nothing else may be called so.
pub const KEYWORDS: &[&str] = &[
    "and", "or", "not", "in", "true", "false", "any", "others", "from", "until",
];

/// True when the word has a meaning of its own, so that no step, probe or variable can be called so.
pub fn is_reserved(text: &str) -> bool {
    KEYWORDS.contains(&text)
        || EventName::parse(text).is_some()
        || Function::parse(text).is_some()
        || Signal::parse(text).is_some()
        || Root::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_disjoint_and_free_of_the_suffixes() {
        let mut seen = BTreeSet::new();
        let names = EventName::ALL.iter().map(|n| n.as_str());
        let names = names.chain(Function::ALL.iter().map(|n| n.as_str()));
        let names = names.chain(Signal::ALL.iter().map(|n| n.as_str()));
        let names = names
            .chain(Root::ALL.iter().map(|n| n.as_str()))
            .chain(KEYWORDS.iter().copied());
        for name in names {
            assert!(seen.insert(name), "{name} has two meanings");
            assert!(!name.ends_with("_before") && !name.ends_with("_after"), "{name}");
            assert!(is_reserved(name));
        }
        assert!(!is_reserved("long"));
    }
}

//! A three-valued answer with what it rests on, and Kleene's connectives over it.

use crate::time::Duration;
use crate::verdict::{EventUsed, Outcome};

/// An answer and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The answer.
    pub outcome: Outcome,
    /// One sentence.
    pub explanation: String,
    /// Why it is inconclusive, and the cheapest change that would settle it.
    pub reason: Option<String>,
    /// How far it is from the other answer, and the error of that.
    pub margin: Option<(Duration, Duration)>,
    /// The error by source.
    pub budget: Vec<String>,
    /// The events used.
    pub events: Vec<EventUsed>,
}

impl Judgement {
    /// A decided or undecided answer with its sentence.
    pub fn new(outcome: Outcome, explanation: impl Into<String>) -> Self {
        Self {
            outcome,
            explanation: explanation.into(),
            reason: None,
            margin: None,
            budget: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Undecided, with what would settle it.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            reason: Some(reason.clone()),
            ..Self::new(Outcome::Inconclusive, reason)
        }
    }

    /// With the events it rests on.
    #[must_use]
    pub fn using(mut self, events: impl IntoIterator<Item = EventUsed>) -> Self {
        self.events.extend(events);
        self
    }

    /// Kleene's not.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the other connectives are methods too")]
    pub fn not(self) -> Self {
        let outcome = match self.outcome {
            Outcome::Pass => Outcome::Fail,
            Outcome::Fail => Outcome::Pass,
            Outcome::Inconclusive => Outcome::Inconclusive,
        };
        Self { outcome, ..self }
    }

    /// Kleene's and: the worse of the two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let outcome = self.outcome.max(other.outcome);
        self.joined(other, outcome)
    }

    /// Kleene's or: the better of the two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let outcome = self.outcome.min(other.outcome);
        self.joined(other, outcome)
    }

    /// The parts that decided speak; the events of both are kept.
    fn joined(self, other: Self, outcome: Outcome) -> Self {
        let events: Vec<EventUsed> = self.events.iter().chain(&other.events).cloned().collect();
        let (a, b) = (self.outcome == outcome, other.outcome == outcome);
        let mut joined = match (a, b) {
            (true, true) => {
                let explanation = format!("{}; {}", self.explanation, other.explanation);
                let tighter = match (&self.margin, &other.margin) {
                    (Some(x), Some(y)) => y.0.abs() < x.0.abs(),
                    (None, Some(_)) => true,
                    (_, None) => false,
                };
                let reason = match (&self.reason, &other.reason) {
                    (Some(x), Some(y)) if x != y => Some(format!("{x}; {y}")),
                    (x, y) => x.clone().or_else(|| y.clone()),
                };
                let base = if tighter { other } else { self };
                Self {
                    explanation,
                    reason,
                    ..base
                }
            }
            (true, false) => self,
            _ => other,
        };
        joined.events = events;
        joined.outcome = outcome;
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![Just(Outcome::Pass), Just(Outcome::Fail), Just(Outcome::Inconclusive)]
    }

    fn j(outcome: Outcome) -> Judgement {
        Judgement::new(outcome, "")
    }

    proptest! {
        #[test]
        fn de_morgan(a in outcome(), b in outcome()) {
            prop_assert_eq!(j(a).and(j(b)).not().outcome, j(a).not().or(j(b).not()).outcome);
        }

        /// What is decided with an unknown part stays so whatever the part turns out to be.
        #[test]
        fn a_decision_does_not_hang_on_an_unknown(a in outcome(), b in prop_oneof![Just(Outcome::Pass), Just(Outcome::Fail)]) {
            let and = j(a).and(j(Outcome::Inconclusive)).outcome;
            prop_assert!(and == Outcome::Inconclusive || and == j(a).and(j(b)).outcome);
            let or = j(a).or(j(Outcome::Inconclusive)).outcome;
            prop_assert!(or == Outcome::Inconclusive || or == j(a).or(j(b)).outcome);
        }
    }
}

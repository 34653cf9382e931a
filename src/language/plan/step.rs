use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verb;
use crate::diagnostic::Span;
use crate::language::Id;
use crate::language::expression::Expression;
use crate::time::Duration;

/// One step: a verb and what stands beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name, for `steps.<id>` and for assertions.
    pub id: Option<Id>,
    /// What it does.
    pub verb: Verb,
    /// It is skipped unless this holds; undecided counts as not.
    pub when: Option<Expression>,
    /// It must be over in this time, the verb's default filled in; `None` for verbs that need no limit (`wait`, `mark`, a load
    /// or a request in the background, `parallel`).
    pub timeout: Option<Duration>,
    /// What a passed time limit means.
    pub on_timeout: OnTimeout,
    /// What its own outcome must be.
    pub expect: Expect,
    /// It is repeated while its outcome is not the expected one.
    pub retry: Option<Retry>,
    /// The key of its verb in the scenario file.
    pub span: Span,
}

/// What a passed time limit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// `wait_for` and `poll`: a failed claim. Other verbs: the step could not be carried out.
    #[default]
    Fail,
    /// The run goes on and nothing is claimed.
    Continue,
}

/// What a step's own outcome must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It was done. For a request: that it was sent; its result is for the assertions to judge.
    #[default]
    Ok,
    /// It was refused, as an eviction by a PodDisruptionBudget; not refused is a failed claim.
    Refused,
    /// It failed.
    Error,
    /// Whatever.
    Any,
}

/// Repeats a step while its outcome is not the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Most attempts, the first included.
    pub times: u32,
    /// Pause between attempts.
    pub every: Duration,
}

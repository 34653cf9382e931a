use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::UsedNames;
use crate::language::plan::Fsm;
use crate::language::{Id, Variable};

/// The names that an expression may say. `None` where everything is believed: an expression read back from a plan was checked
/// before.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Variables with their values.
    pub vars: IndexMap<Id, Variable>,
    /// Steps with what can be asked of them.
    pub steps: Option<IndexMap<Id, StepShape>>,
    /// Probes by name.
    pub probes: Option<IndexMap<Id, ProbeShape>>,
    /// Keys of the environment's `containers`.
    pub containers: Option<Vec<Id>>,
    /// Names of `mark` steps.
    pub marks: Option<Vec<Id>>,
    /// States of the workload's FSM.
    pub fsm: Option<Fsm>,
    /// gtrun's own environment, as far as the scenario may say it.
    pub env: IndexMap<String, String>,
    /// True when `env` is all there is; false where secrets are not kept.
    pub env_known: bool,
    /// What names meant when the expression was read first; used where `steps` or `fsm` is `None`.
    pub believed: UsedNames,
}

impl Scope {
    /// For an expression that was checked before: every name is believed.
    pub fn believing(names: UsedNames) -> Self {
        Self {
            vars: names.vars.clone(),
            believed: names,
            ..Self::default()
        }
    }
}

/// What can be asked of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepShape {
    /// `request`
    Request,
    /// `load`
    Load,
    /// `delete_pod`, `evict_pod`, `scale`: a call to the API.
    Api,
    /// `exec`, `ssh`: a command.
    Command,
    /// `poll` of http.
    PollHttp,
    /// Any other verb.
    Other,
}

/// What a probe can show in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeShape {
    /// Lines: `log(P, /regex/)`.
    Log,
    /// Anything else.
    Other,
}

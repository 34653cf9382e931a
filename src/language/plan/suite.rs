use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::language::{Id, Variable};
use crate::time::Duration;

/// All runs of a scenario: one, or what `matrix`, `sweep`, `repeat` and `controls` make of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The scenario's name.
    pub name: String,
    /// The runs, in the order in which they are carried out.
    pub runs: Vec<PlannedRun>,
    /// Negative controls by name; each has its runs among `runs`.
    pub controls: IndexMap<Id, Control>,
}

/// One run of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRun {
    /// Folder below the scenario's, with `/`: `mode=improved,work=15s/phase-03/2`; empty for a scenario that varies nothing.
    pub path: String,
    /// Values of the matrix and of swept variables.
    pub key: IndexMap<Id, Variable>,
    /// The number of the repetition, from 1.
    pub repetition: u32,
    /// The control that this run belongs to.
    pub control: Option<Id>,
    /// What it does and claims.
    pub plan: Plan,
}

/// A negative control: a run that must fail, or the suite does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// What its runs must do.
    pub must: Must,
}

/// What the runs of a control must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Must {
    /// An assertion must fail; a preflight miss or an inconclusive run does not count.
    #[default]
    Fail,
}

/// Where in a cycle a phase sweep puts a step in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhasePoint {
    /// The step that is moved.
    pub of: Id,
    /// The cycle.
    pub against: Cycle,
    /// Which point, from 0.
    pub index: u32,
    /// Of how many.
    pub points: u32,
}

impl PhasePoint {
    /// How long after a beat of the cycle the step starts.
    pub fn offset(&self, cycle: Duration) -> Duration {
        let points = i64::from(self.points.max(1));
        Duration::from_nanos(cycle.as_nanos() / points * i64::from(self.index))
    }
}

/// A cycle that a phase sweep goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cycle {
    /// The health checks of HAProxy for the target's server (`inter`).
    HaproxyCheck,
    /// The one-second ticker of Istio's agent.
    EnvoyAgent,
}

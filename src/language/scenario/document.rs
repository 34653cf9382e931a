use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Assertion, Control, IdText, Matrix, Preconditions, Probe, ScenarioName, Step, Sweep, Version};
use crate::language::Variable;
use crate::language::value::{At, Opt, Plain, PositiveCount, Templated};
use crate::time::Duration;

/// A scenario says what to do and what must hold. A file may also be a part of one, for `include`: after merging, a scenario has
/// a name, at least one step and at least one assertion.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Language version: always 1.
    pub gtrun: At<Version>,
    /// Names the run folder.
    #[serde(default)]
    pub name: Opt<At<ScenarioName>>,
    /// One sentence: the claim.
    #[serde(default)]
    pub summary: Opt<At<String>>,
    /// true: the scenario exists to show a loss. The run then passes only if its assertions hold and at least one request was
    /// really disrupted. Default false.
    #[serde(default)]
    pub expected_failure: Opt<Plain<crate::language::value::Flag>>,
    /// Environment to use when the command line and GTRUN_ENV name none.
    #[serde(default)]
    pub environment: Opt<At<String>>,
    /// Files to take missing sections from, relative to this file, inside its repository. Variables, probes, controls and the
    /// keys of preconditions merge one by one; of other sections the one here wins; a later file wins over an earlier one.
    #[serde(default)]
    pub include: Vec<At<String>>,
    /// Variables with their defaults. `--set name=value` replaces one, with a value of the same type.
    #[serde(default)]
    pub vars: IndexMap<At<IdText>, Plain<Variable>>,
    /// Facts that are checked before anything is touched; a miss is exit 1. `sim` and `lab` are built to fit them.
    #[serde(default)]
    pub preconditions: Opt<Preconditions>,
    /// What is watched in the background. Without it the standard set runs: hc, envoy, app, active, lb, lblog, rst, pod, health.
    /// A name here changes a probe of the standard set or adds one.
    #[serde(default)]
    pub probes: IndexMap<At<IdText>, Probe>,
    /// What is done, one step after the other.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub steps: Opt<At<Vec<At<Step>>>>,
    /// Steps that run on every way out; a failure there is reported everywhere.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub finally: Opt<At<Vec<At<Step>>>>,
    /// Limit of the whole run; passing it is exit 1. Default 15m.
    #[serde(default)]
    pub timeout: Opt<Templated<Duration>>,
    /// What must hold, in the assertion language.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub assertions: Opt<At<Vec<At<Assertion>>>>,
    /// One run for each combination of values of declared variables; `include` and `exclude` as in CI systems.
    #[serde(default)]
    pub matrix: Opt<At<Matrix>>,
    /// One run for each point of a cycle or of a variable's range.
    #[serde(default)]
    pub sweep: Opt<At<Sweep>>,
    /// Runs of each combination. Default 1.
    #[serde(default)]
    pub repeat: Opt<Plain<PositiveCount>>,
    /// Negative controls: variants that must fail; the suite fails when one passes.
    #[serde(default)]
    pub controls: IndexMap<At<IdText>, Control>,
}

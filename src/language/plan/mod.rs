//! A scenario in an environment, complete: every default filled in, every name resolved, every variable replaced.
//!
//! A [`Plan`] cannot be wrong: what could be is an error before it exists. It is written to `plan.json` in the run folder and
//! read back by `gtrun collect` and `gtrun judge`.

mod assertion;
mod environment;
mod precondition;
pub mod predict;
mod probe;
pub(crate) mod resolve;
pub mod show;
mod step;
mod suite;
pub(crate) mod template;
mod verb;
mod world;

pub use assertion::Assertion;
pub use environment::{Clocks, Entry, Environment, EnvironmentKind, Fsm, Host, LoadBalancer, LogSource, Workload};
pub use precondition::{
    AntiAffinity, CountOrPercent, Ensure, HpaPresence, LoadBalancerFacts, OnMarkedDown, PodFacts, Preconditions,
    Prestop, RolloutFacts, SidecarKind,
};
pub use probe::{Probe, ProbeKind};
pub use step::{Expect, OnTimeout, Retry, Step};
pub use suite::{Control, Cycle, Must, PhasePoint, PlannedRun, Suite};
pub use template::{Placeholder, Segment, Template, TemplateContext, TemplateError};
pub use verb::{
    Connection, Connections, DeletePod, DrainNode, Exec, Header, Label, Load, LoadEnd, Mark, Method, Parallel, Poll,
    PollRead, Protocol, Request, RolloutRestart, Scale, Snapshot, Ssh, Verb, Victim, Wait, WaitFor,
};
pub use world::{
    ClockWorld, DrainListeners, Effect, ExecEffect, HaproxyLogFormat, LoadBalancerWorld, NetworkWorld, NodeWorld,
    PodWorld, RolloutWorld, TrafficWorld, World,
};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::diagnostic::SourceMap;
use crate::language::expression::Event;
use crate::language::{Id, Variable};
use crate::time::Duration;

/// Everything that one run does and claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The scenario's name: `[a-z0-9-]+`, names the run folder.
    pub name: String,
    /// One sentence: the claim.
    pub summary: Option<String>,
    /// The scenario exists to show a loss.
    pub expected_failure: bool,
    /// Variables with the values of this run.
    pub vars: IndexMap<Id, Variable>,
    /// Facts that are compared with the world before anything is touched.
    pub preconditions: Preconditions,
    /// What is set when it differs, and restored at the end.
    pub ensure: Vec<Ensure>,
    /// What is watched, the standard set included, in the order in which it is started.
    pub probes: Vec<Probe>,
    /// One after the other.
    pub steps: Vec<Step>,
    /// Steps that run on every way out.
    pub finally: Vec<Step>,
    /// Limit of the whole run.
    pub timeout: Duration,
    /// What must hold.
    pub assertions: Vec<Assertion>,
    /// Where it happens.
    pub environment: Environment,
    /// The step that a phase sweep moves in this run.
    pub phase: Option<PhasePoint>,
    /// The files that the spans point into.
    pub sources: SourceMap,
    /// Values of `env.*` that were filled in; never written, replaced wherever gtrun writes.
    #[serde(skip)]
    pub secrets: Vec<String>,
}

impl Plan {
    /// All steps, lists under `parallel` included, `steps` before `finally`, in the order of the file.
    pub fn all_steps(&self) -> Vec<&Step> {
        fn walk<'a>(steps: &'a [Step], out: &mut Vec<&'a Step>) {
            for step in steps {
                out.push(step);
                if let Verb::Parallel(parallel) = &step.verb {
                    parallel.branches.values().for_each(|branch| walk(branch, out));
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.steps, &mut out);
        walk(&self.finally, &mut out);
        out
    }

    /// The step with this id.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.all_steps()
            .into_iter()
            .find(|step| step.id.as_ref().is_some_and(|own| own == id))
    }

    /// The patterns that assertions look for in container logs: the probe's name and the regular expression.
    pub fn log_patterns(&self) -> Vec<(String, regex::Regex)> {
        let events = self.assertions.iter().flat_map(|a| a.expression.condition.events());
        events
            .filter_map(|e| match &e.event {
                Event::Log(probe, pattern) => Some((probe.to_string(), pattern.regex().clone())),
                _ => None,
            })
            .collect()
    }

    /// The probe of this name.
    pub fn probe(&self, name: &str) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.name == name)
    }
}

//! The names that the expressions and templates of a scenario may say.

use indexmap::IndexMap;

use super::context::Context;
use crate::language::Id;
use crate::language::expression::{ProbeShape, Scope, StepShape};
use crate::language::plan::{Probe, ProbeKind};
use crate::language::scenario::{PollKind, Step, Verb};
use crate::language::value::At;

/// A step that was cut out because something in it is wrong: its name still counts as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostStep {
    pub(crate) id: Id,
    pub(crate) shape: StepShape,
}

/// What can be asked of a step with this verb.
pub(crate) fn shape(verb: &Verb) -> StepShape {
    match verb {
        Verb::Request(_) => StepShape::Request,
        Verb::Load(_) => StepShape::Load,
        Verb::DeletePod(_) | Verb::EvictPod(_) | Verb::Scale(_) => StepShape::Api,
        Verb::Exec(_) | Verb::Ssh(_) => StepShape::Command,
        Verb::Poll(poll) => match poll.kind {
            PollKind::Http(_) => StepShape::PollHttp,
            PollKind::Exec(_) => StepShape::Command,
        },
        Verb::RolloutRestart(_)
        | Verb::DrainNode(_)
        | Verb::Label(_)
        | Verb::Wait(_)
        | Verb::WaitFor(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => StepShape::Other,
    }
}

/// All steps, lists under `parallel` included.
pub(super) fn all<'a>(steps: impl IntoIterator<Item = &'a At<Step>>, out: &mut Vec<&'a At<Step>>) {
    for step in steps {
        out.push(step);
        if let Verb::Parallel(branches) = &step.value.kind {
            branches.values().for_each(|branch| all(branch, out));
        }
    }
}

impl Context<'_> {
    /// All steps of the document.
    pub(super) fn document_steps(&self) -> Vec<&At<Step>> {
        let mut out = Vec::new();
        for list in [&self.document.steps, &self.document.finally] {
            all(list.iter().flat_map(|list| &list.value), &mut out);
        }
        out
    }

    /// The scope, once the probes are known.
    pub(super) fn complete_scope(&mut self, probes: &[Probe]) {
        let mut steps: IndexMap<Id, StepShape> = IndexMap::new();
        let mut marks = Vec::new();
        for step in self.document_steps() {
            if let Some(id) = &step.value.id {
                steps
                    .entry(id.value.0.clone())
                    .or_insert_with(|| shape(&step.value.kind));
            }
            if let Verb::Mark(name) = &step.value.kind {
                marks.push(name.value.0.clone());
            }
        }
        for lost in self.lost {
            steps.entry(lost.id.clone()).or_insert(lost.shape);
        }
        let of = |probe: &Probe| match probe.kind {
            ProbeKind::ContainerLog { .. } | ProbeKind::HaproxyLog => ProbeShape::Log,
            ProbeKind::EnvoyActive { .. }
            | ProbeKind::HaproxyStat { .. }
            | ProbeKind::RstCapture { .. }
            | ProbeKind::PodWatch
            | ProbeKind::Health { .. } => ProbeShape::Other,
        };
        let environment = &self.chosen.environment;
        self.scope = Scope {
            vars: self.vars.clone(),
            steps: Some(steps),
            probes: Some(probes.iter().map(|probe| (probe.name.clone(), of(probe))).collect()),
            containers: Some(environment.workload.containers.keys().cloned().collect()),
            marks: Some(marks),
            fsm: Some(environment.fsm.clone()),
            env: self
                .options
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            env_known: self.options.env_known,
            ..Scope::default()
        };
    }
}

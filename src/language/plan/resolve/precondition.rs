//! Preconditions, the changes of a control laid over them.

use indexmap::IndexMap;

use super::context::Context;
use crate::diagnostic::Code;
use crate::language::Id;
use crate::language::nearest::did_you_mean;
use crate::language::plan::{AntiAffinity, Ensure, LoadBalancerFacts, PodFacts, Preconditions, Prestop, RolloutFacts};
use crate::language::scenario::{self, Control, IdText, merge_preconditions};
use crate::language::value::{At, Count, Flag, PositiveCount, Scalar, Templated};

impl Context<'_> {
    pub(super) fn preconditions(&mut self, control: Option<&Control>) -> Preconditions {
        let own = self.document.preconditions.clone();
        let merged = match control {
            Some(control) => merge_preconditions(control.preconditions.clone(), own),
            None => own,
        };
        let Some(file) = merged.0 else {
            return Preconditions::default();
        };
        let scenario::Preconditions {
            mode,
            replicas,
            ensure: _,
            pod,
            load_balancer,
            rollout,
        } = file;
        Preconditions {
            mode: self.plain_text(mode.as_ref()),
            replicas: self.optional(replicas.as_ref()).map(|Count(n)| n),
            pod: pod.as_ref().map(|pod| self.pod(pod)).unwrap_or_default(),
            load_balancer: load_balancer
                .as_ref()
                .map(|facts| self.load_balancer(facts))
                .unwrap_or_default(),
            rollout: rollout
                .as_ref()
                .map(|rollout| self.rollout(rollout))
                .unwrap_or_default(),
        }
    }

    pub(super) fn ensure(&mut self, control: Option<&Control>) -> Vec<Ensure> {
        let from = |file: &scenario::Preconditions| file.ensure.0.clone();
        let by_control = control
            .and_then(|control| control.preconditions.as_ref())
            .and_then(from);
        let list = by_control
            .or_else(|| self.document.preconditions.as_ref().and_then(from))
            .unwrap_or_default();
        let replicas = self
            .document
            .preconditions
            .as_ref()
            .is_some_and(|file| file.replicas.is_some());
        for item in &list {
            match item.value {
                Ensure::Replicas if !replicas => {
                    let help = Some("add `replicas: 1` beside it".to_owned());
                    let _: Option<()> = self.error(
                        Code::MissingKey,
                        "`ensure` cannot set replicas: the preconditions name no number",
                        item.span,
                        help,
                    );
                }
                Ensure::Replicas => {}
            }
        }
        list.into_iter().map(|item| item.value).collect()
    }

    fn pod(&mut self, file: &scenario::PodFacts) -> PodFacts {
        let mut prestop = IndexMap::new();
        for (container, hook) in &file.prestop {
            if let (Some(id), Some(sleep)) = (self.container(container), self.value(&hook.sleep)) {
                prestop.insert(id, Prestop { sleep });
            }
        }
        let mut env = IndexMap::new();
        for (container, variables) in &file.env {
            let Some(id) = self.container(container) else { continue };
            let mut values = IndexMap::new();
            for (name, value) in variables {
                if let Some(text) = self
                    .as_written(value)
                    .and_then(|text| text.as_literal().map(str::to_owned))
                {
                    values.insert(name.clone(), text);
                }
            }
            env.insert(id, values);
        }
        PodFacts {
            grace: self.optional(file.grace.as_ref()),
            prestop,
            sidecar: file.sidecar.0,
            env,
            termination_drain: self.optional(file.termination_drain.as_ref()),
            pdb_min_available: self.optional(file.pdb_min_available.as_ref()).map(|Count(n)| n),
            hpa: file.hpa.0.unwrap_or_default(),
            drain_max: self.optional(file.drain_max.as_ref()),
        }
    }

    pub(super) fn load_balancer(&mut self, file: &scenario::LoadBalancerFacts) -> LoadBalancerFacts {
        LoadBalancerFacts {
            inter: self.optional(file.inter.as_ref()),
            fastinter: self.optional(file.fastinter.as_ref()),
            downinter: self.optional(file.downinter.as_ref()),
            fall: self.optional(file.fall.as_ref()).map(|PositiveCount(n)| n),
            rise: self.optional(file.rise.as_ref()).map(|PositiveCount(n)| n),
            on_marked_down: file.on_marked_down.0,
            disable_on_404: self.optional(file.disable_on_404.as_ref()).map(|Flag(b)| b),
            agent_check: self.optional(file.agent_check.as_ref()).map(|Flag(b)| b),
            redispatch: self.optional(file.redispatch.as_ref()).map(|Flag(b)| b),
            retry_on: file.retry_on.iter().map(|word| word.0.clone()).collect(),
            timeout_server: self.optional(file.timeout_server.as_ref()),
        }
    }

    fn rollout(&mut self, file: &scenario::RolloutFacts) -> RolloutFacts {
        RolloutFacts {
            min_ready: self.optional(file.min_ready.as_ref()),
            max_surge: self.optional(file.max_surge.as_ref()),
            max_unavailable: self.optional(file.max_unavailable.as_ref()),
            anti_affinity: self
                .plain_text(file.anti_affinity.as_ref())
                .map(|text| anti_affinity(&text)),
        }
    }

    pub(super) fn optional<T: Scalar + Clone>(&mut self, value: Option<&Templated<T>>) -> Option<T> {
        value.and_then(|value| self.value(value))
    }

    /// A text that must be known when the plan is made.
    pub(super) fn plain_text(&mut self, value: Option<&Templated<String>>) -> Option<String> {
        self.optional(value)
    }

    /// A key of the environment's `containers`.
    pub(super) fn container(&mut self, name: &At<IdText>) -> Option<Id> {
        let known = &self.chosen.environment.workload.containers;
        if known.contains_key(&name.value.0) {
            return Some(name.value.0.clone());
        }
        let text = name.value.0.as_str();
        let help = did_you_mean(text, known.keys().map(Id::as_str));
        self.error(
            Code::UnknownName,
            format!("the environment has no container `{text}`"),
            name.span,
            help,
        )
    }
}

/// none, hostname, or a topology key.
pub(super) fn anti_affinity(text: &str) -> AntiAffinity {
    match text {
        "none" => AntiAffinity::None,
        "hostname" | "kubernetes.io/hostname" => AntiAffinity::Hostname,
        key => AntiAffinity::Key(key.to_owned()),
    }
}

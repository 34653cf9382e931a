//! A document over another one that it includes.

use std::hash::Hash;

use indexmap::IndexMap;

use super::{Document, Preconditions};
use crate::language::value::Opt;

impl Document {
    /// This document with what it lacks from `below`. Variables, probes, controls and the keys of preconditions merge name by
    /// name, each value whole; every other section here replaces the one below; a name is never inherited.
    pub fn over(self, below: Self) -> Self {
        // Destructured, so that a new section does not compile until it is merged.
        let Self {
            gtrun,
            name,
            summary,
            expected_failure,
            environment,
            include,
            vars,
            preconditions,
            probes,
            steps,
            finally,
            timeout,
            assertions,
            matrix,
            sweep,
            repeat,
            controls,
        } = self;
        Self {
            gtrun,
            name,
            summary: summary.or(below.summary),
            expected_failure: expected_failure.or(below.expected_failure),
            environment: environment.or(below.environment),
            include,
            vars: names(vars, below.vars),
            preconditions: merge_preconditions(preconditions, below.preconditions),
            probes: names(probes, below.probes),
            steps: steps.or(below.steps),
            finally: finally.or(below.finally),
            timeout: timeout.or(below.timeout),
            assertions: assertions.or(below.assertions),
            matrix: matrix.or(below.matrix),
            sweep: sweep.or(below.sweep),
            repeat: repeat.or(below.repeat),
            controls: names(controls, below.controls),
        }
    }
}

/// Name by name. The order is that of the lower document, then what is new; the key, and with it the place, is that of the value:
/// `extend` would keep the lower key.
fn names<K: Hash + Eq, V>(above: IndexMap<K, V>, mut below: IndexMap<K, V>) -> IndexMap<K, V> {
    for (key, value) in above {
        match below.shift_remove_full(&key) {
            Some((index, _, _)) => {
                below.shift_insert(index, key, value);
            }
            None => {
                below.insert(key, value);
            }
        }
    }
    below
}

/// Key by key, each value whole.
pub(crate) fn merge_preconditions(above: Opt<Preconditions>, below: Opt<Preconditions>) -> Opt<Preconditions> {
    let (above, below) = match (above.0, below.0) {
        (Some(above), Some(below)) => (above, below),
        (above, below) => return Opt(above.or(below)),
    };
    let Preconditions {
        mode,
        replicas,
        ensure,
        pod,
        load_balancer,
        rollout,
    } = above;
    Opt(Some(Preconditions {
        mode: mode.or(below.mode),
        replicas: replicas.or(below.replicas),
        ensure: ensure.or(below.ensure),
        pod: pod.or(below.pod),
        load_balancer: load_balancer.or(below.load_balancer),
        rollout: rollout.or(below.rollout),
    }))
}

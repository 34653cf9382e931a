//! What the steps and the probes of a run share.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::interrupt::Interrupts;
use super::journal::Journal;
use super::live::{Known, Live, Results, Value, holds};
use super::recorder::Recorder;
use super::target::Target;
use super::tasks::Tasks;
use crate::language::Id;
use crate::language::expression::Expression;
use crate::language::plan::{Plan, Step, Template, TemplateContext, TemplateError};
use crate::language::vocabulary::{RunField, TargetField};
use crate::time::{Duration, Instant};
use crate::world::port::World;

/// Shared by everything in a run; clones share it.
#[derive(Clone)]
pub(crate) struct Context(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) plan: Arc<Plan>,
    pub(crate) world: World,
    pub(crate) recorder: Recorder,
    pub(crate) live: Live,
    pub(crate) journal: Journal,
    pub(crate) tasks: Tasks,
    pub(crate) interrupts: Interrupts,
    /// Pods whose logs and gauges are followed.
    pub(crate) pods: watch::Sender<Vec<Target>>,
    /// The steps are over: loads send no more, single requests in the background are given up.
    pub(crate) stop_traffic: CancellationToken,
    /// Gives up the requests of loads that are still going on.
    pub(crate) abort_traffic: CancellationToken,
    /// Loads that are going on.
    pub(crate) loads: watch::Sender<usize>,
    run: IndexMap<RunField, String>,
    names: HashMap<usize, String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    target: Option<Target>,
    steps: IndexMap<Id, Results>,
}

impl std::ops::Deref for Context {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Context {
    /// For a run that begins.
    pub(crate) fn new(
        plan: Arc<Plan>,
        world: World,
        recorder: Recorder,
        tasks: Tasks,
        interrupts: Interrupts,
        run: IndexMap<RunField, String>,
    ) -> Self {
        // Steps without an id are called by their number among all of them, as the judgement counts them.
        let names = plan
            .all_steps()
            .into_iter()
            .enumerate()
            .map(|(i, step)| {
                let name = step
                    .id
                    .as_ref()
                    .map_or_else(|| format!("step-{}", i + 1), ToString::to_string);
                (address(step), name)
            })
            .collect();
        Self(Arc::new(Inner {
            journal: Journal::new(recorder.clone()),
            plan,
            world,
            recorder,
            live: Live::default(),
            tasks,
            interrupts,
            pods: watch::channel(Vec::new()).0,
            stop_traffic: CancellationToken::new(),
            abort_traffic: CancellationToken::new(),
            loads: watch::channel(0).0,
            run,
            names,
            state: Mutex::default(),
        }))
    }
}

/// A step's identity: steps live in the plan, which does not move.
fn address(step: &Step) -> usize {
    std::ptr::from_ref(step) as usize
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// gtrun's clock.
    pub(crate) fn now(&self) -> Instant {
        self.world.clock.now()
    }

    /// Ready after a time.
    pub(crate) fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.world.clock.sleep_until(self.now() + wait)
    }

    /// The future's output, or `None` when the time is over first.
    pub(crate) async fn within<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            out = future => Some(out),
            () = self.sleep(limit) => None,
        }
    }

    /// The run's id.
    pub(crate) fn run_id(&self) -> &str {
        self.run.get(&RunField::Id).map_or("", String::as_str)
    }

    /// Tells a person what happens.
    pub(crate) fn say(&self, text: &str) {
        self.recorder.say(self.now(), text);
    }

    /// A step's id, or `step-<n>`.
    pub(crate) fn name(&self, step: &Step) -> String {
        self.names.get(&address(step)).cloned().unwrap_or_default()
    }

    /// The target, once it is known.
    pub(crate) fn target(&self) -> Option<Target> {
        self.state().target.clone()
    }

    /// The target is known now.
    pub(crate) fn set_target(&self, target: Target) {
        self.say(&format!(
            "target={} node={} backend={}",
            target.pod.name,
            target.node.as_deref().unwrap_or("?"),
            target.server.as_deref().unwrap_or("?")
        ));
        self.state().target = Some(target);
    }

    /// Keeps the results of a step.
    pub(crate) fn keep(&self, id: Option<&Id>, results: Results) {
        if let Some(id) = id {
            self.state().steps.insert(id.clone(), results);
        }
    }

    /// Whether an expression holds now; `None`: it cannot be said.
    pub(crate) fn holds(&self, expression: &Expression, reply: Option<&Results>) -> Option<bool> {
        let state = self.state();
        let first_state = self.plan.environment.fsm.states.first().map(String::as_str);
        let known = Known {
            target: state.target.as_ref(),
            first_state,
            steps: &state.steps,
            reply,
            run: &self.run,
        };
        self.live
            .look(|facts, signals, disturbed| holds(&expression.condition, facts, signals, disturbed, &known))
    }

    /// Fills in a template.
    pub(crate) fn fill(&self, template: &Template) -> Result<String, TemplateError> {
        if let Some(text) = template.as_literal() {
            return Ok(text.to_owned());
        }
        let state = self.state();
        let mut context = TemplateContext {
            run: self.run.clone(),
            ..TemplateContext::default()
        };
        if let Some(target) = &state.target {
            let fields = [
                (TargetField::Pod, Some(&target.pod.name)),
                (TargetField::Uid, Some(&target.pod.uid)),
                (TargetField::Node, target.node.as_ref()),
                (TargetField::Ip, target.ip.as_ref()),
            ];
            for (field, value) in fields {
                if let Some(value) = value {
                    context.target.insert(field, value.clone());
                }
            }
        }
        for (id, results) in &state.steps {
            let texts = results.iter().map(|(field, value)| (*field, text(value))).collect();
            context.steps.insert(id.clone(), texts);
        }
        template.render(&context)
    }

    /// Behind a file's name: nothing while only one pod is followed, else the server or the pod.
    pub(crate) fn suffix(&self, pod: &Target) -> String {
        let pods = self.pods.borrow();
        let Some(first) = pods.first() else {
            return String::new();
        };
        if pods.len() == 1 && first.pod == pod.pod && !self.follows_new_pods() {
            return String::new();
        }
        // The first pods are called by their server, later ones on the same node by their own name.
        let earlier = pods.iter().take_while(|p| p.pod != pod.pod);
        match &pod.server {
            Some(server) if !earlier.clone().any(|p| p.server.as_ref() == Some(server)) => format!("-{server}"),
            _ => format!("-{}", pod.pod.name),
        }
    }

    /// Pods that come during the run are followed too: something replaces them on purpose.
    pub(crate) fn follows_new_pods(&self) -> bool {
        use crate::language::plan::Verb;
        self.plan.all_steps().iter().any(|s| match &s.verb {
            Verb::RolloutRestart(_) | Verb::Scale(_) | Verb::DrainNode(_) => true,
            Verb::Request(_)
            | Verb::Load(_)
            | Verb::DeletePod(_)
            | Verb::EvictPod(_)
            | Verb::Label(_)
            | Verb::Wait(_)
            | Verb::WaitFor(_)
            | Verb::Poll(_)
            | Verb::Exec(_)
            | Verb::Ssh(_)
            | Verb::Snapshot(_)
            | Verb::Mark(_)
            | Verb::Parallel(_) => false,
        })
    }

    /// The name of a container by its key in the environment; a key that is not there stands for itself.
    pub(crate) fn container(&self, key: &Id) -> String {
        let known = self.plan.environment.workload.containers.get(key.as_str());
        known.cloned().unwrap_or_else(|| key.as_str().to_owned())
    }
}

/// A value as a template shows it.
fn text(value: &Value) -> String {
    match value {
        Value::Number(n) => n.to_string(),
        Value::Duration(d) => d.to_string(),
        Value::Text(text) => text.clone(),
        Value::Word(word) => word.as_str().to_owned(),
        Value::Bool(b) => b.to_string(),
    }
}

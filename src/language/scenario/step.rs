use std::borrow::Cow;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::IdText;
use super::verb::{DeletePod, DrainNode, Exec, Load, Poll, Request, RolloutRestart, Scale, Ssh};
use crate::language::one_of::one_of;
use crate::language::plan::{Expect, OnTimeout};
use crate::language::value::{AsWritten, At, PositiveCount, Templated};
use crate::time::Duration;

one_of! {
    /// A step: one verb, with common keys beside it.
    Step,
    /// What a step does.
    Verb, "a step", "verb";
    common {
        /// Name of the step, for `steps.<id>` and for assertions: lower-case letters, digits and `_`.
        id: At<IdText>,
        /// The step is skipped unless this expression holds.
        when: At<Expr>,
        /// The step must be over in this time. Default: 60s for wait_for and poll, 30s for exec, ssh and calls to the API (with
        /// `wait: true` grace + 30s).
        timeout: Templated<Duration>,
        /// What a passed time limit means. Default fail: for wait_for and poll a failed claim (exit 2). continue claims nothing.
        on_timeout: At<OnTimeout>,
        /// What the step's own outcome must be. Default ok. With refused, not being refused is a failed claim.
        expect: At<Expect>,
        /// The step is repeated while its outcome is not the expected one.
        retry: At<Retry>,
    }
    kinds {
        /// One HTTP request through the entry point.
        request => Request(Request),
        /// Open-loop load in the background at a constant rate.
        load => Load(Load),
        /// Deletes the target pod.
        delete_pod => DeletePod(DeletePod),
        /// Evicts the target pod; a PodDisruptionBudget may refuse (429).
        evict_pod => EvictPod(DeletePod),
        /// Sets the number of replicas.
        scale => Scale(Scale),
        /// Restarts the rollout.
        rollout_restart => RolloutRestart(RolloutRestart),
        /// Cordons the target's node and evicts what runs there; the node is uncordoned at the end.
        drain_node => DrainNode(DrainNode),
        /// Sets labels of the Deployment, and restores them at the end.
        label => Label(IndexMap<At<String>, Templated<AsWritten>>),
        /// Waits a fixed time.
        wait => Wait(Templated<Duration>),
        /// Waits until an event has happened or a condition on a signal holds: `ended(long)`, `lb_down`, `active == 0`.
        wait_for => WaitFor(At<Expr>),
        /// Reads something, once or until a condition on the reply holds.
        poll => Poll(Poll),
        /// A command in a container of the target.
        exec => Exec(Exec),
        /// A command on a host.
        ssh => Ssh(Ssh),
        /// HAProxy statistics now, kept under this name.
        snapshot => Snapshot(At<IdText>),
        /// Puts a named event on the timeline.
        mark => Mark(At<IdText>),
        /// Step lists side by side, each with a name; one that fails stops the others.
        parallel => Parallel(IndexMap<At<IdText>, Vec<At<Step>>>),
    }
}

/// The text of an expression; it is read when the names of the scenario are known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Expr(pub String);

impl JsonSchema for Expr {
    fn schema_name() -> Cow<'static, str> {
        "Expression".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "description": "An expression: `ended(long)`, `active == 0`, `steps.evict.status == 429`.",
            "examples": ["ended(long)", "lb_down", "active == 0"],
        })
    }
}

/// Repeats a step while its outcome is not the expected one.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Most attempts, the first included.
    pub times: Templated<PositiveCount>,
    /// Pause between attempts.
    pub every: Templated<Duration>,
}
